"""Says of each link of a study, before it starts, whether this machine carries it, by a short look under a load like the study's.

What it carries not, it names a rate for that it does, where there is one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from tunnelmark.doctor import capacity
from tunnelmark.doctor.capacity import CapacityLook, bulk, datagrams, holds, margin
from tunnelmark.lab import backends
from tunnelmark.lab.labs import Labs
from tunnelmark.plan import auto
from tunnelmark.plan.model import Profile, Study, Topology
from tunnelmark.units import Rate
from tunnelmark.workloads.base import Workload

_SLOWER = (5, 25)
"""By what a rate is divided to find one that is kept in time."""

_TRIED = (Rate(100_000_000), Rate(10_000_000))
"""Rates that a link without one is tried with: those of the profile fast-ethernet, and a tenth."""

_LIGHT = Rate(4_000_000)
"""UDP payload a second, in packets of _SIZE, where a study only has small packets: enough of them for a 99th percentile."""

_SIZE = 1200

_BULK = ("bit/s", "packets/s")
"""Units of what a path carries: a workload that reports one, and says of no load that it offers, takes all that it gets."""


@dataclass(frozen=True, slots=True)
class StudyLoad:
    """What a study sends at most: `bulk` as much as the link gives, else `offered` bit/s of UDP (a share: of the rate)."""

    bulk: bool
    offered: float = 0.0


@dataclass(frozen=True, slots=True)
class Fitness:
    """Whether the machine carries a profile: `fits`; `short` (a shaped link is not filled); `late` (packets leave late, which
    disturbs trials by what their metrics feel); `drops` (the emulator loses what no profile asked for: trials are void).

    `said` is what was seen, `instead` a rate with which it fits, None if none was found; `looks` for the record.
    """

    profile: str
    state: Literal["fits", "short", "late", "drops"]
    said: str
    instead: Rate | None = None
    looks: Sequence[CapacityLook] = ()

    def plain(self) -> dict[str, Any]:
        """For the record and the cache."""
        return {
            "state": self.state,
            "said": self.said,
            "instead": self.instead,
            "looks": [look.plain() for look in self.looks],
        }


def load_of(study: Study, workloads: Mapping[str, Workload[Any]]) -> StudyLoad:
    """The heaviest of what the study's workloads send."""
    offered = 0.0
    for use in study.workloads:
        workload = workloads[use.workload]
        options = workload.options.model_validate(use.over(study.profiles[0]).options)
        if (offer := workload.offered(options)) is not None:
            offered = max(offered, offer)
        elif any(metric.unit in _BULK and metric.better == "higher" for metric in workload.metrics_with(options)):
            return StudyLoad(True)
    return StudyLoad(False, offered)


async def examine(labs: Labs, topology: Topology, profile: Profile, load: StudyLoad) -> Fitness:
    """Look at most `TIMES` times; one good look is enough, for what a machine does once it can do."""
    if backends.backend_of(profile) == "netem" or (profile.only_shaped and not (profile.rate and load.bulk)):
        return Fitness(profile.name, "fits", "nothing of it depends on this machine's speed alone")
    looks: list[CapacityLook] = []
    while len(looks) < capacity.TIMES:
        looks.append(await _loaded(labs, topology, profile, load))
        if holds(profile, looks[-1]):
            return Fitness(profile.name, "fits", seen(profile, looks[-1:]), looks=looks)
    if profile.only_shaped:
        chosen = await capacity.choose(labs, topology, profile)
        better = chosen.rate if chosen.rate < (profile.rate or 0) else None
        return Fitness(profile.name, "short", seen(profile, looks), better, looks)
    state: Literal["late", "drops"] = "drops" if all(look.trouble for look in looks) else "late"
    for rate in _slower(profile):
        tried = await _loaded(labs, topology, auto.at(profile, rate), load)
        if holds(auto.at(profile, rate), tried):
            return Fitness(profile.name, state, seen(profile, looks), rate, looks)
    return Fitness(profile.name, state, seen(profile, looks), None, looks)


def _slower(profile: Profile) -> tuple[Rate, ...]:
    if profile.rate is None:
        return _TRIED
    return tuple(Rate(profile.rate // by) for by in _SLOWER if profile.rate // by >= auto.LEAST)


async def _loaded(labs: Labs, topology: Topology, profile: Profile, load: StudyLoad) -> CapacityLook:
    if load.bulk:
        return await bulk(labs, topology, profile)
    rate = min(max(int(load.offered), _LIGHT), (profile.rate or auto.MOST) // 2)
    return await datagrams(labs, topology, profile, size=_SIZE, rate=rate)


def seen(profile: Profile, looks: Sequence[CapacityLook]) -> str:
    """What the looks met, in words: the best first, for it says what the machine can do."""
    ordered = sorted(looks, key=lambda look: -margin(profile, look))
    if profile.only_shaped:
        shares = ", ".join(f"{100 * look.goodput / (profile.carried or 1):.1f}" for look in ordered)
        return f"one TCP stream over the bare link reached {shares} % of {profile.carried}; {100 * capacity.FILLS:g} % is asked"
    if ordered[0].late is None:
        return ordered[0].trouble or "no packet was held"
    late = ", ".join(f"{1e3 * look.late.p99:.2f}" for look in ordered if look.late)
    words = f"one packet in a hundred left the emulator {late} ms late or more"
    if ordered[0].trouble and "dropped" in ordered[0].trouble:
        words = f"{ordered[0].trouble}; {words}"
    return f"{words}; {capacity.allowed(profile):.2f} ms is the bound"
