"""Where loss bounds a TCP stream, the page says whether its window or its round trips make the distance to direct."""

from __future__ import annotations

from dataclasses import replace

from tunnelmark.analyse.analysis import judge
from tunnelmark.analyse.model import Analysis, Bottleneck
from tunnelmark.record.results import MetricInfo, SampleRow
from tunnelmark.report import travels
from unit.analyse.test_bottleneck import QUIET
from unit.builders import TCP, Study

WATCHED = (
    MetricInfo("cwnd", "KiB", "mean congestion window of the sender", "higher", "ratio", False),
    MetricInfo("rtt", "ms", "mean round-trip time", "lower", "ratio", False),
)


def losing(windows: dict[str, float], trips: dict[str, float], what: str = "loss") -> Analysis:
    """tinc loses packets; `windows` in KiB and `trips` in ms, by arm."""
    study = Study(arms=("direct", "tinc"), same_as={}, workloads=(replace(TCP, metrics=(*TCP.metrics, *WATCHED)),))
    results = study.results()
    rows = tuple(
        replace(
            row,
            limits=QUIET,
            samples=(
                *row.samples,
                SampleRow("cwnd", "KiB", windows[row.arm]),
                SampleRow("rtt", "ms", trips[row.arm]),
            ),
        )
        for row in results.trials
    )
    found = judge(replace(results, trials=rows))
    return replace(found, bound_by={key: Bottleneck(what, "the link") for key in found.bound_by})  # type: ignore[arg-type]


def said(found: Analysis) -> str:
    (table,) = travels.tables(found)
    return "\n".join(table.said).replace("\N{NO-BREAK SPACE}", " ")


def test_a_smaller_window_at_the_same_round_trip_is_named_as_the_cause() -> None:
    text = said(losing({"direct": 4_000, "tinc": 125}, {"direct": 16.5, "tinc": 16.0}))
    assert "Mean window: direct 4,000 KiB and tinc 125 KiB. Mean round trip under that load: direct 16.5 ms and" in text
    assert text.endswith("So the distance to direct comes from the window, not from longer round trips.")


def test_longer_round_trips_at_the_same_window_are_named_as_the_cause() -> None:
    text = said(losing({"direct": 130, "tinc": 125}, {"direct": 16.0, "tinc": 80.0}))
    assert text.endswith("So the distance to direct comes from longer round trips, not from the window.")


def test_where_both_differ_neither_is_named() -> None:
    text = said(losing({"direct": 250, "tinc": 125}, {"direct": 16.0, "tinc": 32.0}))
    assert "Mean window" in text
    assert "So the distance" not in text


def test_nothing_is_said_where_the_link_and_no_loss_bounds_direct() -> None:
    found = losing({"direct": 4_000, "tinc": 125}, {"direct": 16.5, "tinc": 16.0})
    bounds = {key: Bottleneck("link") if key[0] == "direct" else bound for key, bound in found.bound_by.items()}
    assert "window" not in said(replace(found, bound_by=bounds))


def test_nothing_is_said_where_no_loss_bounds_an_arm() -> None:
    assert "window" not in said(losing({"direct": 4_000, "tinc": 125}, {"direct": 16.5, "tinc": 16.0}, "sender's core"))


def test_of_a_stream_that_sent_nothing_again_no_window_is_said_to_be_cut() -> None:
    found = losing({"direct": 130, "tinc": 3_000}, {"direct": 16.0, "tinc": 80.0})
    rows = tuple(
        replace(
            row,
            samples=tuple(
                replace(sample, value=0.0 if row.arm == "tinc" else 7.0) if sample.metric == "retransmits" else sample
                for sample in row.samples
            ),
        )
        for row in found.results.trials
    )
    repaired = replace(judge(replace(found.results, trials=rows)), bound_by=found.bound_by)
    assert "Mean window" in said(found) and "Mean window" not in said(repaired)
