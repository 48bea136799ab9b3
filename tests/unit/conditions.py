"""Studies of several conditions with a known truth: what each arm's goodput is multiplied by in each, and what fails there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tunnelmark.analyse import judge
from tunnelmark.analyse.model import Analysis
from tunnelmark.record.results import Results, SampleRow, TrialRow
from unit.builders import PROFILE, TCP, Study

FIRST, SECOND = "gigabit", "lossy"
PROFILES = tuple(replace(PROFILE, name=name, title=name) for name in (FIRST, SECOND))
STUDY = Study(
    arms=("direct", "direct-again", "tinc", "nebula", "openvpn"),
    workloads=(TCP,),
    profiles=PROFILES,
    tcp={"tinc": 0.5, "nebula": 0.8},
    noise=0.01,
    block_noise=0.2,
    blocks=8,
)

Factors = Mapping[tuple[str, str, int | None], float]
"""By arm, profile and block (None: all blocks): what its goodput is multiplied by; of arm `*`, that of all arms that have none."""


def results(study: Study, factors: Factors, fails: frozenset[tuple[str, str, int]] = frozenset()) -> Results:
    """The study's results under these factors; `fails` are arms, profiles and blocks in which the arm failed."""
    found = study.results()
    return replace(found, trials=tuple(_changed(row, factors, fails) for row in found.trials))


def analysed(study: Study, factors: Factors, fails: frozenset[tuple[str, str, int]] = frozenset()) -> Analysis:
    return judge(results(study, factors, fails))


def _changed(row: TrialRow, factors: Factors, fails: frozenset[tuple[str, str, int]]) -> TrialRow:
    if (row.arm, row.profile, row.block) in fails:
        return replace(
            row,
            outcome="failed",
            samples=(),
            first_packet={},
            reason="not-ready",
            message="no ping",
            hint="see the log",
        )
    keys = [(arm, row.profile, block) for arm in (row.arm, "*") for block in (row.block, None)]
    factor = next((factors[key] for key in keys if key in factors), 1.0)
    return replace(row, samples=tuple(_times(sample, factor) for sample in row.samples))


def _times(sample: SampleRow, factor: float) -> SampleRow:
    return replace(sample, value=sample.value * factor) if sample.metric == "goodput" else sample
