"""Claims that this machine's processor decides: which ratios are compared where it limits a side, and what needs several cores."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tunnelmark.analyse.model import Analysis, Bottleneck
from tunnelmark.claims.measured import RunValues
from tunnelmark.claims.model import Cell, ClaimsFile
from unit.claims.test_claims_of_a_run import FILE, TCP_SETTING, claims, outcomes, run, written

__all__ = ["claims"]  # a fixture


def bound(tinc: Bottleneck, bare: Bottleneck) -> Analysis:
    """Tinc has half of the bare link, as there, where its processor held it, too."""
    bound_by = {("tinc", TCP_SETTING): tinc, ("direct", TCP_SETTING): bare}
    return replace(run(nebula=0.6), bound_by=bound_by)


CORE, LINK = Bottleneck("receiver's core"), Bottleneck("link")


def test_a_ratio_of_what_the_processor_limits_and_what_the_link_limits_is_not_compared(claims: ClaimsFile) -> None:
    """Also where the processor limited it there: on a faster machine the ratio is another."""
    found = outcomes(claims, bound(CORE, LINK))["share.tinc"]
    assert found.outcome == "not testable"
    assert found.reason.startswith(
        "Tinc, one stream, gigabit: the receiver's core is the limit here, and the link that of Bare"
    )
    assert found.reason.endswith("so how fast this machine is would be in the ratio")
    assert outcomes(claims, bound(LINK, LINK))["share.tinc"].outcome == "held"
    unlike = outcomes(claims, bound(CORE, Bottleneck("unknown")))["share.tinc"]
    assert unlike.outcome == "not testable", "nothing says that the core holds the bare link, too"


def test_what_the_emulator_limits_here_is_not_compared_with_what_the_link_limits_there(claims: ClaimsFile) -> None:
    found = outcomes(claims, bound(Bottleneck("loss", "inside the VPN"), Bottleneck("emulator")))["share.tinc"]
    assert found.outcome == "not testable" and "the emulator is" in found.reason


def test_how_fast_the_processor_is_cancels_where_it_limits_both_sides(tmp_path: Path) -> None:
    claims = written(tmp_path, FILE.replace("Nebula = [880", "Nebula = [500"))
    bound_by = {("nebula", TCP_SETTING): CORE, **bound(CORE, LINK).bound_by}
    values = RunValues(claims, replace(run(nebula=0.6), bound_by=bound_by))
    tinc, nebula, bare = (Cell("tcp", "base", name) for name in ("Tinc", "Nebula", "Bare"))
    assert values.obstacle({tinc: 1, nebula: -1}, "ratio") == ""
    assert values.obstacle({tinc: 1, bare: -1}, "ratio") != ""


def test_such_a_ratio_is_shown_where_a_slow_processor_can_only_have_worked_against_it(tmp_path: Path) -> None:
    claim = 'id = "x"\nplace = "p"\nsays = "s"\ntest = "ratio"\nquantity = "tcp"\nconditions = ["base"]'
    least = written(
        tmp_path, f'{FILE}\n[[claim]]\n{claim}\narms = ["Tinc"]\nover = [{{ arm = "Bare" }}]\nleast = 0.3\n'
    )
    found = outcomes(least, bound(CORE, LINK))["x"]
    assert found.outcome == "held" and "so how fast this machine is would be in the ratio" in found.despite


def test_a_transfer_that_a_slow_processor_makes_longer_is_not_excused_where_longer_is_claimed(tmp_path: Path) -> None:
    quantity = '[quantity.download]\ntitle = "a download"\nunit = "s"\nkind = "time"\nbetter = "lower"\nworkload = "tcp"\nmetric = "goodput"'
    claims = written(tmp_path, f"{FILE}\n{quantity}\n")
    values = RunValues(claims, bound(CORE, LINK))
    tinc, bare = (Cell("download", "base", name) for name in ("Tinc", "Bare"))
    assert "would be in the ratio" in values.obstacle({tinc: 1, bare: -1}, "ratio", (tinc,))


def test_what_needs_several_cores_is_not_asked_of_a_node_that_has_one(tmp_path: Path) -> None:
    claims = written(tmp_path, FILE.replace('metric = "goodput"\n', 'metric = "goodput"\nseveral_cores = true\n', 1))
    analysis = run()
    assert outcomes(claims, analysis)["share.tinc"].outcome == "held"
    one = replace(analysis.results, plan=replace(analysis.results.plan, cores=1))
    assert "a node has one core here" in outcomes(claims, replace(analysis, results=one))["share.tinc"].reason
    two = replace(analysis.results, plan=replace(analysis.results.plan, cores=2))
    placed = replace(two, environment={"lab": {"placement": {"pair": {"cores_per_node": 1}}}})
    assert outcomes(claims, replace(analysis, results=two))["share.tinc"].outcome == "held"
    assert "a node has one core here" in outcomes(claims, replace(analysis, results=placed))["share.tinc"].reason, (
        "2 asked"
    )
    hosts = replace(one, environment={"hosts": {"a": {}, "b": {}}})
    assert outcomes(claims, replace(analysis, results=hosts))["share.tinc"].outcome == "held"
