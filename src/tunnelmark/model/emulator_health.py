"""Judges whether the emulator kept up: how late packets left it, and how many it dropped without being asked. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from tunnelmark.plan.model import Profile

LATE_P99 = 1000.0
"""The limit for the 99th percentile of lateness, in us. Beyond it the emulator does not do what the profile says.

On a quiet machine the percentile is 100 us. If other work takes the cores, it is milliseconds: then the link's delay is
not the profile's.
"""

LATE_SHARE = 0.05
"""The same limit as a share of the direction's delay; the larger of the two applies."""


def directions_to(reports: Iterable[Mapping[str, Any]], target: str) -> Iterator[Mapping[str, Any]]:
    """Yield the directions of emulators' reports that lead to a node.

    A direction is known by its target: where all nodes of a link but one send in it, its name is `all to c`.
    """
    return (each for report in reports for each in report["directions"] if each["name"].endswith(f" to {target}"))


def bound(profile: Profile) -> float:
    """Return the limit for the 99th percentile of lateness on this profile, in microseconds."""
    return max(LATE_P99, *(1e6 * LATE_SHARE * way.transit for way in (profile.forward, profile.back)))


_RECEIVING = ("rx_dropped", "socket_dropped")
_SENDING = ("tx_dropped", "refused")
"""Counters of packets that a port sends to its node. Packets to a node whose interface is down count here, too."""


def unplanned(report: Mapping[str, Any], away: Collection[str] = ()) -> int:
    """Return how many packets the emulator and its ports dropped since its start that no profile or event asked for.

    `away` names the ports to interfaces that the trial's own events take down: packets not sent there do not count.
    """
    ports = sum(
        int(port.get(fault, 0))
        for port in report["ports"]
        for fault in (*_RECEIVING, *(() if port.get("name") in away else _SENDING))
    )
    inside = sum(int(each["dropped"].get(name, 0)) for each in report["directions"] for name in ("memory", "oversize"))
    return ports + inside


def trouble(reports: Sequence[Mapping[str, Any]], away: Collection[str] = ()) -> str | None:
    """Say how many packets the first faulty emulator dropped unasked since its start (`unplanned`); None if none did.

    Lateness is not judged here: `model.grades` judges it for each metric.
    """
    for report in reports:
        if dropped := unplanned(report, away):
            return f"the emulator dropped {dropped} packets unasked{_without_priority(report)}"
    return None


def whose(direction: Mapping[str, Any]) -> str:
    """Say how late a direction's packets would have left without the machine's pauses, as the end of a sentence.

    `direction`: one of the `directions` of an emulator's report. "" if no pause explains any of the largest lateness.
    """
    late, own = direction["lateness_us"], direction.get("own_lateness_us")
    if own is None or own["max"] >= late["max"]:
        return ""
    return f"; without the machine's pauses {own['p99'] / 1e3:.2f} ms for 99 %, at worst {own['max'] / 1e3:.2f} ms"


def _without_priority(report: Mapping[str, Any]) -> str:
    """Say that the emulator ran without real-time priority; "" if it had it."""
    scheduler = str(report.get("scheduler", "fifo"))
    return "" if scheduler.startswith("fifo") else f"; it ran without real-time priority: {scheduler}"
