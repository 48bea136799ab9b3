"""One-way delays: the probes and the load that arrived by its account, against what the nodes' interfaces counted."""

from __future__ import annotations

import json

from contract.crosschecks import AGREE, Crosscheck, Seen

_SIZES = (400, 1000)
_HEADERS = 20 + 8  # IPv4, UDP
_QUESTIONS = 50_000  # bytes that the target may get of them, beside megabytes of load


def agrees(seen: Seen) -> None:
    client, server = ([json.loads(line) for line in seen.outputs[name].splitlines()] for name in ("client", "server"))
    load = sum(
        (trial["sent"] - trial["lost"] + trial["duplicates"] + trial["dropped"]) * trial["size"]
        for trial in client
        if trial["kind"] in ("trial", "load")
    )
    counted = seen.payload(seen.ends.target, "rx", _HEADERS)
    assert abs(_probes(server) + load - counted) <= AGREE * counted + _QUESTIONS
    counted = seen.payload(seen.ends.source, "rx", _HEADERS)
    assert abs(_probes(client) + client[-1]["answers"] - counted) <= AGREE * counted
    for way in ("forward", "back"):
        assert 0 < seen.value(f"{way}_p50_idle_1000") <= seen.value(f"{way}_max_idle_1000")
        if seen.clean and not seen.reading.starved:
            assert seen.value(f"{way}_loss_idle_400") == 0


def _probes(said: list[dict[str, object]]) -> int:
    """Bytes of payload of the probes that arrived at that end."""
    total = 0
    for line in said:
        if line["kind"] == "delays":
            sizes, delays = line["sizes"], line["delays_ns"]
            assert isinstance(sizes, list)
            assert isinstance(delays, list)
            total += sum(sizes[place % len(sizes)] for place, delay in enumerate(delays) if delay is not None)
    return total


CROSSCHECKS = [
    Crosscheck(
        "latency",
        agrees,
        {"sizes": list(_SIZES), "load": ["0 %", "50 %"], "duration": "1 s"},
        alone=True,
        in_time=False,
    )
]
