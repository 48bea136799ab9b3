"""Differences from a source: which apply to a run, which concern a claim, and which leave nothing to be tested."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tunnelmark.claims import differences, verdicts
from tunnelmark.claims.model import ClaimsFile, Judged
from tunnelmark.claims.originals import SourceDifference
from tunnelmark.claims.reach import within_reach
from tunnelmark.report import claim_tables
from unit.claims.test_claims_of_a_run import FILE, claims, run, written

__all__ = ["claims"]  # a fixture

BOTH = SourceDifference("hosts", "both are shorter", workloads=("tcp",))
TINC = SourceDifference("programs", "tinc is older", arms=("tinc",))
NEBULA = SourceDifference("traffic", "nebula's stream is short", arms=("nebula",), conditions=("base",), length="usual")
LONG = SourceDifference("traffic", "a long one", arms=("tinc",), length="full")


def judged(claims: ClaimsFile, *known: SourceDifference) -> dict[str, Judged]:
    found = verdicts.on_claims(run(nebula=0.6), replace(claims, differences=known))
    return {each.claim.id: each for each in found.judged}


def test_a_claim_names_the_differences_that_concern_its_figures_by_the_numbers_of_the_list(claims: ClaimsFile) -> None:
    found = judged(claims, TINC, NEBULA, BOTH, LONG)
    assert found["share.tinc"].differences == (2,), "hosts come first, and concern all claims alike"
    assert found["share.nebula"].differences == (3,)


def test_only_those_that_apply_to_the_run_are_numbered(claims: ClaimsFile) -> None:
    known = replace(claims, differences=(replace(BOTH, one_machine=True), LONG, NEBULA))
    plan = run(nebula=0.6).results.plan
    assert [each.says for each in differences.that_apply(known, plan, one_machine=True)] == [BOTH.says, NEBULA.says]
    assert [each.says for each in differences.that_apply(known, plan, one_machine=False)] == [NEBULA.says]


@pytest.mark.parametrize("decided", [NEBULA, replace(NEBULA, conditions=())])
def test_a_difference_that_decides_a_figure_leaves_its_claims_untested(
    claims: ClaimsFile, decided: SourceDifference
) -> None:
    found = judged(claims, replace(decided, decides="it still rises"))
    assert found["share.nebula"].outcome == "not testable"
    assert found["share.nebula"].reason.endswith(": it still rises")
    assert found["share.nebula"].differences == ()
    assert found["share.tinc"].outcome == "held"


def test_what_did_not_hold_leads_to_the_differences_and_what_held_does_not(tmp_path: Path) -> None:
    known = """
[[difference]]
topic = "traffic"
says = "Nebula's stream is short, and tinc's."
arms = ["Nebula", "Tinc"]
"""
    file = written(tmp_path, FILE + known)
    found = verdicts.on_claims(run(nebula=0.6), file)
    lines = {line.id: line.found for line in claim_tables.lines(file, found.judged)}
    assert lines["share.nebula"].endswith("; see difference 1")
    assert found.judged[0].claim.id == "share.tinc" and "see difference" not in lines["share.tinc"]
    (concluded,) = claim_tables.conclusions(file, found.judged)
    assert concluded.fared.endswith("; see difference 1")


def test_a_difference_that_decides_is_out_of_reach_before_anything_is_measured(tmp_path: Path) -> None:
    known = '[[difference]]\ntopic = "traffic"\nsays = "It is short."\narms = ["Nebula"]\ndecides = "it still rises"\n'
    plan = run(nebula=0.6).results.plan
    plain, decided = (
        {claim.id for claim in within_reach(written(tmp_path, FILE + more), plan)} for more in ("", known)
    )
    assert {"share.nebula", "order"} == plain - decided
