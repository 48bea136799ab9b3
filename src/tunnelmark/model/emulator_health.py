"""Says whether the emulator kept up: how late packets left, and what was dropped though no profile asked for it. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from tunnelmark.plan.model import Profile

LATE_P99 = 1000.0
"""Microseconds by which 99 % of departures may be late, or the emulator does not do what the profile says.

On a quiet machine it is 100 us. Where other work takes the cores it is milliseconds, and then the link has another
delay than its profile.
"""

LATE_SHARE = 0.05
"""The same as a share of the delay, where that is more."""


def bound(profile: Profile) -> float:
    """The microseconds by which 99 % of departures may be late."""
    return max(LATE_P99, *(1e6 * LATE_SHARE * (way.delay or 0.0) for way in (profile.forward, profile.back)))


_RECEIVING = ("rx_dropped", "socket_dropped")
_SENDING = ("tx_dropped", "refused")
"""What a port counts of packets for its node. The kernel counts there what is sent to a node whose interface is down."""


def unplanned(report: Mapping[str, Any], away: Collection[str] = ()) -> int:
    """The packets that the emulator or its ports dropped though neither a profile nor an event asked for it, since it was started.

    `away` are ports to interfaces that the trial's own events took down: what could not be sent there was to be lost.
    """
    ports = sum(
        int(port.get(fault, 0))
        for port in report["ports"]
        for fault in (*_RECEIVING, *(() if port.get("name") in away else _SENDING))
    )
    inside = sum(int(each["dropped"].get(name, 0)) for each in report["directions"] for name in ("memory", "oversize"))
    return ports + inside


def trouble(reports: Sequence[Mapping[str, Any]], away: Collection[str] = ()) -> str | None:
    """What the emulators lost since they were started, by their latest reports (see `unplanned`); None: nothing. Lateness is graded by metric."""
    for report in reports:
        if dropped := unplanned(report, away):
            return f"the emulator dropped {dropped} packets unasked{_without_priority(report)}"
    return None


def whose(direction: Mapping[str, Any]) -> str:
    """By whose doing a direction's packets were late, where a pause of the machine explains some of it; else nothing."""
    late, own = direction["lateness_us"], direction.get("own_lateness_us")
    if own is None or own["max"] >= late["max"]:
        return ""
    return f"; without the machine's pauses {own['p99'] / 1e3:.2f} ms for 99 %, at worst {own['max'] / 1e3:.2f} ms"


def _without_priority(report: Mapping[str, Any]) -> str:
    """That the kernel refused it real-time priority, if it did; else nothing."""
    scheduler = str(report.get("scheduler", "fifo"))
    return "" if scheduler.startswith("fifo") else f"; it ran without real-time priority: {scheduler}"
