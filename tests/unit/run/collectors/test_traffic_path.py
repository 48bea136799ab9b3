"""Which way bytes went, from what arrived at both ends."""

from __future__ import annotations

from collections import Counter

import pytest

from tunnelmark.model.metrics import Sample
from tunnelmark.model.path_looks import DIRECT, RELAYED
from tunnelmark.run.collectors.traffic_path import TCP, Arrivals, directly_from, shares, totals

OTHERS = {"a": "b", "b": "a"}


def arrived(inside: float, over_tcp: float = 0.0, **outside: int) -> Arrivals:
    return Arrivals(inside, Counter(outside), over_tcp)


def test_what_the_other_end_sent_went_directly():
    found = shares(totals({"a": arrived(0), "b": arrived(100_000, a=106_000)}, OTHERS))
    assert found == {DIRECT: 100, RELAYED: 0, TCP: 0}


def test_what_a_third_node_sent_was_relayed():
    found = shares(totals({"a": arrived(50_000, s=53_000), "b": arrived(50_000, over_tcp=53_000, s=53_000)}, OTHERS))
    assert (found[DIRECT], found[RELAYED]) == (0, 100)
    assert found[TCP] == 50


def test_what_third_nodes_chat_brings_nothing_inside():
    found = shares(totals({"a": arrived(0), "b": arrived(100_000, a=106_000, s=90_000)}, OTHERS))
    assert (found[DIRECT], found[RELAYED]) == (100, 0)


def test_a_path_that_changed_is_divided():
    found = shares(totals({"a": arrived(0), "b": arrived(100_000, a=40_000, s=66_000)}, OTHERS))
    assert (found[DIRECT], found[RELAYED]) == (40, 60)


def test_senders_that_nothing_knows_raise_neither_share():
    found = shares(totals({"a": arrived(0), "b": arrived(100_000, **{"a": 20_000, "?": 86_000})}, OTHERS))
    assert (found[DIRECT], found[RELAYED]) == (20, 0)


def test_of_little_nothing_is_said():
    assert shares(totals({"a": arrived(0), "b": arrived(60_000, a=63_000)}, OTHERS)) == {}


@pytest.mark.parametrize(
    ("relayed", "moment"), [((100, 100, 5, 0), 2), ((0, 0), 0), ((0, 100, 0), 2), ((0, 50), None), ((), None)]
)
def test_directly_is_from_the_first_look_that_no_other_path_follows(relayed: tuple[float, ...], moment: float | None):
    series = [
        Sample(metric, value, float(time))
        for time, share in enumerate(relayed)
        for metric, value in ((DIRECT, 100 - share), (RELAYED, share))
    ]
    assert directly_from(series) == moment


def test_what_is_inside_one_look_late_is_no_other_path():
    looks = [(90, 0), (100, 0), (80, 0)]
    series = [
        Sample(m, v, float(t)) for t, look in enumerate(looks) for m, v in zip((DIRECT, RELAYED), look, strict=True)
    ]
    assert directly_from(series) == 0
