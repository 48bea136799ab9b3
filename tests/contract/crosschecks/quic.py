"""QUIC: what quinn says it received, against what the receiving node's interface counted, and the download against that.

Where the receiving socket had no room, what it refused is between one datagram for each refusal and what is missing of all
that was sent: a refused piece may hold many. Without a refusal both bounds are one.
"""

from __future__ import annotations

import json

from contract.crosschecks import AGREE, Crosscheck, Seen

_HEADERS = 20 + 8  # IPv4, UDP

_LEAST, _MOST = 1 + 8 + 1 + 16 + 2 + 2, 1 + 8 + 4 + 16 + 2 + 8 + 2
"""Bytes of each datagram that are not download: flags, connection ID, packet number, AEAD tag (RFC 9000, 17.3; RFC 9001,
5.3), and of a STREAM frame type and stream ID, offset, length (RFC 9000, 19.8)."""

_TOGETHER = 64
"""The most datagrams that the kernel gives a socket in one piece, which counts as one where the socket has no room for it
(UDP_GRO, which quinn asks for; UDP_GRO_CNT_MAX in net/ipv4/udp_offload.c)."""


def agrees(seen: Seen) -> None:
    client, server = (json.loads(seen.outputs[name]) for name in ("client", "server"))
    counted = seen.payload(seen.ends.target, "rx", _HEADERS)
    said = client["udp_received"]["bytes"]
    sent = server["udp_sent"]["datagrams"]
    missing = sent - client["udp_received"]["datagrams"]
    unread = seen.counted[seen.ends.target]["unread"]
    size = said / client["udp_received"]["datagrams"]
    assert said + unread * size <= (1 + AGREE) * counted, (said, unread, counted)
    assert said + min(missing, unread * _TOGETHER) * size >= (1 - AGREE) * counted, (said, unread, missing, counted)

    # What was sent and did not arrive is what the sender says was lost, with the probes of path MTU discovery that failed.
    lost = sum(connection["lost"] + connection["mtu_probes"][1] for connection in server["connections"])
    assert abs(missing - lost) <= AGREE * sent, (missing, lost, sent)

    # Each datagram carries download and its own overhead. What was read is counted before the datagrams are, so it is never
    # more than they carried; it is less while a lost datagram holds back what came behind it, which the next looks mend, and by
    # what was sent again although it had arrived. So the half of the looks that were last is right where the best of them is.
    again = max(0, lost - missing) * size
    looks = [look for look in client["arrived"] if look["time"] > seen.reading.warmup + seen.reading.window / 2]
    shares = []
    for look in looks:
        came, read = look["udp_received"], look["bytes"]
        most, least = (came["bytes"] - overhead * came["datagrams"] for overhead in (_LEAST, _MOST))
        assert read <= most, look
        shares.append(read / (least - again))
    assert max(shares) >= 1 - AGREE, shares

    # With next to no warm-up, all that was read is in the window. A look that a busy core made later than half a step is in
    # no window.
    ended = seen.reading.warmup + seen.reading.window
    last = min(client["arrived"], key=lambda look: abs(look["time"] - ended))
    assert abs(seen.value("goodput") * seen.reading.window / 8 - last["bytes"]) <= AGREE * last["bytes"], last


CROSSCHECKS = [
    Crosscheck("quic", agrees, {"duration": "1 s", "warmup": "1 ms", "handshakes": 2}),
    Crosscheck(
        "quic",
        agrees,
        {"duration": "1 s", "warmup": "1 ms", "handshakes": 2, "connections": 3, "gso": False},
        name="three-no-gso",
    ),
]
