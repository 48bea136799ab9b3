"""UDP at a fixed rate: the datagrams that iperf3 says it received, against what the receiving interface counted."""

from __future__ import annotations

import json

from contract.looks import AGREE, Look, Seen

_LENGTH = 1000
_HEADERS = 20 + 8  # IPv4, UDP


def agrees(seen: Seen) -> None:
    said = json.loads(seen.outputs["server"])["end"]["streams"][0]["udp"]
    received = said["packets"] - said["lost_packets"]
    counted = seen.payload(seen.ends.target, "rx", _HEADERS) / _LENGTH
    assert abs(received - counted) <= max(10, AGREE * counted)  # iperf3's own control connection counts, too
    sent = seen.payload(seen.ends.source, "tx", _HEADERS) / _LENGTH
    assert abs(seen.value("lost") - 100 * (1 - counted / sent)) <= 1


LOOKS = [Look("udp", agrees, {"rate": "20 Mbit/s", "length": "1000 B", "duration": "2 s"})]
