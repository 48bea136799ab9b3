"""The claims that tunnelmark brings: each refers to what its study has, follows from the source's own figures, and could fail."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pytest

from tunnelmark import registry
from tunnelmark.analyse.intervals import MIN_BLOCKS
from tunnelmark.claims import reading
from tunnelmark.claims.differences import concerns
from tunnelmark.claims.judging import judge
from tunnelmark.claims.model import OVER_BLOCKS, Apart, Cell, CellValues, Claim, ClaimsFile, Statement
from tunnelmark.claims.printed import PrintedValues
from tunnelmark.claims.reach import within_reach
from tunnelmark.plan.files import Files
from tunnelmark.plan.load import load_study
from tunnelmark.plan.order import order
from tunnelmark.run.collectors import collectors
from tunnelmark.run.runner import RunContext

FILES = {name: reading.read(reading.FOLDER / f"{name}.toml") for name in reading.names()}
CLAIMS = [(file, claim) for file in FILES.values() for claim in file.claims]
STATED = [(file, claim) for file, claim in CLAIMS if claim.statements]
PRINTED = [
    (file, claim)
    for file, claim in STATED
    if all(
        isinstance(each, Statement) and all(cell in file.printed for cell, _ in each.terms) for each in claim.statements
    )
]


class Runs:
    """Many runs of each cell, for a test that ranks runs."""

    paired = False
    single = False
    measured_here = False
    units = OVER_BLOCKS

    def __init__(self, *, apart: bool) -> None:
        self._apart = apart
        self._seen: list[Cell] = []

    def of(self, cell: Cell) -> CellValues:
        """Runs that overlap with no other cell's, or are the same as every other's."""
        if cell not in self._seen:
            self._seen.append(cell)
        base = 100.0 * self._seen.index(cell) if self._apart else 0.0
        return CellValues({run: base + 1000 + run for run in range(12)})

    def obstacle(self, cells: object, scale: str, conservative: object = ()) -> str:
        """None."""
        return ""


def contrary(claim: Claim, statement: Statement, file: ClaimsFile) -> PrintedValues:
    """The source's values (10 where it prints none), but for one cell, which puts this statement's effect out of its range."""
    values = {cell: 10.0 for each in claim.statements if isinstance(each, Statement) for cell, _ in each.terms}
    values |= {cell: printed.value for cell, printed in file.printed.items()}
    (cell, power), *others = statement.terms
    bound, way = (statement.low, -1) if statement.low is not None else (statement.high, 1)
    assert bound is not None, "a statement without a bound says nothing"
    if statement.scale == "ratio":
        rest = math.prod(values[each] ** factor for each, factor in others)
        values[cell] = (bound * 1.01**way / rest) ** (1 / power)
    else:
        rest = sum(values[each] * factor for each, factor in others)
        values[cell] = (bound + way * (0.01 * abs(bound) or 0.01) - rest) / power
    return PrintedValues(values)


@pytest.mark.parametrize("file", FILES.values(), ids=FILES)
def test_what_a_file_names_is_in_its_study(file: ClaimsFile) -> None:
    studies = [load_study(name, Files.standard(), registry.catalogue(), full=True) for name in (file.study, *file.also)]
    assert set(file.arms.values()) <= {arm.name for study in studies for arm in study.arms}
    profiles = {each.name for study in studies for each in study.profiles}
    topologies = {each.name for study in studies for each in study.topologies}
    uses = {use.name: use for study in reversed(studies) for use in study.workloads}
    for condition in file.conditions.values():
        assert bool(condition.profile) != bool(condition.unmeasured), condition
        assert condition.profile in profiles | {""}, condition
        assert condition.topology in topologies | {""}, condition
    for quantity in file.quantities.values():
        assert bool(quantity.workload or quantity.of_arm) != bool(quantity.unmeasured), quantity
        if quantity.of_arm or quantity.statistic == "success":
            assert not quantity.metric, quantity
            assert quantity.workload in uses or quantity.of_arm, quantity
        elif quantity.workload:
            use = uses[quantity.workload]
            workload = registry.workload(use.workload)
            metrics = workload.metrics_with(workload.options.model_validate(dict(use.options)))
            watched = [metric for study in studies for name in study.watch for metric in collectors()[name].metrics]
            assert quantity.metric in {metric.name for metric in [*metrics, *watched]}, quantity


@pytest.mark.parametrize("file", FILES.values(), ids=FILES)
def test_a_source_says_how_it_measured_and_what_its_studies_do_otherwise(file: ClaimsFile) -> None:
    there = file.there
    assert all(
        (file.source.authors, file.source.title, file.source.form, there.hosts, there.kernel, there.links, there.runs)
    )
    studies = [load_study(name, Files.standard(), registry.catalogue(), full=True) for name in (file.study, *file.also)]
    workloads = {use.name for study in studies for use in study.workloads}
    assert set(there.lengths) == workloads - {"connect"}
    for each in file.differences:
        assert set(each.studies) <= {study.name for study in studies}, each
        assert set(each.workloads) | set(each.lacks) <= workloads, each
        assert set(each.arms) <= {arm.name for study in studies for arm in study.arms}, each
        assert set(each.conditions) <= set(file.conditions), each


@pytest.mark.parametrize("file", FILES.values(), ids=FILES)
def test_the_long_lengths_can_tell_all_that_is_measured_and_the_usual_ones_most_of_it(file: ClaimsFile) -> None:
    def told(*, full: bool) -> set[str]:
        studies = (
            load_study(name, Files.standard(), registry.catalogue(), full=full) for name in (file.study, *file.also)
        )
        return {claim.id for study in studies for claim in within_reach(file.as_in(study.name), study)}

    long, usual = told(full=True), told(full=False)
    measured = {
        claim.id
        for claim in file.claims
        if _is_tested(claim) and all(_measured(file, cell) for each in claim.statements for cell in each.cells)
    }
    decided = {claim.id for claim in file.claims if _is_decided(file, claim)}
    assert measured - decided <= long <= measured
    assert usual <= long
    assert len(usual) >= 0.75 * len(long)


@pytest.mark.parametrize("file", FILES.values(), ids=FILES)
def test_other_names_of_a_part_are_those_of_its_study(file: ClaimsFile) -> None:
    for name, part in file.parts.items():
        study = load_study(name, Files.standard(), registry.catalogue())
        assert set(part.arms.values()) <= {arm.name for arm in study.arms}
        assert set(part.profiles.values()) <= {profile.name for profile in study.profiles}
        assert set(part.topologies.values()) <= {topology.name for topology in study.topologies}


def test_where_the_impairment_falls_is_judged_on_the_senders_card_as_the_source_had_it() -> None:
    claims = reading.of_study("impairment-place")
    assert claims is not None
    assert claims.conditions["medium"].profile == "thesis-medium+thesis-round-trip+netem-on-sender+gigabit"
    judged = {
        claim.id
        for claim in within_reach(claims, load_study("impairment-place", Files.standard(), registry.catalogue()))
    }
    assert {"tcp-headscale-beats", "tuned-reorder-tcp.medium"} <= judged


def _is_tested(claim: Claim) -> bool:
    """Whether a run can test the claim: any, or one of those studies of parts that lift what prevents it."""
    return not claim.untestable or bool(claim.studies)


def _is_decided(file: ClaimsFile, claim: Claim) -> bool:
    """Whether a difference from the source says that no run of the main study, also of the full length, can test it."""
    lasting = [
        each for each in file.differences if each.decides and each.length != "usual" and not each.machine
        and file.study in (each.studies or (file.study,))
    ]  # fmt: skip
    return any(concerns(each, file, cell) for each in lasting for one in claim.statements for cell in one.cells)


def _measured(file: ClaimsFile, cell: Cell) -> bool:
    """Whether the file gives no reason why the cell is not measured."""
    quantity, condition = file.quantities[cell.quantity], file.conditions[cell.condition]
    return not (quantity.unmeasured or condition.unmeasured or cell.arm in file.absent)


@pytest.mark.parametrize("file", FILES.values(), ids=FILES)
def test_the_usual_length_is_about_an_hour_of_traffic_at_most(file: ClaimsFile) -> None:
    context = RunContext(registry.vpns(), registry.workloads(), 212992, alone=True)
    for name in (file.study, *file.also):
        plan = order(load_study(name, Files.standard(), registry.catalogue()))
        assert sum(context.seconds(trial) for trial in plan.trials) <= 75 * 60
        assert plan.study.blocks >= MIN_BLOCKS, "fewer decide no claim"


@pytest.mark.parametrize("file", FILES.values(), ids=FILES)
def test_a_study_waits_longer_for_a_first_packet_than_any_claim_says_that_it_takes(file: ClaimsFile) -> None:
    for name in (file.study, *file.also):
        study = load_study(name, Files.standard(), registry.catalogue(), full=True)
        drivers = {arm.name: registry.vpns()[arm.vpn] for arm in study.arms}
        for claim in within_reach(file, study):
            for cell, bound in _first_packets(file, claim):
                waits = float(study.ready_timeout) + drivers[file.arms[cell.arm]].startup_time
                assert bound < waits, f"{claim.id}: {name} gives up after {waits:g} s"


def _first_packets(file: ClaimsFile, claim: Claim) -> Iterator[tuple[Cell, float]]:
    """The cells of first packets that a claim bounds, and the seconds up to which it does."""
    for each in claim.statements:
        if isinstance(each, Apart) or each.scale == "ratio":
            continue
        for cell in each.cells:
            if file.quantities[cell.quantity].statistic == "first-packet":
                yield cell, max(bound for bound in (each.low, each.high) if bound is not None)


@pytest.mark.parametrize("file", FILES.values(), ids=FILES)
def test_cpu_of_which_ratios_are_taken_says_nothing_where_cores_are_full(file: ClaimsFile) -> None:
    ratios = [each for claim in file.claims for each in claim.statements if _is_ratio(each)]
    quantities = {file.quantities[cell.quantity] for each in ratios for cell in each.cells}
    assert not [each.name for each in quantities if each.metric.startswith("cpu_") and not each.unless_full]


def _is_ratio(statement: Statement | Apart) -> bool:
    return isinstance(statement, Apart) or statement.scale == "ratio"


@pytest.mark.parametrize(("file", "claim"), PRINTED, ids=[f"{file.name}:{claim.id}" for file, claim in PRINTED])
def test_a_claim_follows_from_the_source_s_own_figures(file: ClaimsFile, claim: Claim) -> None:
    found = judge(claim, PrintedValues.of_source(file))
    assert (found.outcome == "did not hold") == bool(claim.contradicted), found.effects


@pytest.mark.parametrize(("file", "claim"), STATED, ids=[f"{file.name}:{claim.id}" for file, claim in STATED])
def test_a_claim_s_test_can_fail(file: ClaimsFile, claim: Claim) -> None:
    for statement in claim.statements:
        if isinstance(statement, Apart):
            wrong = judge(claim, Runs(apart=not statement.differ))
        else:
            wrong = judge(claim, contrary(claim, statement, file))
        assert wrong.outcome == "did not hold", wrong


@pytest.mark.parametrize("file", FILES.values(), ids=FILES)
def test_each_source_s_conclusions_rest_on_claims_of_it_that_can_be_judged(file: ClaimsFile) -> None:
    assert len(file.conclusions) >= 4
    for each in file.conclusions:
        behind = [claim for claim in file.claims if each.has(claim) and (claim.statements or claim.feature is not None)]
        assert any(_is_tested(claim) for claim in behind), each.says


def test_most_claims_have_statements_and_values_that_are_printed() -> None:
    assert len(CLAIMS) >= 1235
    assert len(STATED) >= 0.9 * len(CLAIMS)
    assert len(PRINTED) >= 0.9 * len(STATED)


def test_untestable_claims_say_why() -> None:
    assert all(claim.statements or claim.feature or claim.untestable for _, claim in CLAIMS)
