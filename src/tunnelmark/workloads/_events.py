"""Turns faults that a user asks for into a schedule of events: for each fault its begin and its end. Pure."""

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
"""All kinds of faults."""

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
"""For each fault that lasts: the event that begins it, and the event that ends it."""

INSTANT: tuple[FaultKind, ...] = ("restart", "restart-fresh", "restart-control")
"""Faults that by default last no time: the killed daemons are started again at once."""


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault of a node (or of EVERY_NODE), `at` seconds after the client's start, which lasts for `outage` seconds."""

    at: float
    kind: FaultKind
    node: str
    outage: float = 0.0

    @property
    def end(self) -> float:
        """When the event that ends the fault begins, in seconds after the client's start."""
        return self.at + (self.outage if self.kind in PAIRS else 0.0)

    @property
    def events(self) -> tuple[Event, ...]:
        """The fault's events in order. A restart without an outage is a single event."""
        if self.kind not in PAIRS or (self.kind in INSTANT and not self.outage):
            return (Event(self.at, self.kind, self.node),)  # type: ignore[arg-type]  # each of these is an event, too
        begin, end = PAIRS[self.kind]
        return Event(self.at, begin, self.node), Event(self.end, end, self.node)


def schedule(faults: Iterable[Fault]) -> tuple[Event, ...]:
    """Return the events of all faults, sorted by time; events at the same time keep the order of the faults."""
    return tuple(sorted((event for fault in faults for event in fault.events), key=lambda event: event.at))
