"""TCP: the bytes that iperf3 says it received, against what the receiving node's interface counted."""

from __future__ import annotations

import json

from contract.looks import AGREE, Look, Seen

_HEADERS = 20 + 20 + 12  # IPv4, TCP, its timestamps


def agrees(seen: Seen) -> None:
    said = json.loads(seen.outputs["server"])["end"]["sum_received"]["bytes"]
    counted = seen.payload(seen.ends.target, "rx", _HEADERS)
    assert abs(said - counted) <= AGREE * counted + 100_000  # a lossy link's segments may arrive twice
    steps = [sample for sample in seen.reading.samples if sample.metric == "goodput" and sample.time is not None]
    mean = sum(step.value for step in steps) / len(steps)
    assert abs(seen.value("goodput") - mean) <= AGREE * mean


LOOKS = [Look("tcp", agrees, {"duration": "2 s"})]
