"""TCP: the bytes that iperf3 says it received, against what the receiving nodes' interfaces counted."""

from __future__ import annotations

import json

from contract.looks import AGREE, Look, Seen

_HEADERS = 20 + 20 + 12  # IPv4, TCP, its timestamps


def agrees(seen: Seen) -> None:
    ends = [json.loads(text)["end"] for name, text in seen.outputs.items() if name.startswith("server")]
    said = sum(end["sum_received"]["bytes"] for end in ends)
    # Every node receives something in a ring; acknowledgements have no payload, and do not count.
    counted = sum(seen.payload(node, "rx", _HEADERS) for node in seen.ends.nodes)
    assert abs(said - counted) <= AGREE * counted + 100_000, f"{said} said, {counted:.0f} counted"
    assert 0 < seen.value("mss") <= seen.mtu - _HEADERS + 12


def used_bbr(seen: Seen) -> None:
    assert set(seen.reading.congestion_control) == {"bbr"}
    assert seen.value("goodput") > 0


LOOKS = [
    Look("tcp", agrees, {"duration": "3 s"}),
    # Longer, because what six streams have on their way when their receivers stop counting was 1.1 % of 2 s once.
    Look("tcp", agrees, {"duration": "4 s", "flows": "ring"}, name="ring"),
    Look("tcp", agrees, {"duration": "2 s", "streams": 4}, name="streams"),
    Look("tcp", used_bbr, {"duration": "1 s", "congestion_control": "bbr"}, name="bbr"),
]
