"""Claims that something else than what the source speaks of would decide here: no claim about such figures is tested."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from statistics import fmean

import pytest

from tunnelmark.analyse import judge as analyse
from tunnelmark.analyse.model import Bottleneck
from tunnelmark.claims import run_statistics, verdicts
from tunnelmark.claims.judging import judge
from tunnelmark.claims.measured import RunValues
from tunnelmark.claims.model import Cell, Statement
from tunnelmark.claims.printed import PrintedValues
from tunnelmark.claims.reach import within_reach
from tunnelmark.errors import PlanError
from tunnelmark.record.results import SampleRow
from unit.builders import TCP, Study
from unit.claims.test_claims_of_a_run import FILE, TCP_SETTING, outcomes, run, written

BARE, TINC, NEBULA = (Cell("tcp", "base", name) for name in ("Bare", "Tinc", "Nebula"))
LOW_TINC, LOW_NEBULA = (Cell("tcp", "low", name) for name in ("Tinc", "Nebula"))
AS_LOW = 'study = "quick"\nalso = ["partly"]', '\n[part.partly.profiles]\nlow = "gigabit"\n'


def test_an_arm_that_has_less_without_loss_than_another_has_with_it_is_not_compared_with_it(tmp_path: Path) -> None:
    """A relay that a core holds at 100 Mbit/s cannot beat a link that carries 140 at 5 % of loss, whatever loss does."""

    def reason(text: str) -> str:
        claims = written(tmp_path, text.replace('study = "quick"', AS_LOW[0]) + AS_LOW[1]).as_in("partly")
        return RunValues(claims, run(nebula=0.8)).obstacle({LOW_TINC: 1, LOW_NEBULA: -1}, "ratio")

    assert reason(FILE).startswith("Tinc, one stream, gigabit: even this is less here than Nebula, one stream, Low")
    same_there = FILE.replace("Tinc = [450, 30]", "Tinc = [20, 10]")
    assert reason(same_there) == "", "the source's was held so, too"


def test_a_time_needs_several_cores_only_next_to_the_bare_link(tmp_path: Path) -> None:
    """With one core no daemon is woken on another, which the bare link does not have; two VPNs are woken alike."""
    text = FILE.replace('kind = "rate"\nbetter = "higher"', 'kind = "time"\nbetter = "lower"\nseveral_cores = true')
    analysis = run()
    one = replace(analysis, results=replace(analysis.results, plan=replace(analysis.results.plan, cores=1)))
    values = RunValues(written(tmp_path, text), one)
    assert "need not wake a VPN's program" in values.obstacle({TINC: 1, BARE: -1}, "difference")
    assert values.obstacle({TINC: 1, NEBULA: -1}, "difference") == ""
    assert values.obstacle({BARE: 1}, "difference") == ""


def test_what_a_full_core_decides_is_not_compared_as_it_is_either(tmp_path: Path) -> None:
    text = FILE.replace('metric = "goodput"\n', 'metric = "goodput"\nunless_full = true\n', 1)
    full = replace(run(), bound_by={("tinc", TCP_SETTING): Bottleneck("sender's core")})
    for scale in ("difference", "ratio"):
        reason = RunValues(written(tmp_path, text), full).obstacle({TINC: 1}, scale)
        assert reason.endswith("the sender's core was fully used here, and the figure then depends on this machine")


def test_all_nodes_at_once_fill_the_link_or_are_not_compared(tmp_path: Path) -> None:
    text = FILE.replace('metric = "goodput"\n', 'metric = "goodput"\nall_nodes = true\n', 1)
    claims = written(tmp_path, text)
    lossy = replace(run(), bound_by={("tinc", TCP_SETTING): Bottleneck("loss", "the link's queue")})
    assert RunValues(claims, lossy).obstacle({TINC: 1}, "ratio").endswith("the link is not the limit here")
    full = replace(run(), bound_by={("tinc", TCP_SETTING): Bottleneck("link")})
    assert RunValues(claims, full).obstacle({TINC: 1}, "ratio") == ""


def test_an_arm_that_collapses_without_impairment_is_not_asked_what_it_keeps(tmp_path: Path) -> None:
    """What has a tenth of the bare link's rate, and had half of it there, leaves little for the impairment to take."""

    def reason(tinc: float, *conservative: Cell) -> str:
        claims = written(tmp_path, FILE.replace('study = "quick"', AS_LOW[0]) + AS_LOW[1]).as_in("partly")
        return RunValues(claims, run(tinc=tinc)).obstacle({LOW_TINC: 1, TINC: -1}, "ratio", conservative)

    assert reason(0.1).endswith(
        "it has 10 % of the bare link here, and had 50 % there, so that little is left for the impairment to take"
    )
    assert reason(0.1, TINC) == "", "that only speaks against the claim"
    assert reason(0.3) == "", "three fifths of the source's share are no collapse"


def test_a_rate_that_falls_because_more_is_lost_than_there_is_not_compared(tmp_path: Path) -> None:
    """A program that empties its socket too late loses packets, and TCP then sends as slowly as they make it."""
    again = '[quantity.again]\ntitle = "sent again"\nunit = "%"\nkind = "share"\nbetter = "lower"\nworkload = "tcp"\nmetric = "retransmit_share"\n'
    table = '\n[[table]]\nplace = "tab 2"\nquantity = "again"\nconditions = ["base"]\nrows = { Tinc = [THERE] }\n'
    text = FILE.replace("[quantity.cpu]", f"{again}\n[quantity.cpu]")
    late = Bottleneck("loss", "the VPN's receive buffer")
    named = replace(TCP, metrics=(TCP.metrics[0], replace(TCP.metrics[1], name="retransmit_share")))
    results = Study(arms=("direct", "tinc", "nebula"), same_as={}, workloads=(named,)).results()
    rows = [replace(row, samples=tuple(map(_as_share, row.samples))) for row in results.trials]
    found = analyse(replace(results, trials=tuple(rows)))
    analysis = replace(found, bound_by={("tinc", TCP_SETTING): late, ("direct", TCP_SETTING): late})

    def reason(there: str, *conservative: Cell) -> str:
        values = RunValues(written(tmp_path, text + table.replace("THERE", there)), analysis)
        return values.obstacle({TINC: 1, NEBULA: -1}, "ratio", conservative)

    measured = RunValues(written(tmp_path, text), analysis).of(Cell("again", "base", "Tinc"))
    assert measured is not None
    here = fmean(measured.values.values())
    assert reason(str(here / 2)).endswith(f"is sent again, and {here / 2:.2g} % there")
    assert reason(str(here / 2), TINC) == "", "that only speaks against the claim"
    assert reason(str(here / 1.5)) == "", "that moves TCP's rate by less than a ratio may differ"


def _as_share(sample: SampleRow) -> SampleRow:
    return replace(sample, metric="retransmit_share") if sample.metric == "retransmits" else sample


def test_a_claim_that_a_usual_length_cannot_test_is_left_to_the_long_one(tmp_path: Path) -> None:
    text = FILE.replace('id = "share"\n', 'id = "share"\nusual = "a run is too short"\n')
    claims, analysis = written(tmp_path, text), run()
    long = replace(analysis, results=replace(analysis.results, plan=replace(analysis.results.plan, full=True)))
    usual, full = ({one.claim.id: one for one in verdicts.on_claims(each, claims).judged} for each in (analysis, long))
    assert (usual["share.tinc"].outcome, usual["share.tinc"].reason) == ("not testable", "a run is too short")
    assert full["share.tinc"].outcome == "held"
    reached = [{one.id for one in within_reach(claims, each.results.plan)} for each in (analysis, long)]
    assert "share.tinc" in reached[1] - reached[0]


def test_what_is_measured_twice_counts_twice(tmp_path: Path) -> None:
    """A bare link that is slow in one of a block's two trials is not as slow as that."""
    twice = Study(arms=("direct", "direct-again", "tinc"), tcp={"direct-again": 0.5}, workloads=(TCP,)).results()
    values = RunValues(written(tmp_path, FILE), analyse(twice))
    measured = values.of(BARE)
    assert measured is not None
    cells = {row.block: row for row in twice.trials if row.arm == "direct"}
    (one, other) = (
        next(
            each.value
            for row in twice.trials
            if (row.arm, row.block) == (arm, 1)
            for each in row.samples
            if each.metric == "goodput" and each.time is None
        )
        for arm in ("direct", "direct-again")
    )
    assert len(measured.values) == len(cells)
    assert measured.values[1] == pytest.approx((one + other) / 2e6)


def test_a_condition_is_repeated_by_a_longer_workload_where_a_run_has_it(tmp_path: Path) -> None:
    text = FILE.replace('title = "gigabit"\n', 'title = "gigabit"\nworkloads = { tcp = "tcp-long" }\n')
    claims = written(tmp_path, text)
    assert claims.workload(TINC, ["tcp"]) == "tcp"
    assert claims.workload(TINC, ["tcp", "tcp-long"]) == "tcp-long"
    assert claims.workload(LOW_TINC, ["tcp", "tcp-long"]) == "tcp"


def test_an_effect_that_is_printed_without_its_values_is_what_a_claim_is_held_against(tmp_path: Path) -> None:
    head = 'id = "x"\nplace = "p"\nsays = "{value}"\ntest = "ratio"\nquantity = "cpu"\nconditions = ["base"]\narms = ["Tinc"]'
    more = f'\n[[claim]]\n{head}\nover = [{{ arm = "Bare" }}]\nprinted = 1.4\nwithin = 1.1\n'
    (claim,) = (each for each in written(tmp_path, FILE + more).claims if each.id == "x")
    (statement,) = claim.statements
    assert isinstance(statement, Statement) and statement.printed == 1.4
    assert (statement.low, statement.high) == (1.4 / 1.1, 1.4 * 1.1)


def test_an_order_is_judged_without_the_arms_that_had_other_paths_there(tmp_path: Path) -> None:
    claims = written(tmp_path, FILE.replace("[absent]", '[other_paths]\nNebula = "through relays there"\n\n[absent]'))
    order = outcomes(claims, run(nebula=0.2))["order"]
    assert order.outcome == "held", "Nebula is last here"
    assert [effect.statement.cells[-1].arm for effect in order.effects] == ["Tinc"]
    printed = judge(order.claim, PrintedValues.of_source(claims))
    assert len(printed.effects) == 1
    (whole,) = (claim for claim in claims.claims if claim.id == "order")
    assert len(judge(whole, PrintedValues.of_source(claims)).effects) == 2, "of the source's own figures all are asked"


def test_groups_whose_printed_values_are_alike_are_not_compared(tmp_path: Path) -> None:
    head = 'id = "x"\nplace = "p"\nsays = "s"\ntest = "groups"\nquantity = "tcp"\nconditions = ["base"]'
    groups = f'\n[[claim]]\n{head}\ngroups = [["Bare"], ["Nebula", "Tinc"]]\n'
    (claim,) = (each for each in written(tmp_path, FILE + groups).claims if each.id == "x")
    assert [one.cells for one in claim.statements] == [(BARE, TINC)], "900 and 880 are closer than 5 %"


def test_a_bare_link_that_this_machine_does_not_carry_is_not_what_is_kept_of_it(tmp_path: Path) -> None:
    """Without an impairment its rate is the machine's, also where no core was found to be full."""
    claims = written(tmp_path, FILE)
    slow = {"gigabit": {"state": "slow", "instead": None, "said": "one TCP stream reached 70 %"}}
    analysis = run(nebula=0.6)
    environment = {**analysis.results.environment, "measured": {"links": slow}}
    analysis = replace(analysis, results=replace(analysis.results, environment=environment))
    unknown = {("direct", TCP_SETTING): Bottleneck("unknown")}
    assert "does not carry a full load" in outcomes(claims, replace(analysis, bound_by=unknown))["share.tinc"].reason
    link = {("direct", TCP_SETTING): Bottleneck("link")}
    assert outcomes(claims, replace(analysis, bound_by=link))["share.tinc"].outcome == "held"


def test_a_time_is_compared_as_it_is_only_where_a_program_s_timers_set_it(tmp_path: Path) -> None:
    text = FILE.replace('kind = "rate"\nbetter = "higher"', 'kind = "time"\nbetter = "lower"', 1)
    head = 'id = "x"\nplace = "p"\nsays = "s"\ntest = "value"\nquantity = "tcp"\nconditions = ["base"]'
    more = f'\n[[claim]]\n{head}\narms = ["Tinc"]\nleast = 150.0\nmost = 270.0\n'
    with pytest.raises(PlanError, match="compares a time of other hardware as it is"):
        written(tmp_path, text + more)
    timed = text.replace('metric = "goodput"\n', 'metric = "goodput"\ntimers = true\n', 1)
    assert any(each.id == "x" for each in written(tmp_path, timed + more).claims)


def test_an_arm_whose_figures_something_else_decides_has_a_part_of_a_claim_of_its_own(tmp_path: Path) -> None:
    """So what cannot be tested of one arm does not void what a claim says of the others."""
    head = 'id = "x"\nplace = "p"\nsays = "The bare link is first."\ntest = "groups"\nquantity = "tcp"\nconditions = ["base"]'
    groups = f'\n[[claim]]\n{head}\ngroups = [["Bare"], ["Nebula", "Tinc"]]\nalone = ["Tinc"]\nmargin = 1.0\n'
    decided = '\n[[difference]]\ntopic = "programs"\nsays = "s"\narms = ["Tinc"]\ndecides = "another Tinc"\n'
    claims = written(tmp_path, FILE + groups + decided)
    assert {each.id: each.says for each in claims.claims if each.id.startswith("x")} == {
        "x": "The bare link is first. (All but Tinc.)",
        "x.tinc": "The bare link is first. (Tinc.)",
    }
    found = outcomes(claims, run(nebula=0.4))
    assert [one.cells for one in found["x"].claim.statements] == [(BARE, NEBULA)]
    assert found["x"].outcome == "held"
    assert (found["x.tinc"].outcome, "another Tinc" in found["x.tinc"].reason) == ("not testable", True)
    unnamed = groups.replace('["Nebula", "Tinc"]', '["Nebula"]')
    for wrong in (unnamed, groups.replace('test = "groups"', 'test = "ratio"')):
        with pytest.raises(PlanError, match="is in no group, pair or order of arms"):
            written(tmp_path, FILE + wrong)


def test_a_feature_that_a_program_has_got_since_is_not_held_against_its_source(tmp_path: Path) -> None:
    head = 'id = "x"\nplace = "p"\nsays = "s"\ntest = "feature"\nuntestable = "it changed"'
    more = f"\n[[claim]]\n{head}\n[claim.criteria]\nmesh = ['mesh']\n[claim.features]\nnebula = [false]\n"
    found = outcomes(written(tmp_path, FILE + more), run())["x.nebula"]
    assert (found.outcome, found.reason) == ("not testable", "it changed")


def test_differences_name_the_arms_of_the_study_that_repeats_a_part(tmp_path: Path) -> None:
    difference = '\n[[difference]]\ntopic = "programs"\nsays = "s"\narms = ["Tinc"]\n'
    part = '\n[part.partly]\narms = { Tinc = "nebula" }\n'
    claims = written(tmp_path, FILE.replace('study = "quick"', AS_LOW[0]) + difference + part)
    assert [each.arms for each in claims.differences] == [("tinc",)]
    assert [each.arms for each in claims.as_in("partly").differences] == [("nebula",)]


def test_the_least_of_a_trial_s_seconds_is_the_best_of_so_many_runs() -> None:
    assert run_statistics.made_of([3.0, 2.0, 4.0], "seconds-min") == 2.0
