"""Of a rate's ratio it is said how much is cheaper packets, and how much is a core that is used more."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tunnelmark.analyse import judge
from tunnelmark.analyse.model import Analysis, Bottleneck, Scenario
from tunnelmark.record.results import MetricInfo, SampleRow
from tunnelmark.report import cheaper_or_busier, travels
from unit.builders import TCP, Study

METRICS = tuple(
    MetricInfo(f"{name}_{end}", unit, "", "lower", "difference", False)
    for name, unit in (("cpu", "ms/s"), ("cpu_per_gb", "s/GB"))
    for end in ("source", "target")
)
TAKES = {"old": 10.0, "new": 5.0, "other": 2.0}
USED = {"old": 500.0, "new": 750.0, "other": 900.0}


def analysed(new: float = 0.6, end: str = "source") -> Analysis:
    """A study of two builds of tinc, and of nebula, of which the CPU is known at one end."""
    study = Study(
        arms=("direct", "direct-again", "old", "new", "other"),
        vpns={"old": "tinc", "new": "tinc", "other": "nebula"},
        tcp={"old": 0.2, "new": new, "other": 0.9},
        noise=0.01,
        workloads=(replace(TCP, metrics=(*TCP.metrics, *METRICS)),),
    )
    results = study.results()
    rows = [
        replace(
            row,
            samples=(
                *row.samples,
                SampleRow(f"cpu_{end}", "ms/s", USED.get(row.arm, 0.0)),
                SampleRow(f"cpu_per_gb_{end}", "s/GB", TAKES.get(row.arm, 0.0)),
            ),
        )
        for row in results.trials
    ]
    return judge(replace(results, trials=tuple(rows)))


def said(analysis: Analysis, metric: str = "goodput") -> tuple[str, ...]:
    setting = Scenario("gigabit", "pair", "tcp")
    return cheaper_or_busier.sentences(analysis, setting, analysis.cell("direct", setting, metric).metric)


def test_both_factors_are_named_and_their_product_is_the_ratio() -> None:
    (sentence,) = said(analysed())
    assert sentence.startswith(("new is 3× old: ", "new is 3.0", "new is 2.9"))
    assert sentence.endswith(
        "at the sender 2.00× because a gigabyte takes 5.00 s of CPU, not 10.0, times 1.50× because 0.75 cores are used, not 0.50."
    )


def test_the_receiver_has_its_own_factors() -> None:
    (sentence,) = said(analysed(end="target"))
    assert ": at the receiver 2.00× because" in sentence and "sender" not in sentence


@pytest.mark.parametrize(("new", "metric"), [(0.2, "goodput"), (0.6, "retransmits")])
def test_nothing_is_said_of_builds_that_do_not_differ_or_of_what_is_no_rate(new: float, metric: str) -> None:
    assert said(analysed(new), metric) == ()


def test_it_is_below_the_table_of_what_bound_each() -> None:
    bound = {("new", Scenario("gigabit", "pair", "tcp")): Bottleneck("receiver's core")}
    tables = travels.tables(replace(analysed(), bound_by=bound))
    (goodput,) = (table for table in tables if table.metric.name == "goodput")
    assert any("cores are used" in text for text in goodput.said)
