"""UDP at a fixed rate: the datagrams that iperf3 says it received, against what the receiving interface counted."""

from __future__ import annotations

import json

from contract.crosschecks import AGREE, Crosscheck, Seen

_LENGTH = 1000
_HEADERS = 20 + 8  # IPv4, UDP


def agrees(seen: Seen) -> None:
    server, client = (json.loads(seen.outputs[name])["end"] for name in ("server", "client"))
    said, sent_packets = server["streams"][0]["udp"], client["sum_sent"]["packets"]
    received = said["packets"] - said["lost_packets"]
    # What found no room in the socket had come through the interface: a server that was kept waiting did not read it.
    unread = seen.counted[seen.ends.target]["unread"]
    # Once it is told of the end, iperf3's server reads no more: what then waits in its socket is in no counter, and is at most
    # what was sent after the last datagram that it read.
    after = 0 if seen.quiet else sent_packets - said["packets"]
    counted = seen.payload(seen.ends.target, "rx", _HEADERS) / _LENGTH
    room = max(10, AGREE * counted)  # iperf3's own control connection counts, too
    assert -room <= counted - received - unread <= after + room, (received, unread, after, counted)
    sent = seen.payload(seen.ends.source, "tx", _HEADERS) / _LENGTH
    assert abs(sent - sent_packets) <= max(10, AGREE * sent), (sent, sent_packets)
    # The reading's own figure is of the window alone, without the warm-up.
    delivered = seen.value("delivered") * seen.reading.window / 8
    assert received * _LENGTH / 2 <= delivered <= received * _LENGTH + _LENGTH * room, (delivered, received)
    # The workload leaves the warm-up out, and nobody knows when the socket was full.
    missing = 100 * (1 - (counted - unread) / sent)
    over = seen.value("lost") - missing
    assert -1 - 100 * unread / sent <= over <= 1 + 100 * (unread + after) / sent, (over, missing, unread, after)


CROSSCHECKS = [Crosscheck("udp", agrees, {"rate": "20 Mbit/s", "length": "1000 B", "duration": "2 s"})]
