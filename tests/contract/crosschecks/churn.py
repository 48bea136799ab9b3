"""Churn: links that are down for a known time must give those gaps on every arm; what arrived must be what the interfaces counted.

Without restarts: a daemon that ends takes its interface and its counters with it.
"""

from __future__ import annotations

import json

from contract.crosschecks import AGREE, Crosscheck, Seen

_OUTAGE = 0.5
_EVENTS = 4
_LATE = 0.15  # seconds that a VPN's own timers may add to what the link alone makes
_HEADERS = 20 + 8  # IPv4, UDP
_PAYLOAD = 64
_INTERVAL = 0.008  # seconds between two probes


def agrees(seen: Seen) -> None:
    _, *lines = (json.loads(line) for line in seen.outputs["events"].splitlines())
    looks = [line for line in lines if line["kind"] == "count-holdings"]
    done = [line for line in lines if line["kind"] != "count-holdings"]
    assert len(looks) == _EVENTS + 1
    assert seen.value("events") == len(done) / 2 == _EVENTS
    pairs = list(zip(done[::2], done[1::2], strict=True))
    said = {end: json.loads(seen.outputs[end]) for end in ("client", "server")}
    late = max(one["latest_us"] for one in said.values()) / 1e6  # by which a sender that had no core was behind
    flaps = [(down, up) for down, up in pairs if down["kind"] == "link-down"]
    moves = [(moved, back) for moved, back in pairs if moved["kind"] == "change-address"]
    assert len(flaps) == len(moves) == _EVENTS / 2
    away = [up["ended"] - down["begun"] for down, up in flaps]
    shut = [up["begun"] - down["ended"] for down, up in flaps]
    assert max(shut) - 0.01 <= seen.value("gap_link_flap"), flaps
    if seen.quiet:  # else the kernel may make the peer's card ready later, behind what other labs ask of it
        assert seen.value("gap_link_flap") <= max(away) + _LATE + late + _INTERVAL, (flaps, late)
    # What a VPN makes of a peer's new address is its own: Nebula takes no address back within 2 s (RoamingSuppressSeconds).
    assert seen.value("gap") == max(seen.value("gap_link_flap"), seen.value("gap_change_address"))
    for end, node in (("server", seen.ends.target), ("client", seen.ends.source)):
        arrived = len(said[end]["arrivals"])
        counted = seen.payload(node, "rx", _HEADERS) / _PAYLOAD
        others, gone = 3.0 * _EVENTS, 0.0
        if seen.ends.interfaces[node].startswith("eth"):
            # On the bare link the kernel's own ARP and IPv6 messages count, too, which greet a link that comes up; and what
            # was sent to the address that the node did not have then: it reached the card.
            others *= 4
            gone = sum(back["begun"] - moved["ended"] for moved, back in moves if moved["node"] == node) / _INTERVAL
        assert abs(counted - gone - arrived) <= max(others, AGREE * arrived), (end, counted, arrived, gone)
    sent = sum(one["sent"] for one in said.values())
    arrived = sum(len(one["arrivals"]) for one in said.values())
    assert seen.value("lost_events") + seen.value("lost_else") == sent - arrived
    # Nothing else happened: what was lost at other times is the link's own loss.
    assert seen.value("lost_else") <= (0.05 * sent if seen.lossy else seen.queue_drops)
    held = {node: look["processes"] for node, look in looks[-1]["held"].items()}
    assert held == {node: look["processes"] for node, look in looks[0]["held"].items()}


CROSSCHECKS = [
    Crosscheck(
        "churn",
        agrees,
        {
            "events": ["link-flap", "change-address"],
            "outage": f"{_OUTAGE} s",
            "recover": "2500 ms",
            "every": "3 s",
            "duration": "12 s",
        },
    )
]
