"""Numbers read as people write them."""

from __future__ import annotations

import pytest

from tunnelmark.analyse.missing import Bounds
from tunnelmark.analyse.model import Comparison, Interval, Scenario
from tunnelmark.record.results import MetricInfo
from tunnelmark.report import formatting

GOODPUT = MetricInfo("goodput", "bit/s", "goodput", "higher", "ratio", True)
RTT = MetricInfo("rtt", "ms", "round-trip time", "lower", "ratio", True)
LOSS = MetricInfo("loss", "%", "loss", "lower", "difference", True)
DELAY = MetricInfo("rtt", "ms", "round-trip time", "lower", "difference", True, feels="delay")
JITTER = MetricInfo("jitter", "ms", "jitter", "lower", "difference", True)


def comparison(estimate, low=None, high=None):
    found = Interval(low, high, "bootstrap") if low is not None and high is not None else None
    return Comparison("a", "b", Scenario("p", "t", "w"), "m", (1,), (1.0,), estimate, found, None, None, 1.01, False)


@pytest.mark.parametrize(
    ("metric", "effect", "text"),
    [
        (GOODPUT, (0.61, 0.58, 0.64), "61 % [58–64]"),
        (GOODPUT, (0.9912, 0.988, 0.994), "99.1 % [98.8–99.4]"),
        (GOODPUT, (0.61,), "61.0 %"),
        (GOODPUT, (1.0, 1.0, 1.0), "100 %"),
        (RTT, (2.14, 1.91, 2.33), "2.1× [1.9–2.3]"),
        (RTT, (12.4, 11.0, 13.9), "12× [11–14]"),
        (LOSS, (12.1, 11.8, 12.6), "+12.1 points [11.8 to 12.6]"),
        (LOSS, (0.0, 0.0, 0.0), "0 points"),
        (LOSS, (1.0, -1.0, 3.0), "+1 point [−1 to 3]"),
        (LOSS, (-0.5, -1.0, 0.25), "−0.5 points [−1.0 to 0.2]"),
        (JITTER, (0.031, 0.02, 0.041), "+31 µs [20 to 41]"),
        (GOODPUT, (None,), ""),
        (DELAY, (0.597, 0.57, 0.62), "+597 µs [570 to 620]"),
        (DELAY, (12.3, 11.8, 12.9), "+12.3 ms [11.8 to 12.9]"),
        (GOODPUT, (0.0, 0.0, 0.9), "0 % [0–90]"),
        (GOODPUT, (0.00432, 0.0007, 0.0253), "0.43 % [0.07–2.5]"),
        (GOODPUT, (0.000681,), "0.068 %"),
    ],
)
def test_an_effect_has_as_many_digits_as_it_deserves(metric, effect, text):
    assert formatting.effect(metric, comparison(*effect)).replace("\N{NO-BREAK SPACE}", " ") == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (941.3, "941"), (1234.5, "1,234"), (0.0512, "0.0512"), (-3.5, "−3.50"), (1e-12, "0"), (99.96, "100")],
)
def test_a_number_has_three_digits(value, text):
    assert formatting.number(value) == text


@pytest.mark.parametrize(
    ("unit", "value", "text"),
    [
        ("bit/s", 941e6, "941 Mbit/s"),
        ("bit/s", 2.5e9, "2.50 Gbit/s"),
        ("ms", 0.2, "200 µs"),
        ("ms", 250.0, "250 ms"),
        ("s", 0.034, "34.0 ms"),
        ("%", 12.0, "12.0 %"),
        ("segments", 14.0, "14.0 segments"),
    ],
)
def test_a_value_takes_the_scale_that_suits_it(unit, value, text):
    assert formatting.scale(unit, [value]).value(value).replace("\N{NO-BREAK SPACE}", " ") == text


def test_names_are_listed_as_in_a_sentence():
    assert [formatting.listed(names) for names in (["a"], ["a", "b"], ["a", "b", "c"])] == [
        "a",
        "a and b",
        "a, b and c",
    ]


@pytest.mark.parametrize(
    ("metric", "amount", "text"),
    [
        (GOODPUT, 1.01, "1 %"),
        (GOODPUT, 1.0214, "2.1 %"),
        (RTT, 2.18, "a factor of 2.2"),
        (LOSS, 0.1, "0.1 points"),
        (LOSS, 1.0, "1 point"),
        (LOSS, 54.0, "54 points"),
        (LOSS, 154.0, "more than 100 points"),
        (GOODPUT, 99.0, "a factor of 99"),
        (GOODPUT, 590000.0, "more than a factor of 100"),
    ],
)
def test_the_size_of_a_difference(metric, amount, text):
    assert formatting.size(metric, amount).replace("\N{NO-BREAK SPACE}", " ") == text


@pytest.mark.parametrize(
    ("bounds", "text"),
    [
        (Bounds(1, 0.8, 0.9), "with 1 missing block at worst or best the median is 80.0 % to 90.0 %"),
        (Bounds(2, 0.8, None), "with 2 missing blocks the median is at least 80.0 %"),
        (Bounds(2, None, 0.9), "with 2 missing blocks the median is at most 90.0 %"),
        (Bounds(2, None, None), "the median could be anything with 2 missing blocks"),
    ],
)
def test_what_missing_blocks_leave_of_a_median(bounds, text):
    assert formatting.median_within(GOODPUT, bounds).replace("\N{NO-BREAK SPACE}", " ") == text
