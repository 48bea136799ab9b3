"""Faults as people ask for them, and the schedule of events that carries them out: what breaks, then what mends it. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, get_args

from tunnelmark.workloads.base import Event, EventKind

FaultKind = Literal[
    "restart",
    "restart-fresh",
    "restart-control",
    "reboot",
    "link-flap",
    "partition",
    "udp-cut",
    "udp-blocked",
    "nat-rebinding",
    "change-address",
]
KINDS: tuple[FaultKind, ...] = get_args(FaultKind)
"""Every fault that can be asked for."""

PAIRS: dict[FaultKind, tuple[EventKind, EventKind]] = {
    "restart": ("stop", "start"),
    "restart-fresh": ("stop", "start-fresh"),
    "restart-control": ("stop-control", "start-control"),
    "reboot": ("power-off", "power-on"),
    "link-flap": ("link-down", "link-up"),
    "partition": ("partition", "partition-heal"),
    "udp-cut": ("udp-cut", "udp-heal"),
    "udp-blocked": ("udp-blocked", "udp-open"),
}
"""What begins and what ends each fault that lasts."""

INSTANT: tuple[FaultKind, ...] = ("restart", "restart-fresh", "restart-control")
"""Faults that last only if they are asked to: what is killed is started again at once."""


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that happens to a node (or to EVERY_NODE) `at` seconds after the client's start, for `outage` seconds."""

    at: float
    kind: FaultKind
    node: str
    outage: float = 0.0

    @property
    def end(self) -> float:
        """When what mends it begins, in seconds after the client's start."""
        return self.at + (self.outage if self.kind in PAIRS else 0.0)

    @property
    def events(self) -> tuple[Event, ...]:
        """What is done, in order. Daemons that stay dead for no time are restarted in one step."""
        if self.kind not in PAIRS or (self.kind in INSTANT and not self.outage):
            return (Event(self.at, self.kind, self.node),)  # type: ignore[arg-type]  # each of these is an event, too
        begin, end = PAIRS[self.kind]
        return Event(self.at, begin, self.node), Event(self.end, end, self.node)


def schedule(faults: Iterable[Fault]) -> tuple[Event, ...]:
    """The events of all faults, by time; of equal times in the order of the faults."""
    return tuple(sorted((event for fault in faults for event in fault.events), key=lambda event: event.at))
