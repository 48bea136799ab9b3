"""Gaps: a link that is down for a known time must give that gap on every arm, and be lost packets on the interfaces."""

from __future__ import annotations

import json

from contract.crosschecks import AGREE, Crosscheck, Seen

_OUTAGE = 0.5
_LATE = 0.15  # seconds that a VPN's own timers may add to what the link alone makes
_HEADERS = 20 + 8  # IPv4, UDP
_PAYLOAD = 64
_INTERVAL = 0.005  # seconds between two probes


def agrees(seen: Seen) -> None:
    _, down, up = (json.loads(line) for line in seen.outputs["events"].splitlines())
    away = up["ended"] - down["begun"]
    assert away >= _OUTAGE - 0.05
    gap = seen.value("gap")
    said = {end: json.loads(seen.outputs[end]) for end in ("client", "server")}
    late = max(one["latest_us"] for one in said.values()) / 1e6  # by which a sender that had no core was behind
    said_so = f"gap {gap:.3f} s, back after {seen.value('back'):.3f} s, link away {away:.3f} s: {down}, {up}"
    assert up["begun"] - down["ended"] - 0.01 <= gap, said_so
    # A gap begins with the last packet before it, which a sender that had no core then sent earlier than it should have sent one.
    assert gap - _INTERVAL - late <= seen.value("back"), said_so
    if seen.quiet:  # else the kernel may make the peer's card ready later, behind what other labs ask of it
        assert max(gap, seen.value("back")) <= away + _LATE + late, said_so
    for end, node in (("server", seen.ends.target), ("client", seen.ends.source)):
        arrived = len(said[end]["arrivals"])
        counted = seen.payload(node, "rx", _HEADERS) / _PAYLOAD
        # On the bare link the kernel's own ARP and IPv6 messages count, too, which greet a link that comes up.
        others = 12 if seen.ends.interfaces[node].startswith("eth") else 3
        assert abs(counted - arrived) <= max(others, AGREE * arrived), (end, counted, arrived)
    sent = sum(one["sent"] for one in said.values())
    arrived = sum(len(one["arrivals"]) for one in said.values())
    assert seen.value("lost") == sent - arrived
    rate = sum(1e9 / one["interval_ns"] for one in said.values())
    # The link's own loss, and what a VPN or a neighbour's queue kept and sent afterwards.
    assert seen.value("lost") <= (gap + 0.05) * rate + (0.05 * sent if seen.lossy else seen.queue_drops)


CROSSCHECKS = [Crosscheck("connect", agrees, {"event": "link-flap", "outage": f"{_OUTAGE} s", "duration": "1.5 s"})]
