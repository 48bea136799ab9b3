"""Checks before a study whether this machine can carry each of its links, by a short test with a load like the study's.

If it cannot, the check looks for a lower rate that the machine can carry.
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
"""The divisors by which a link's rate is lowered, one after the other, to find a rate that the machine can carry."""

_TRIED = (Rate(100_000_000), Rate(10_000_000))
"""Rates that are tried for a link without a rate: that of the profile fast-ethernet, and a tenth of it."""

_LIGHT = Rate(4_000_000)
"""The least load in bit/s of UDP payload, in packets of _SIZE bytes: enough for a 99th percentile of lateness."""

_SIZE = 1200

_CARRIED = 0.9
"""The largest load that a link is tried with, as a share of its rate: with headers, datagrams of _SIZE fill 95 to 97 %."""

_BULK = ("bit/s", "packets/s")
"""Units of rates. A workload with a metric in them that states no offered load sends as fast as the path allows."""


@dataclass(frozen=True, slots=True)
class StudyLoad:
    """The heaviest load of a study on one of its links: as much as it carries (`bulk`), or else `offered` bit/s of UDP."""

    bulk: bool
    offered: float = 0.0


@dataclass(frozen=True, slots=True)
class Fitness:
    """The result for a profile: whether the machine can carry it.

    `state`: `fits`; `short` (TCP does not fill a shaped link); `late` (packets leave late, which disturbs trials,
    depending on their metrics); `drops` (the emulator drops packets unasked, which makes trials void).
    `said`: the result in words. `instead`: a rate that the machine can carry; None if it fits or none was found.
    `looks`: the measurements, for the record.
    """

    profile: str
    state: Literal["fits", "short", "late", "drops"]
    said: str
    instead: Rate | None = None
    looks: Sequence[CapacityLook] = ()

    def plain(self) -> dict[str, Any]:
        """Return the result as a JSON object, without the profile's name, for the record and the cache."""
        return {
            "state": self.state,
            "said": self.said,
            "instead": self.instead,
            "looks": [look.plain() for look in self.looks],
        }


def load_of(study: Study, workloads: Mapping[str, Workload[Any]], profile: Profile) -> StudyLoad:
    """Return the heaviest load that the study's workloads send over links of one of its profiles."""
    offered = 0.0
    measured = {use.name for _, over, _, use in study.cells() if over.name == profile.name}
    for use in (use for use in study.workloads if use.name in measured):
        workload = workloads[use.workload]
        options = workload.options.model_validate(use.over(profile).options)
        if (offer := workload.offered(options)) is not None:
            offered = max(offered, offer)
        elif any(metric.unit in _BULK and metric.better == "higher" for metric in workload.metrics_with(options)):
            return StudyLoad(True)
    return StudyLoad(False, offered)


async def examine(labs: Labs, topology: Topology, profile: Profile, load: StudyLoad) -> Fitness:
    """Test whether the machine can carry a link of this profile under this load, and return the result.

    If it cannot, lower rates are tested, and the result has the rate to take instead, if one was found. There are up to
    `capacity.TIMES` tests of the profile; one good test is enough, because it proves that the machine can do it.
    """
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
    if any(direction.rate_trace is not None for direction in (profile.forward, profile.back)):
        return ()  # it is recorded, and no other rate is that link
    if profile.rate is None:
        return _TRIED
    return tuple(Rate(profile.rate // by) for by in _SLOWER if profile.rate // by >= auto.LEAST)


async def _loaded(labs: Labs, topology: Topology, profile: Profile, load: StudyLoad) -> CapacityLook:
    if load.bulk:
        return await bulk(labs, topology, profile)
    rate = min(max(int(load.offered), _LIGHT), int(_CARRIED * (profile.rate or auto.MOST)))
    return await datagrams(labs, topology, profile, size=_SIZE, rate=rate)


def seen(profile: Profile, looks: Sequence[CapacityLook]) -> str:
    """Say in words what the tests measured; the best test comes first, because it shows what the machine can do.

    The best test is the one with the largest `margin` to what the profile demands.
    """
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
