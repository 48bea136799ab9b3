"""Requests over HTTP: nginx's own log has each once and whole, and its bytes are those that the interface counted."""

from __future__ import annotations

import json
from collections import Counter
from datetime import datetime

import pytest

from contract.crosschecks import AGREE, Crosscheck, Seen
from tunnelmark.workloads._vegeta import LATE_MS

_HEADERS = 20 + 20 + 12  # IPv4, TCP, its timestamps
_RATE, _SECONDS, _SHARE = 100, 3, 0.05


def agrees(seen: Seen) -> None:
    lines = [line.split() for line in seen.outputs["server"].splitlines()]
    asked = Counter(line[3] for line in lines)
    requests = _RATE * _SECONDS
    assert asked == {"/short": round(requests * (1 - _SHARE)), "/long": round(requests * _SHARE)}
    assert all(line[5] == "200" and int(line[6]) == {"/short": 1000, "/long": 100_000}[line[3]] for line in lines)
    assert seen.value("errors") == 0
    results = sorted(map(json.loads, seen.outputs["client"].splitlines()), key=lambda one: one["seq"])
    at = [datetime.fromisoformat(one["timestamp"]) for one in results if one["url"]]
    since = [(one - at[0]).total_seconds() - number / _RATE for number, one in enumerate(at)]
    late = sorted(one - min(since) for one in since)
    assert late[len(late) // 2] < LATE_MS / 1e3, "half of them on time, however late single ones were"
    last = at[-round(_RATE * 2.5) :]  # without the warm-up
    span = (last[-1] - last[0]).total_seconds()
    assert seen.value("achieved") == pytest.approx((len(last) - 1) / span, rel=1e-3)
    measured = [sample for sample in seen.reading.samples if sample.metric in ("short", "long")]
    assert len(measured) == requests * 2.5 / _SECONDS  # without the warm-up
    counted = seen.payload(seen.ends.target, "tx", _HEADERS)
    answered = sum(int(line[7]) for line in lines)  # with the heads of the answers
    again = 0 if seen.clean else 0.05 * answered  # segments that are lost are sent again
    assert -AGREE * answered <= counted - answered <= AGREE * answered + again


def connects(seen: Seen) -> None:
    """Without keep-alive each request comes on a connection of its own."""
    lines = [line.split() for line in seen.outputs["server"].splitlines()]
    assert len(lines) == len({line[1] for line in lines}) == 50
    assert all(line[5] == "200" for line in lines)
    assert seen.value("errors") == 0


_OPTIONS = {"rate": _RATE, "duration": "3 s", "warmup": "500 ms", "short": "1 kB", "long": "100 kB", "share": "5 %"}

_CONNECTS = {"rate": 50, "duration": "1 s", "warmup": "0 s", "share": "0 %", "keepalive": False, "tls": True}

# Every request is sent, however late, and that half of them are on time is asked above.
CROSSCHECKS = [
    Crosscheck("http", agrees, _OPTIONS, in_time=False),
    Crosscheck("http", connects, _CONNECTS, "tls", in_time=False),
]
