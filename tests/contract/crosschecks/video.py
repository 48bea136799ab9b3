"""Video: the packets that RIST's receiver says it got, against what the interfaces counted and what was recorded."""

from __future__ import annotations

import math
import re

from contract.crosschecks import AGREE, Crosscheck, Seen
from tunnelmark.workloads import _rist
from tunnelmark.workloads.video import DATAGRAM

_RTP = 12 + 8  # RTP's header and GRE's, as RIST's main profile has them (found by capture: datagrams of 1,336 bytes)
_UDP, _IP = 8, 20
_PAYLOAD = DATAGRAM + _RTP + _UDP
_BUFFER = 0.5  # seconds that a receiver has for what is late: one without a core for longer plays without it
_REPORT = 62 + _UDP + _IP  # bytes of a report, which are of 52 and 72 bytes in turn


def agrees(seen: Seen) -> None:
    received = _rist.received(seen.outputs["receiver"])
    sent, arrived = _datagrams(seen, seen.ends.source, "tx"), _datagrams(seen, seen.ends.target, "rx")
    said = received.delivered + received.duplicates + received.late
    missed = seen.value("recovered") + seen.value("lost")
    # Of a datagram in fragments that did not come, the interface may have counted one; what was asked for may be lost, too.
    orphans = seen.value("retries") + seen.value("lost") if _fragments(seen) > 1 else 0
    assert abs(said - arrived) <= AGREE * arrived + orphans, f"{said} said, {arrived:.1f} counted"
    assert missed <= sent - arrived + orphans + 1, f"{missed} missed, {sent:.1f} sent, {arrived:.1f} arrived"
    got = re.search(r"^got (\d+) bytes$", seen.outputs["recorder"], re.MULTILINE)
    assert got is not None
    assert received.delivered == math.ceil(int(got[1]) / DATAGRAM)
    if seen.lossy:
        assert seen.value("recovered") > 0
        assert seen.value("first_time") < 100
    elif seen.clean and seen.paused < _BUFFER:
        assert seen.value("quality") == seen.value("first_time") == 100
        assert seen.value("lost") == seen.value("retries") == seen.value("frozen") == 0
        assert seen.value("ssim") > 0.98


def _fragments(seen: Seen) -> int:
    """In how many packets a datagram of the stream goes through the overlay's interface."""
    return math.ceil(_PAYLOAD / ((seen.mtu - _IP) // 8 * 8))


def _datagrams(seen: Seen, node: str, way: str) -> float:
    """The stream's datagrams that an interface counted, from its packets and bytes: the others are reports."""
    packets = seen.counted[node][f"{way}_packets"]
    size = seen.counted[node][f"{way}_bytes"] - packets * seen.header[node][way]
    each, fragments = _PAYLOAD + _fragments(seen) * _IP, _fragments(seen)
    return (size - _REPORT * packets) / (each - fragments * _REPORT)


CROSSCHECKS = [Crosscheck("video", agrees, {"duration": "3 s", "buffer": f"{_BUFFER} s"})]
