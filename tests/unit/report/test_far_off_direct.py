"""A block in which direct itself was far from its usual value is named, because it widens every ratio to direct."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tunnelmark.analyse import judge
from tunnelmark.record.results import TrialRow
from tunnelmark.report import far_off_direct
from unit.builders import TCP, Study

STUDY = Study(
    arms=("direct", "direct-again", "tinc", "nebula"),
    workloads=(TCP,),
    tcp={"tinc": 0.5, "nebula": 0.8},
    noise=0.02,
    blocks=8,
)


@pytest.mark.parametrize(
    ("slow", "named"),
    [({"direct", "direct-again"}, True), (set[str](), False), ({"tinc"}, False), ({"tinc", "nebula"}, False)],
)
def test_a_block_is_named_if_direct_was_the_one_that_fell(slow: set[str], named: bool) -> None:
    results = STUDY.results()
    rows = tuple(
        replace(row, samples=tuple(replace(one, value=one.value / 9) for one in row.samples))
        if row.block == 3 and row.arm in slow
        else row
        for row in results.trials
    )
    said = far_off_direct.sentences(judge(replace(results, trials=rows)))
    assert len(said) == named
    if named:
        assert "direct itself had" in said[0] and "in block 3, and" in said[0]
        assert "(direct-again " in said[0], "its twin in that block"


def test_a_block_in_which_direct_was_a_little_off_is_not_blamed_for_another_in_which_the_vpns_fell() -> None:
    """Held by the link, direct scatters so little that 0.1 % less is far off; it moves no ratio."""

    def goodput(row: TrialRow, value: float) -> float:
        if row.arm in ("direct", "direct-again"):
            return 1e9 * (0.999 if row.block == 5 else 1 + 1e-6 * row.block)
        return value / 9 if row.block == 3 else value

    results = STUDY.results()
    rows = tuple(
        replace(row, samples=tuple(replace(one, value=goodput(row, one.value)) for one in row.samples))
        for row in results.trials
    )
    assert far_off_direct.sentences(judge(replace(results, trials=rows))) == []
