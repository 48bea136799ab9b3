"""UDP at a fixed rate: the datagrams that iperf3 says it received, against what the receiving interface counted."""

from __future__ import annotations

import json

from contract.crosschecks import AGREE, Crosscheck, Seen

_LENGTH = 1000
_HEADERS = 20 + 8  # IPv4, UDP


def agrees(seen: Seen) -> None:
    said = json.loads(seen.outputs["server"])["end"]["streams"][0]["udp"]
    received = said["packets"] - said["lost_packets"]
    # What found no room in the socket had come through the interface: a server that was kept waiting did not read it.
    unread = seen.counted[seen.ends.target]["unread"]
    counted = seen.payload(seen.ends.target, "rx", _HEADERS) / _LENGTH
    # iperf3's own control connection counts, too
    assert abs(received + unread - counted) <= max(10, AGREE * counted), (received, unread, counted)
    sent = seen.payload(seen.ends.source, "tx", _HEADERS) / _LENGTH
    # The workload leaves the warm-up out, and nobody knows when the socket was full.
    missing = 100 * (1 - (counted - unread) / sent)
    assert abs(seen.value("lost") - missing) <= 1 + 100 * unread / sent, (seen.value("lost"), missing, unread)


CROSSCHECKS = [Crosscheck("udp", agrees, {"rate": "20 Mbit/s", "length": "1000 B", "duration": "2 s"})]
