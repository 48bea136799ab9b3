"""TCP: the bytes that iperf3 says it received, against what the receiving nodes' interfaces counted."""

from __future__ import annotations

import json

import pytest

from contract.looks import AGREE, Look, Seen

_HEADERS = 20 + 20 + 12  # IPv4, TCP, its timestamps


def agrees(seen: Seen) -> None:
    ends = [json.loads(text)["end"] for name, text in seen.outputs.items() if name.startswith("server")]
    said = sum(end["sum_received"]["bytes"] for end in ends)
    # Every node receives something in a ring; acknowledgements have no payload, and do not count.
    counted = sum(seen.payload(node, "rx", _HEADERS) for node in seen.ends.nodes)
    assert abs(said - counted) <= AGREE * counted + 100_000, f"{said} said, {counted:.0f} counted"
    steps = [sample for sample in seen.reading.samples if sample.metric == "goodput" and sample.time is not None]
    mean = sum(step.value for step in steps) / len(steps)
    assert seen.value("goodput") == pytest.approx(mean, rel=AGREE)
    assert seen.value("mss") <= seen.mtu - _HEADERS + 12


def agrees_and_used_bbr(seen: Seen) -> None:
    agrees(seen)
    assert set(seen.reading.congestion_control) == {"bbr"}


LOOKS = [
    Look("tcp", agrees, {"duration": "2 s"}),
    Look("tcp", agrees, {"duration": "1 s", "flows": "ring"}, name="ring"),
    # Few streams: what each one's receive buffer holds at the end, up to 6 MiB, was counted but never read.
    Look("tcp", agrees, {"duration": "2 s", "streams": 2}, name="streams"),
    Look("tcp", agrees_and_used_bbr, {"duration": "1 s", "congestion_control": "bbr"}, name="bbr"),
]
