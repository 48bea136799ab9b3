"""Claims that something else than what the source speaks of would decide here: no claim about such figures is tested."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tunnelmark.analyse.model import Bottleneck
from tunnelmark.claims import run_statistics
from tunnelmark.claims.measured import RunValues
from tunnelmark.claims.model import Cell, Statement
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
    assert "the bare link wakes none" in values.obstacle({TINC: 1, BARE: -1}, "difference")
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


def test_an_effect_that_is_printed_without_its_values_is_what_a_claim_is_held_against(tmp_path: Path) -> None:
    head = 'id = "x"\nplace = "p"\nsays = "{value}"\ntest = "ratio"\nquantity = "cpu"\nconditions = ["base"]\narms = ["Tinc"]'
    more = f'\n[[claim]]\n{head}\nover = [{{ arm = "Bare" }}]\nprinted = 1.4\nwithin = 1.1\n'
    (claim,) = (each for each in written(tmp_path, FILE + more).claims if each.id == "x")
    (statement,) = claim.statements
    assert isinstance(statement, Statement) and statement.printed == 1.4
    assert (statement.low, statement.high) == (1.4 / 1.1, 1.4 * 1.1)


def test_groups_whose_printed_values_are_alike_are_not_compared(tmp_path: Path) -> None:
    head = 'id = "x"\nplace = "p"\nsays = "s"\ntest = "groups"\nquantity = "tcp"\nconditions = ["base"]'
    groups = f'\n[[claim]]\n{head}\ngroups = [["Bare"], ["Nebula", "Tinc"]]\n'
    (claim,) = (each for each in written(tmp_path, FILE + groups).claims if each.id == "x")
    assert [one.cells for one in claim.statements] == [(BARE, TINC)], "900 and 880 are closer than 5 %"


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
