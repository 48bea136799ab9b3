"""Chooses the traffic of composed studies: workloads, with the options that a link or counted time asks for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from tunnelmark.plan.files import Files
from tunnelmark.plan.load import load_profile

_SLOW, _HALF = 200_000_000, "50 %"
"""Below that rate of a link, in bit/s, UDP is offered at that share of it; the workload's own rate is 100 Mbit/s."""

_COUNTED = "9600 kbit/s"
"""The rate of UDP by counted time: a datagram of 1,200 bytes a millisecond, an open loop in which no build changes what is sent when.

iperf3 wakes once a millisecond to send what is due (`--pacing-timer`), so at this rate it never wakes for nothing, and never sends one
more or less for one build than for the other. Over TCP, how a build and the scheduler batch packets changes from trial to trial.
"""


@dataclass(frozen=True, slots=True)
class ComposedWorkload:
    """A workload of a composed study, with options that differ from its own."""

    workload: str
    options: Mapping[str, str] = field(default_factory=dict)


def usual(workloads: Iterable[str], profiles: Sequence[str], files: Files) -> tuple[ComposedWorkload, ...]:
    """Return the traffic of these workloads over these profiles.

    UDP is offered at half the link's rate if a link cannot carry twice the workload's own. A flood over a slow link
    loses most of what is offered with every VPN, and says nothing of any.
    """
    return tuple(
        ComposedWorkload(name, {"rate": _HALF} if name == "udp" and _slow(profiles, files) else {})
        for name in dict.fromkeys(workloads)
    )


def _slow(profiles: Sequence[str], files: Files) -> bool:
    carried = [load_profile(profile, files).carried for profile in profiles]
    known = [rate for rate in carried if rate is not None]
    return len(known) == len(carried) and min(known) < _SLOW


def counted(workloads: Sequence[str]) -> tuple[ComposedWorkload, ...]:
    """Return the traffic of these workloads by counted time; without any, that of `udp`."""
    return tuple(
        ComposedWorkload(name, {"rate": _COUNTED} if name == "udp" else {})
        for name in dict.fromkeys(workloads or ["udp"])
    )
