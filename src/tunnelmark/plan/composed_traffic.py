"""Chooses the traffic of composed studies: workloads, with the options that a link or counted time asks for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from tunnelmark.plan.files import Files
from tunnelmark.plan.load import load_profile

_SLOW, _HALF = 200_000_000, "50 %"
"""Below that rate of a link, in bit/s, UDP is offered at that share of it; the workload's own rate is 100 Mbit/s."""

_DATAGRAMS, _BLOCKS = {"rate": "9600 kbit/s"}, {"rate": "16384 kbit/s", "length": "16 KiB"}
"""By counted time: one datagram of 1,200 bytes a millisecond, and a block of TCP each 8 ms, which leaves as one super-packet.

iperf3 wakes once a millisecond to send what is due (`--pacing-timer`): with a whole number of milliseconds from one to the next, it never
sends one more or less for one build than for the other.
"""


@dataclass(frozen=True, slots=True)
class Traffic:
    """A workload of a composed study, with options that differ from its own."""

    workload: str
    options: Mapping[str, str] = field(default_factory=dict)


COUNTED = (Traffic("udp", _DATAGRAMS), Traffic("tcp", _BLOCKS))
"""Open loops, in which no build changes what is sent when: packets one by one, and several at once, over which batches show."""


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
    own = {each.workload: each for each in COUNTED}
    return tuple(own.get(name, Traffic(name)) for name in dict.fromkeys(workloads or own))
