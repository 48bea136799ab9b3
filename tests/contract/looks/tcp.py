"""TCP: the bytes that iperf3 says it received, against what the receiving nodes' interfaces counted."""

from __future__ import annotations

import json
from typing import Any

from contract.looks import AGREE, Look, Seen

_HEADERS = 20 + 20 + 12  # IPv4, TCP, its timestamps
_UNDERWAY = (4 + 6) << 20  # bytes of a stream that both sockets hold at most: tcp_wmem and tcp_rmem (tcp(7))


def agrees(seen: Seen) -> None:
    """What was counted is what the receivers say, and no more than the senders say: some was on its way at the end."""
    received, sent = (_bytes(seen, *which) for which in (("server", "sum_received"), ("client", "sum_sent")))
    # Every node receives something in a ring; acknowledgements have no payload, and do not count.
    counted = sum(seen.payload(node, "rx", _HEADERS) for node in seen.ends.nodes)
    room = AGREE * counted + 100_000
    assert received - room <= counted <= sent + room, f"{received} received, {counted:.0f} counted, {sent} sent"
    assert 0 <= sent - received <= _UNDERWAY * sum(len(end["streams"]) for end in _ends(seen, "client")), (
        f"{received} of {sent} sent"
    )
    assert 0 < seen.value("mss") <= seen.mtu - _HEADERS + 12


def _ends(seen: Seen, side: str) -> list[dict[str, Any]]:
    return [json.loads(text)["end"] for name, text in seen.outputs.items() if name.startswith(side)]


def _bytes(seen: Seen, side: str, which: str) -> int:
    return sum(end[which]["bytes"] for end in _ends(seen, side))


def used_bbr(seen: Seen) -> None:
    assert set(seen.reading.congestion_control) == {"bbr"}
    assert seen.value("goodput") > 0


LOOKS = [
    Look("tcp", agrees, {"duration": "3 s"}),
    Look("tcp", agrees, {"duration": "2 s", "flows": "ring"}, name="ring"),
    Look("tcp", agrees, {"duration": "2 s", "streams": 4}, name="streams"),
    Look("tcp", used_bbr, {"duration": "1 s", "congestion_control": "bbr"}, name="bbr"),
]
