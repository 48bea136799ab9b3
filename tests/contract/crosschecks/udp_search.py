"""The rate search: every datagram that its trials say arrived, against what the receiving node's interface counted."""

from __future__ import annotations

import json

from contract.crosschecks import AGREE, Crosscheck, Seen

_SIZE = 512
_HEADERS = 20 + 8  # IPv4, UDP
_CONTROL = 50_000  # bytes of questions from one end to the other


def agrees(seen: Seen) -> None:
    said = [json.loads(line) for line in seen.outputs["client"].splitlines()]
    trials = [line for line in said if line["kind"] == "trial"]
    assert {trial["size"] for trial in trials} == {_SIZE}
    # What the receiver's socket dropped, being full, had come through the interface.
    arrived = sum(trial["sent"] - trial["lost"] + trial["duplicates"] + trial["dropped"] for trial in trials)
    counted = seen.payload(seen.ends.target, "rx", _HEADERS)
    assert abs(arrived * _SIZE - counted) <= AGREE * counted + _CONTROL
    found = next(line for line in said if line["kind"] == "found")
    rate = seen.value(f"packets_{_SIZE}_loss_2")
    if (
        found["confirmed"] is None and not seen.quiet
    ):  # a machine that stood still lost more than the bound at every rate
        assert rate == 0
        return
    assert rate == found["confirmed"]["offered"] > 0
    assert found["confirmed"]["lost"] <= 0.02 * found["confirmed"]["sent"]
    assert seen.value(f"bits_{_SIZE}_loss_2") == rate * _SIZE * 8


# 2 %: on the lossy link a search for less ends near zero, which says nothing about the path.
CROSSCHECKS = [
    Crosscheck(
        "udp-search", agrees, {"sizes": [_SIZE], "loss": ["2 %"], "trial": "200 ms", "confirm": "500 ms"}, alone=True
    ),
]
