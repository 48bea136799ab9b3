"""Verdicts on a file of claims over runs of a known truth: what held, what this machine cannot say and why, and what is wrong in a file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from textwrap import dedent

import pytest

from tunnelmark.analyse import judge as analyse
from tunnelmark.analyse.model import Analysis, Bottleneck, Scenario
from tunnelmark.claims import reading
from tunnelmark.claims.judging import judge
from tunnelmark.claims.measured import RunValues
from tunnelmark.claims.model import ClaimsFile, Judged, Statement
from tunnelmark.claims.printed import PrintedValues
from tunnelmark.claims.verdicts import of_run, on_claims
from tunnelmark.errors import PlanError
from tunnelmark.report import claim_tables
from unit.builders import PING, PROFILE, TCP, Study

TCP_SETTING = Scenario("gigabit", "pair", "tcp")
OneSided = Callable[..., Judged]

FILE = """\
[source]
authors = "A. Author"
year = 2020
title = "Two VPNs"
study = "quick"

[arms]
Bare = "direct"
Tinc = "tinc"
Nebula = "nebula"

[absent]
ZeroTier = "its program is in no registry"

[condition.base]
title = "gigabit"
profile = "gigabit"

[condition.low]
title = "Low"
profile = "low"
impaired = true

[quantity.tcp]
title = "one stream"
unit = "Mbit/s"
kind = "rate"
better = "higher"
workload = "tcp"
metric = "goodput"
factor = 1e6

[quantity.cpu]
title = "CPU"
unit = "%"
kind = "share"
better = "lower"
unmeasured = "no workload measures it"

[[table]]
place = "tab 1"
quantity = "tcp"
conditions = ["base", "low"]
rows = { Bare = [900, 300], Tinc = [450, 30], Nebula = [880, 30], ZeroTier = [600, nan] }

[[claim]]
id = "share"
place = "tab 1"
says = "{arm} reaches {value}."
test = "ratio"
quantity = "tcp"
conditions = ["base"]
arms = ["Tinc", "Nebula", "ZeroTier"]
over = [{ arm = "Bare" }]

[[claim]]
id = "retention"
place = "tab 1"
says = "{arm} keeps {value}."
test = "ratio"
quantity = "tcp"
conditions = ["low"]
arms = ["Tinc"]
over = [{ condition = "base" }]

[[claim]]
id = "order"
place = "tab 1"
says = "An order."
test = "order"
quantity = "tcp"
conditions = ["base"]
arms = ["Bare", "Nebula", "Tinc"]

[[conclusion]]
says = "VPNs cost something."
place = "the last section"
claims = ["share", "order"]
"""


@pytest.fixture
def claims(tmp_path: Path) -> ClaimsFile:
    return written(tmp_path, FILE)


def written(folder: Path, text: str) -> ClaimsFile:
    (folder / "two.toml").write_text(text)
    return reading.read(folder / "two.toml")


def run(**given: float) -> Analysis:
    study = Study(arms=("direct", "tinc", "nebula"), same_as={}, tcp={"tinc": 0.5, **given}, workloads=(TCP, PING))
    return analyse(study.results())


def outcomes(claims: ClaimsFile, analysis: Analysis) -> dict[str, Judged]:
    values = RunValues(claims, analysis)
    return {claim.id: judge(claim, values) for claim in claims.claims}


def test_an_arm_that_never_worked_is_not_testable_with_what_its_trials_said(claims: ClaimsFile) -> None:
    never = tuple(("tinc", "tcp", block) for block in range(1, 6))
    results = Study(arms=("direct", "tinc", "nebula"), same_as={}, workloads=(TCP, PING), fails=never).results()
    found = outcomes(claims, analyse(results))["share.tinc"]
    assert found.outcome == "not testable"
    assert found.reason.endswith(": every attempt failed here (tinc: no ping from a to b within 10 s)")
    rows = [replace(row, message=f"{row.message}, {row.block}") if row.message else row for row in results.trials]
    unlike = outcomes(claims, analyse(replace(results, trials=tuple(rows))))["share.tinc"]
    assert unlike.reason.endswith(": every attempt failed here")


def test_a_run_says_what_held_and_why_the_rest_cannot_be_told(claims: ClaimsFile) -> None:
    found = outcomes(claims, run(nebula=0.6))
    assert found["share.tinc"].outcome == "held"
    assert found["share.nebula"].outcome == "did not hold"  # 0.98 there
    assert found["share.zerotier"].reason == "its program is in no registry"
    assert found["retention"].reason == "this run has no profile low, which repeats Low"
    assert found["order"].outcome == "held"  # the bare link and Nebula were closer than the margin there: not compared
    assert found["share.tinc"].claim.says == "Tinc reaches 50 %."


def test_what_the_link_held_there_and_the_processor_holds_here_is_not_compared(claims: ClaimsFile) -> None:
    analysis = run(nebula=0.6)
    core = Bottleneck("sender's core")
    analysis = replace(analysis, bound_by={("nebula", TCP_SETTING): core, ("tinc", TCP_SETTING): core})
    found = outcomes(claims, analysis)
    assert (
        found["share.nebula"].reason
        == "Nebula, one stream, gigabit: the sender's core is the limit here, and it is not known whether a processor was the source's"
    )
    assert found["share.tinc"].outcome == "held"  # tinc was held by its processor there, too


def test_a_conclusion_of_the_source_is_shown_with_how_the_claims_that_it_rests_on_fared(claims: ClaimsFile) -> None:
    judged = tuple(outcomes(claims, run(nebula=0.6)).values())
    (line,) = claim_tables.conclusions(claims, judged)
    assert line.fared == "2 held, 1 did not hold, 1 not testable here"
    assert [each.id for each in line.lines] == ["share.tinc", "share.nebula", "share.zerotier", "order"]
    assert "The 3 claims that were tested compare 3 figures of this run" in claim_tables.shared_figures(judged)


def test_a_conclusion_says_how_many_of_its_claims_the_study_has_no_test_of(claims: ClaimsFile) -> None:
    judged = tuple(one for one in outcomes(claims, run(nebula=0.6)).values() if one.claim.id != "order")
    (line,) = claim_tables.conclusions(claims, judged)
    assert line.fared == "1 held, 1 did not hold, 1 not testable here; this study has no test of 1 more"


PART = """
[part.partly]
arms = { Tinc = "nebula" }
profiles = { low = "gigabit" }
"""


def test_a_study_that_repeats_a_part_may_have_other_names(tmp_path: Path) -> None:
    claims = written(tmp_path, FILE.replace('study = "quick"', 'study = "quick"\nalso = ["partly", "other"]') + PART)
    assert claims.as_in("quick") is claims.as_in("other") is claims
    partly = claims.as_in("partly")
    assert partly.arms == {"Bare": "direct", "Tinc": "nebula", "Nebula": "nebula"}
    assert {name: each.profile for name, each in partly.conditions.items()} == {"base": "gigabit", "low": "gigabit"}
    analysis = run(nebula=0.8)
    analysis = replace(analysis, results=replace(analysis.results, plan=replace(analysis.results.plan, study="partly")))
    judged = {each.claim.id: each.outcome for each in on_claims(analysis, claims).judged}
    assert judged["share.tinc"] == "did not hold", "it is the run's nebula"


def test_other_names_of_what_is_not_there_are_refused(tmp_path: Path) -> None:
    wrong = FILE + PART.replace("Tinc", "Tink").replace("low", "lo")
    with pytest.raises(PlanError) as error:
        written(tmp_path, wrong)
    assert "'partly' is not among the studies of `also`" in str(error.value)
    assert "this file has no arm called 'Tink'" in str(error.value)
    assert "this file has no condition called 'lo'" in str(error.value)


def test_what_all_nodes_do_at_once_is_not_compared_where_they_share_one_machine_s_cores(tmp_path: Path) -> None:
    claims = written(tmp_path, FILE.replace('metric = "goodput"\n', 'metric = "goodput"\nall_nodes = true\n', 1))
    analysis = run()
    bound = replace(analysis, bound_by={("tinc", TCP_SETTING): Bottleneck("sender's core")})
    assert outcomes(claims, bound)["share.tinc"].reason == (
        "Tinc, one stream, gigabit: all nodes work at once and share the cores of this machine; "
        "the sender's core is the limit here"
    )
    hosts = replace(bound.results, environment={**bound.results.environment, "hosts": {"a": {}, "b": {}}})
    assert outcomes(claims, replace(bound, results=hosts))["share.tinc"].outcome == "held"


def test_an_arm_with_other_paths_there_is_not_judged_by_a_run(tmp_path: Path) -> None:
    claims = written(tmp_path, FILE.replace("[absent]", '[other_paths]\nTinc = "through relays there"\n\n[absent]'))
    found = outcomes(claims, run(nebula=0.6))
    assert found["share.tinc"].reason == found["retention"].reason == "through relays there"
    assert found["share.nebula"].outcome == "did not hold"
    assert found["order"].reason == "through relays there", "Nebula was too near the bare link to be told from it"
    (share,) = (claim for claim in claims.claims if claim.id == "share.tinc")
    assert judge(share, PrintedValues.of_source(claims)).outcome == "held", "by the source's own figures"


@pytest.fixture
def one_sided(tmp_path: Path) -> OneSided:
    """What is judged of a ratio of Nebula's and another arm's goodput within bounds, the processor holding Nebula and others down."""

    def judged(over: str, bounds: str, *also: str) -> Judged:
        head = 'id = "x"\nplace = "p"\nsays = "s"\ntest = "ratio"\nquantity = "tcp"\nconditions = ["base"]'
        core = Bottleneck("sender's core")
        bound_by = {(arm, TCP_SETTING): core for arm in ("nebula", *also)}
        text = f"{FILE}\n[[claim]]\n{head}\n{over}\n{bounds}\n"
        return outcomes(written(tmp_path, text), replace(run(nebula=0.6), bound_by=bound_by))["x"]

    return judged


HELD_DOWN = "Nebula, one stream, gigabit: the sender's core is the limit here, and it is not known whether a processor was the source's"
NEBULA_OVER_BARE = 'arms = ["Nebula"]\nover = [{ arm = "Bare" }]'
BARE_OVER_NEBULA = 'arms = ["Bare"]\nover = [{ arm = "Nebula" }]'


@pytest.mark.parametrize(("over", "bound"), [(NEBULA_OVER_BARE, "least = 0.3"), (BARE_OVER_NEBULA, "most = 3.0")])
def test_what_holds_against_a_processor_that_is_too_slow_is_shown(one_sided: OneSided, over: str, bound: str) -> None:
    found = one_sided(over, bound)
    assert (found.outcome, found.despite) == ("held", HELD_DOWN)


@pytest.mark.parametrize(
    ("over", "bounds"),
    [
        (NEBULA_OVER_BARE, "least = 0.9"),  # would not hold, and a faster processor may mend that
        (NEBULA_OVER_BARE, "least = 0.3\nmost = 1.2"),
        (NEBULA_OVER_BARE, "most = 0.9"),  # holds, perhaps because the processor is slow
        (BARE_OVER_NEBULA, "most = 1.2"),
        (BARE_OVER_NEBULA, "least = 0.3"),
    ],
)
def test_a_processor_that_is_too_slow_refutes_nothing_and_helps_nothing(
    one_sided: OneSided, over: str, bounds: str
) -> None:
    found = one_sided(over, bounds)
    assert (found.outcome, found.reason) == ("not testable", HELD_DOWN)


def test_a_ratio_whose_two_sides_a_processor_holds_down_is_not_compared(one_sided: OneSided) -> None:
    over_tinc = 'arms = ["Nebula"]\nover = [{ arm = "Tinc" }]'  # tinc was held by its processor there, too
    assert one_sided(over_tinc, "least = 0.3").outcome == "held"
    assert one_sided(over_tinc, "least = 0.3", "tinc").outcome == "not testable"


DOWNLOAD = """
[quantity.download]
title = "a download"
unit = "s"
kind = "time"
better = "lower"
workload = "ping"
metric = "{metric}"

[[table]]
place = "tab 2"
quantity = "download"
conditions = ["base"]
rows = {{ Bare = [8.5], Tinc = [30], Nebula = [9.2] }}

[[claim]]
id = "time"
place = "tab 2"
says = "{{arm}} takes {{value}}."
test = "ratio"
quantity = "download"
conditions = ["base"]
arms = ["Tinc", "Nebula"]
over = [{{ arm = "Bare" }}]
"""


@pytest.mark.parametrize(("feels", "compared"), [("transfer", False), ("delay", True)])
def test_the_time_of_a_transfer_that_the_link_held_there_is_not_compared_where_the_processor_holds_it_here(
    tmp_path: Path, feels: str, compared: bool
) -> None:
    """Nebula's was the link's, and Tinc's its processor's there, too. A delay is not the shorter, the more of the link it has."""
    metrics = tuple(replace(metric, feels=feels) for metric in PING.metrics)
    study = Study(arms=("direct", "tinc", "nebula"), same_as={}, workloads=(TCP, replace(PING, metrics=metrics)))
    core = Bottleneck("sender's core")
    setting = Scenario("gigabit", "pair", "ping")
    bound = {(arm, setting): core for arm in ("nebula", "tinc")}
    claims = written(tmp_path, FILE + DOWNLOAD.format(metric="rtt_p50"))
    found = outcomes(claims, replace(analyse(study.results()), bound_by=bound))
    said = "Nebula, a download, gigabit: the sender's core is the limit here, and it is not known whether a processor was the source's"
    assert (found["time.nebula"].reason == "") if compared else (found["time.nebula"].reason == said)
    assert found["time.tinc"].reason == ""


def test_an_order_that_the_printed_values_reverse_is_asked_for_and_contradicted(tmp_path: Path) -> None:
    text = FILE.replace('arms = ["Bare", "Nebula", "Tinc"]', 'arms = ["Nebula", "Bare", "Tinc", "ZeroTier"]')
    (order,) = (claim for claim in written(tmp_path, text).claims if claim.id == "order")
    pairs = {tuple(cell.arm for cell, _ in each.terms) for each in order.statements if isinstance(each, Statement)}
    assert ("Tinc", "ZeroTier") in pairs, "450 before 600"
    assert ("Nebula", "Bare") not in pairs, "880 before 900 is as good as alike"
    assert judge(order, PrintedValues.of_source(written(tmp_path, text))).outcome == "did not hold"


def test_a_study_that_repeats_a_part_is_judged_on_that_part_alone(tmp_path: Path) -> None:
    text = FILE.replace('study = "quick"', 'study = "whole"\nalso = ["quick"]')
    claims = written(tmp_path, text)
    found = of_run(run(nebula=0.6), claims)
    assert found is not None
    assert [each.claim.id for each in found.judged] == ["share.tinc", "share.nebula", "order"]
    whole = of_run(run(nebula=0.6), written(tmp_path, FILE))
    assert whole is not None
    assert len(whole.judged) == len(claims.claims)


def test_what_depends_on_the_length_of_tests_is_told_by_the_long_length_alone(tmp_path: Path) -> None:
    claims = written(tmp_path, FILE.replace("factor = 1e6", "factor = 1e6\nfull_only = true"))
    short = run(nebula=0.6)
    assert "only quick with `--full`" in outcomes(claims, short)["share.tinc"].reason
    plan = replace(short.results.plan, full=True)
    long = replace(short, results=replace(short.results, plan=plan))
    assert outcomes(claims, long)["share.tinc"].outcome == "held"


def test_an_arm_that_failed_too_often_says_so(claims: ClaimsFile) -> None:
    study = Study(arms=("direct", "tinc", "nebula"), same_as={}, tcp={"tinc": 0.5}, fails=(("tinc", "tcp", 1),))
    found = outcomes(claims, analyse(study.results()))
    assert (
        found["share.tinc"].reason
        == "Tinc, one stream, gigabit: 4 of 5 attempts succeeded here, fewer than nine in ten"
    )


def test_the_order_comes_with_kendall_s_tau(claims: ClaimsFile) -> None:
    tau = outcomes(claims, run(nebula=0.9))["order"].tau
    assert tau is not None
    assert tau[0] == pytest.approx(1.0)
    assert tau[1] <= tau[0] <= tau[2]


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ('arms = ["Tinc"]', 'arms = ["Tink"]', "this file has no arm called 'Tink'"),
        ('conditions = ["low"]', 'conditions = ["lo"]', "this file has no condition called 'lo'"),
        (
            'test = "order"\nquantity = "tcp"',
            'test = "value"\nleast = 3.0\nquantity = "tcp"',
            "compares a rate of other hardware as it is",
        ),
        ('over = [{ condition = "base" }]\n', "", "is missing (in 'retention')"),
        ("Tinc = [450, 30]", "Tinc = [450]", "has 1 values"),
        ('arms = ["Bare", "Nebula", "Tinc"]', 'arms = ["Bare", "Nebula"]', "says nothing that could be false"),
        ('arms = ["Tinc"]', 'arms = ["ZeroTier"]', "rests on a value that no [[table]] holds"),
        ('metric = "goodput"', 'metric = "goodput"\nstudy = "other"', "'other' is not among the studies that repeat"),
        ('claims = ["share", "order"]', 'claims = ["shares"]', "'shares'"),
    ],
)
def test_a_wrong_file_says_what_is_wrong(tmp_path: Path, old: str, new: str, complaint: str) -> None:
    assert FILE.count(old) == 1
    with pytest.raises(PlanError) as caught:
        written(tmp_path, FILE.replace(old, new))
    assert complaint in str(caught.value)


def test_a_file_without_a_table_is_refused_with_what_is_missing(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match="source"):
        written(tmp_path, dedent("""[arms]\nA = "direct"\n"""))


def test_the_profile_of_the_builders_is_the_one_that_the_file_names() -> None:
    assert PROFILE.name == "gigabit"
