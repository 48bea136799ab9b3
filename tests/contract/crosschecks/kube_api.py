"""Pod listings: the API server's audit log has each once and complete, and the list's bytes are those that the interface counted."""

from __future__ import annotations

import json

from contract.crosschecks import AGREE, Crosscheck, Seen
from tunnelmark.workloads._vegeta import LATE_MS

_HEADERS = 20 + 20 + 12  # IPv4, TCP, its timestamps
_REQUESTS, _WARMUP, _RATE = 20, 10, 20
# Bytes of a response beside its body: its head (400), the sizes of its chunks, and 22 for each TLS record of 4 KiB.
_AROUND = 1650


def agrees(seen: Seen) -> None:
    events = [json.loads(line) for line in seen.outputs["apiserver"].splitlines()]
    listed = [event for event in events if event["objectRef"]["resource"] == "pods" and event["verb"] == "list"]
    assert len(listed) == len(events) == _REQUESTS + _WARMUP
    assert {(event["stage"], event["responseStatus"]["code"]) for event in events} == {("ResponseComplete", 200)}
    assert seen.value("errors") == 0
    # The last request may be late by LATE_MS, and then the rate until there is lower.
    assert abs(seen.value("achieved") / _RATE - 1) <= LATE_MS / 1e3 / seen.reading.window
    assert sum(sample.metric == "latency" for sample in seen.reading.samples) == _REQUESTS
    assert seen.value("server_p50") < seen.value("p50")
    counted = seen.payload(seen.ends.target, "tx", _HEADERS)
    answered = len(events) * (seen.value("response") + _AROUND)
    again = 0 if seen.clean else 0.05 * answered  # segments that are lost are sent again
    assert -AGREE * answered <= counted - answered <= AGREE * answered + again


CROSSCHECKS = [Crosscheck("kube-api", agrees, {"requests": _REQUESTS, "rate": _RATE, "warmup": "500 ms"})]
