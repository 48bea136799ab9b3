"""Chooses the traffic of composed studies: workloads, with the options that a link or counted time asks for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from tunnelmark.plan.files import Files
from tunnelmark.plan.load import load_profile

_SLOW, _HALF = 200_000_000, "50 %"
"""Below that rate of a link, in bit/s, UDP is offered at that share of it; the workload's own rate is 100 Mbit/s."""

_COUNTED_RATE, _BURST = "9600 kbit/s", 8
"""UDP by counted time: one datagram of 1,200 bytes a millisecond, or as many in bursts of that many.

iperf3 wakes once a millisecond to send what is due (`--pacing-timer`), so that at this rate it never wakes for nothing, and never sends a
datagram more or less than the other build's.
"""


@dataclass(frozen=True, slots=True)
class Traffic:
    """A workload of a composed study, with options that differ from its own; `name`: "" means the workload's own."""

    workload: str
    options: Mapping[str, str | int] = field(default_factory=dict)
    name: str = ""


COUNTED = (
    Traffic("udp", {"rate": _COUNTED_RATE}),
    Traffic("udp", {"rate": _COUNTED_RATE, "burst": _BURST}, "udp-bursts"),
)
"""Open loops, in which no build changes what is sent when: datagrams one by one, and bursts, over which batches show."""


def usual(workloads: Iterable[str], profiles: Sequence[str], files: Files) -> tuple[Traffic, ...]:
    """Return the traffic of these workloads over these profiles.

    UDP is offered at half the link's rate if a link cannot carry twice the workload's own. A flood over a slow link
    loses most of what is offered with every VPN, and says nothing of any.
    """
    carried = [load_profile(profile, files).carried for profile in profiles]
    known = [rate for rate in carried if rate is not None]
    udp = {"rate": _HALF} if len(known) == len(carried) and min(known) < _SLOW else {}
    return tuple(Traffic(name, udp if name == "udp" else {}) for name in dict.fromkeys(workloads))


def counted(workloads: Sequence[str]) -> tuple[Traffic, ...]:
    """Return the traffic of these workloads by counted time; without any, that of `COUNTED`."""
    if not workloads:
        return COUNTED
    chosen = dict.fromkeys(workloads)
    of_udp = COUNTED if "udp" in chosen else ()
    return (*of_udp, *(Traffic(name) for name in chosen if name != "udp"))
