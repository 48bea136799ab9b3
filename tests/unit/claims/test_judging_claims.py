"""Verdicts on claims over runs of a known truth: held, refuted, undecided with the blocks that would decide, not testable with a reason."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from textwrap import dedent

import numpy as np
import pytest

from tunnelmark.analyse import judge as analyse
from tunnelmark.analyse.model import Analysis, Bottleneck, Scenario
from tunnelmark.claims import reading
from tunnelmark.claims.judging import judge
from tunnelmark.claims.measured import RunValues
from tunnelmark.claims.model import OVER_BLOCKS, Apart, Cell, CellValues, Claim, ClaimsFile, Judged, Outcome, Statement
from tunnelmark.claims.verdicts import of_run
from tunnelmark.errors import PlanError
from unit.builders import PING, PROFILE, TCP, Study

TCP_SETTING = Scenario("gigabit", "pair", "tcp")
OneSided = Callable[..., Judged]
ONE, OTHER = Cell("tcp", "base", "X"), Cell("tcp", "base", "Y")


class Drawn:
    """Cells with given values, by block or as runs."""

    single = False
    units = OVER_BLOCKS

    def __init__(self, values: dict[Cell, list[float]], *, paired: bool = True) -> None:
        self.paired = paired
        self._values = values

    def of(self, cell: Cell) -> CellValues | None:
        """The values by block."""
        given = self._values.get(cell)
        return None if given is None else CellValues(dict(enumerate(given, 1)))

    def obstacle(self, cells: object, scale: str, conservative: object = ()) -> str:
        """None."""
        return ""


def ratio(low: float | None, high: float | None) -> Claim:
    return Claim("c", "tab 1", "X over Y", (Statement(((ONE, 1), (OTHER, -1)), "ratio", low, high),))


def verdict(claim: Claim, x: list[float], y: list[float], *, paired: bool = True) -> Judged:
    return judge(claim, Drawn({ONE: x, OTHER: y}, paired=paired))


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0.4, 0.6, "held"),
        (0.7, 1.0, "did not hold"),
        (0.5, 1.0, "undecided"),
        (None, 0.4, "did not hold"),
        (0.3, None, "held"),
    ],
)
def test_an_interval_inside_of_the_range_shows_a_claim_and_one_outside_refutes_it(
    low: float | None, high: float | None, expected: Outcome
) -> None:
    found = verdict(ratio(low, high), [49, 50, 51, 50, 50], [100, 100, 100, 101, 99])
    assert found.outcome == expected
    (effect,) = found.effects
    assert effect.estimate == pytest.approx(0.5, rel=0.01)
    assert effect.low is not None
    assert effect.high is not None
    assert effect.low < 0.5 < effect.high


def test_a_claim_that_is_undecided_says_how_many_blocks_would_decide_it() -> None:
    found = verdict(ratio(0.45, 0.6), [40, 60, 50, 45, 55], [100] * 5)
    assert found.outcome == "undecided"
    assert found.effects[0].blocks is not None
    assert 5 < found.effects[0].blocks < 100


def test_two_blocks_are_too_few_for_a_verdict() -> None:
    assert verdict(ratio(0.1, 0.9), [50, 50], [100, 100]).outcome == "undecided"


def test_what_blocks_share_cancels_where_they_are_paired() -> None:
    luck = [1.0, 2.0, 0.5, 3.0, 0.7]
    x, y = (
        [50 * each for each in luck],
        [100 * each * wobble for each, wobble in zip(luck, (1, 1.01, 0.99, 1, 1), strict=True)],
    )
    assert verdict(ratio(0.45, 0.55), x, y).outcome == "held"
    assert verdict(ratio(0.45, 0.55), x, y, paired=False).outcome == "undecided"


@pytest.mark.parametrize("paired", [True, False])
def test_intervals_hold_the_truth_as_often_as_they_say(paired: bool) -> None:
    """A true ratio of 0.5 lies in the interval of 95 % in 93 to 97 % of studies: 1,000 of them (standard error 0.7 %)."""
    random, covered = np.random.default_rng(3), 0
    for _ in range(1000):
        luck = np.exp(random.normal(0, 0.2 if paired else 0.0, 8))
        x, y = (mean * luck * np.exp(random.normal(0, 0.05, 8)) for mean in (50, 100))
        (effect,) = verdict(ratio(0.4, 0.6), list(x), list(y), paired=paired).effects
        assert effect.low is not None
        assert effect.high is not None
        covered += effect.low <= 0.5 <= effect.high
    assert 930 <= covered <= 970


def test_a_claim_of_many_statements_is_seldom_refuted_by_chance() -> None:
    """Ten arms in their true order, the last two alike: at most 5 % of studies may say that the order does not hold (60 of 1,000, 3 sigma)."""
    random, refuted = np.random.default_rng(5), 0
    cells = [Cell("tcp", "base", f"arm{number}") for number in range(10)]
    statements = tuple(
        Statement(((one, 1), (other, -1)), "ratio", 1.0, None)
        for place, one in enumerate(cells)
        for other in cells[place + 1 :]
    )
    for _ in range(300):
        values = {
            cell: list(100 * np.exp(random.normal(0, 0.05, 8))) for cell in cells
        }  # all are alike: the worst case
        refuted += judge(Claim("c", "", "", statements), Drawn(values)).outcome == "did not hold"
    assert refuted <= 0.05 * 300 + 3 * (0.05 * 0.95 * 300) ** 0.5


@pytest.mark.parametrize(
    ("x", "y", "differ", "alike"),
    [
        ([10.0, 10.1, 10.2, 10.3], [20.0, 20.1, 20.2, 20.3], "held", "did not hold"),
        ([10.0, 10.2, 10.1, 10.3], [10.1, 10.3, 10.0, 10.2], "did not hold", "held"),
        ([5.0, 9.0, 14.0, 20.0], [6.0, 8.0, 15.0, 21.0], "undecided", "undecided"),
        ([10.0, 10.1, 10.2], [20.0, 20.1, 20.2], "undecided", "undecided"),
    ],
    ids=["apart", "alike", "scattered", "too few"],
)
def test_that_runs_cannot_be_told_apart_needs_evidence_too(
    x: list[float], y: list[float], differ: Outcome, alike: Outcome
) -> None:
    for said, outcome in ((True, differ), (False, alike)):
        claim = Claim("c", "tab 1", "x and y", (Apart(ONE, OTHER, said),))
        assert verdict(claim, x, y, paired=False).outcome == outcome


def test_what_would_refute_a_claim_of_many_statements_takes_more_blocks_than_there_are() -> None:
    claim = Claim("c", "tab 1", "X over Y, ten times", ratio(0.5, 1.0).statements * 10)
    x = [1.045, 1.010, 1.055, 1.020, 1.050, 1.025]
    judged = verdict(claim, x, [1.0] * 6)
    assert judged.outcome == "undecided"
    assert all((effect.blocks or 99) > 6 for effect in judged.effects)


def test_a_zero_in_a_ratio_leaves_a_claim_without_a_test() -> None:
    found = verdict(ratio(0.1, 0.9), [0, 50, 50], [100] * 3)
    assert (found.outcome, "zero" in found.reason) == ("not testable", True)


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


def test_a_run_says_what_held_and_why_the_rest_cannot_be_told(claims: ClaimsFile) -> None:
    found = outcomes(claims, run(nebula=0.6))
    assert found["share.tinc"].outcome == "held"
    assert found["share.nebula"].outcome == "did not hold"  # 0.98 there
    assert found["share.zerotier"].reason == "its program is in no registry"
    assert "this run has no Tinc, one stream, Low" in found["retention"].reason
    assert found["order"].outcome == "held"  # the bare link and Nebula were closer than the margin there: not compared
    assert found["share.tinc"].claim.says == "Tinc reaches 50 %."


def test_what_the_link_held_there_and_the_processor_holds_here_is_not_compared(claims: ClaimsFile) -> None:
    analysis = run(nebula=0.6)
    core = Bottleneck("sender's core")
    analysis = replace(analysis, bound_by={("nebula", TCP_SETTING): core, ("tinc", TCP_SETTING): core})
    found = outcomes(claims, analysis)
    assert (
        found["share.nebula"].reason
        == "Nebula, one stream, gigabit: the link was the limit there, and the sender's core is here"
    )
    assert found["share.tinc"].outcome == "held"  # tinc was held by its processor there, too


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


HELD_DOWN = "Nebula, one stream, gigabit: the link was the limit there, and the sender's core is here"
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
        ('arms = ["Tinc"]', 'arms = ["Tink"]', "'Tink' is no arm of this file"),
        ('conditions = ["low"]', 'conditions = ["lo"]', "'lo' is no condition of this file"),
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
