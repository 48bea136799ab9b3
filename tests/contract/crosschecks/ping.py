"""Round-trip probes: each that is answered is a packet of known size on its way back."""

from __future__ import annotations

import re

import pytest

from contract.crosschecks import AGREE, Crosscheck, Seen

_SIZE = 1000
_HEADERS = 8 + 20  # ICMP and IPv4


def agrees(seen: Seen) -> None:
    answered = sum(sample.metric == "rtt" for sample in seen.reading.samples)
    counted = seen.payload(seen.ends.source, "rx", _HEADERS) / _SIZE
    assert abs(counted - answered) <= max(1, AGREE * counted)
    # ping's own summary, which the reader does not use; its figures have three decimals.
    own = re.search(r"min/avg/max/mdev = ([\d.]+)/([\d.]+)/", seen.outputs["client"])
    assert own is not None
    for metric, value in (("rtt_min", own[1]), ("rtt_mean", own[2])):
        assert seen.value(metric) == pytest.approx(float(value), rel=0.02, abs=0.002), metric
    if seen.clean:
        assert seen.value("loss") == 0


CROSSCHECKS = [Crosscheck("ping", agrees, {"sizes": [_SIZE], "duration": "2 s"})]
