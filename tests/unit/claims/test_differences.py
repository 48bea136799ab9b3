"""Differences from a source: which apply to a run, which concern a claim, and which leave nothing to be tested."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tunnelmark.claims import differences, verdicts
from tunnelmark.claims.model import ClaimsFile, Judged
from tunnelmark.claims.originals import Machine, SourceDifference
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
    known = replace(claims, differences=(replace(BOTH, machine=("one",)), LONG, NEBULA))
    plan = run(nebula=0.6).results.plan

    def said(known: ClaimsFile, *machine: Machine) -> list[str]:
        return [each.says for each in differences.that_apply(known, plan, machine)]

    assert said(known, "one") == [BOTH.says, NEBULA.says]
    assert said(known) == [NEBULA.says]
    shared = replace(claims, differences=(replace(BOTH, machine=("shared cores",)),))
    assert said(shared, "one", "shared cores") == [BOTH.says]
    assert said(shared, "one", "one core a node") == [], "each node had a core of its own"
    of_cpu = (replace(BOTH, workloads=(), quantities=("cpu",)), replace(NEBULA, quantities=("tcp",)))
    assert said(replace(claims, differences=of_cpu)) == [NEBULA.says], "no workload measures CPU"
    lacking = (replace(BOTH, lacks=("tcp-long",)), replace(NEBULA, lacks=("tcp",)))
    assert said(replace(claims, differences=lacking)) == [BOTH.says], "the run has a workload tcp, and none tcp-long"


@pytest.mark.parametrize("decided", [NEBULA, replace(NEBULA, conditions=())])
def test_a_difference_that_decides_a_figure_leaves_its_claims_untested(
    claims: ClaimsFile, decided: SourceDifference
) -> None:
    found = judged(claims, replace(decided, decides="it still rises"))
    assert found["share.nebula"].outcome == "not testable"
    assert found["share.nebula"].reason.endswith(": it still rises")
    assert found["share.nebula"].differences == (1,), "the one that decides it"
    assert found["share.tinc"].outcome == "held"


def test_what_is_not_compared_shows_what_was_found_all_the_same(claims: ClaimsFile) -> None:
    """As it was read: a source's main conclusion was set aside for a reason, next to which no figure stood."""
    known = replace(claims, differences=(replace(NEBULA, decides="it still rises"),))
    found = verdicts.on_claims(run(nebula=0.6), known)
    (effect,) = next(each.effects for each in found.judged if each.claim.id == "share.nebula")
    assert (effect.outcome, effect.blocks) == ("not testable", None) and effect.estimate == pytest.approx(0.6, rel=0.1)
    lines = {line.id: line.found for line in claim_tables.lines(known, found.judged)}
    said = lines["share.nebula"]
    assert (
        said.startswith(f"{effect.estimate:.3f}× [")
        and ", not compared: Nebula, one stream, gigabit: it still rises" in said
    )
    assert said.endswith("; see difference 1")
    assert "not compared" not in lines["share.zerotier"], "there is no value of it"


def test_a_claim_that_held_beside_the_printed_value_says_so(claims: ClaimsFile) -> None:
    """As it was read: 1.05 [1.02-1.08] "held" where 0.984 is printed, as any ratio near it is allowed."""
    found = verdicts.on_claims(run(nebula=0.88), claims)
    lines = {line.id: line.found for line in claim_tables.lines(claims, found.judged)}
    assert lines["share.nebula"].endswith("but the interval leaves out the printed value")
    assert "leaves out" not in lines["share.tinc"], "0.5, as printed"


def test_what_was_decided_leads_to_the_differences_and_what_was_not_does_not(tmp_path: Path) -> None:
    known = """
[[difference]]
topic = "traffic"
says = "Nebula's stream is short, and tinc's."
arms = ["Nebula", "Tinc", "ZeroTier"]
"""
    file = written(tmp_path, FILE + known)
    found = verdicts.on_claims(run(nebula=0.6), file)
    lines = {line.id: line.found for line in claim_tables.lines(file, found.judged)}
    assert lines["share.nebula"].endswith("; see difference 1")
    assert lines["share.tinc"].endswith("; see difference 1")
    assert "see difference" not in lines["share.zerotier"], "it was not tested"
    (concluded,) = claim_tables.conclusions(file, found.judged)
    assert concluded.fared.endswith("; see difference 1")


def test_what_can_only_have_moved_a_figure_the_other_way_is_not_named(claims: ClaimsFile) -> None:
    """Nebula has 0.6 of the bare link here, and had 0.98: a bare link that is lower here is not why, a lower Nebula may be."""
    bare = SourceDifference("hosts", "the bare link has less", arms=("direct",), makes="lower")
    nebula = replace(bare, arms=("nebula",))
    found = judged(claims, bare, nebula, replace(nebula, makes="higher"))
    assert found["share.nebula"].differences == (2,)
    assert found["share.tinc"].differences == (1,), "what held within two bounds may be moved either way"
    assert found["order"].differences == (3,), "of both above Tinc, a lower one is so all the same"


def test_a_difference_that_decides_is_out_of_reach_before_anything_is_measured(tmp_path: Path) -> None:
    known = '[[difference]]\ntopic = "traffic"\nsays = "It is short."\narms = ["Nebula"]\ndecides = "it still rises"\n'
    plan = run(nebula=0.6).results.plan
    plain, decided = (
        {claim.id for claim in within_reach(written(tmp_path, FILE + more), plan)} for more in ("", known)
    )
    assert {"share.nebula", "order"} == plain - decided


def test_a_study_that_repeats_a_part_shows_what_it_measured_of_claims_that_cannot_be_tested(tmp_path: Path) -> None:
    """As it was read: of 48 claims a page had three, all held, and nothing of those whose figures it had, too."""
    text = FILE.replace('study = "quick"', 'study = "whole"\nalso = ["quick"]')
    text = text.replace('id = "order"', 'id = "order"\nuntestable = "links keep the order"')
    found = verdicts.of_run(run(nebula=0.6), written(tmp_path, text))
    assert found is not None
    order = next(each for each in found.judged if each.claim.id == "order")
    assert (order.outcome, order.reason) == ("not testable", "links keep the order")
