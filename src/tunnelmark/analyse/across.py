"""Compares each arm with itself across conditions and workloads, and that change with the change of direct. Pure.

A condition is a profile on a topology. Inside a block, an arm's value in a condition is divided by the arm's value in
the study's first condition. The result is what the arm *keeps*. (If the metric is compared by differences, the arm
keeps the difference of the two values.) What the arm keeps is then divided by what direct keeps. This ratio of ratios
says whether a condition hurts a VPN more than the bare link.

What an arm keeps and the ratio of ratios are effects like any others: each block gives one value, and `pairing` gives
intervals, tests and verdicts. What all trials of a block share cancels in both effects. What a condition does to all
arms cancels in the ratio of ratios. A ratio of ratios compares two estimates directly, while the statement "significant
here and not there" does not compare them (A. Gelman and H. Stern, "The Difference Between 'Significant' and 'Not
Significant' is not Itself Statistically Significant", The American Statistician 60(4), 2006, pp. 328-331).

For Holm's correction, all ratios of ratios across conditions are one family, and all those across workloads are
another. The comparisons within conditions are corrected separately from these two families. A twin of direct is in
neither of the two families: it is judged only as a twin.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tunnelmark.analyse.aa_test import seen
from tunnelmark.analyse.intervals import level_of
from tunnelmark.analyse.margins import negligible
from tunnelmark.analyse.model import Analysis, Comparison, Scenario, Verdict
from tunnelmark.analyse.pairing import by_block, compare_values, decide, is_planned, setting_of, verdict
from tunnelmark.plan.compose import TRAVERSAL
from tunnelmark.record.results import MetricInfo


@dataclass(frozen=True, slots=True)
class Kept:
    """The part of its value in `base` that an arm keeps in `setting`, by one metric.

    `kept`: the arm in `setting` compared with itself in `base`; this comparison is not judged. `over_direct`: what the
    arm keeps, compared with what direct keeps in the same block; None for direct itself. `verdict`: the verdict on
    `over_direct`. *Better* means that the arm keeps more than direct keeps; if lower values are better, as of a delay,
    it means that the arm's value grows by less than direct's. `failed`, `void`, `empty`: the numbers of blocks that ran
    in both settings and have no effect. A block is counted as `failed` if one of its two trials failed, as `void` if
    the laboratory spoilt one, and as `empty` if the value in `base` is zero.
    """

    arm: str
    metric: MetricInfo
    setting: Scenario
    base: Scenario
    kept: Comparison
    over_direct: Comparison | None
    verdict: Verdict
    failed: int
    void: int
    empty: int


@dataclass(frozen=True, slots=True)
class _Question:
    """Two settings to be compared, and the metric; in `base` the metric may be that of another workload."""

    base: Scenario
    setting: Scenario
    metric: MetricInfo


def conditions(analysis: Analysis, workload: str) -> tuple[Scenario, ...]:
    """Return the settings of a workload (its conditions), in the order of the plan; () for `traversal`."""
    asked = {use.name for use in analysis.results.plan.workloads if use.workload == TRAVERSAL}
    return tuple(one for one in analysis.settings() if one.workload == workload and workload not in asked)


def across_conditions(analysis: Analysis) -> tuple[Kept, ...]:
    """Compare each arm in every further condition with itself in the study's first one, by each primary metric.

    Return () if no workload with a primary metric has a second condition.
    """
    questions = []
    for use in analysis.results.plan.workloads:
        settings = conditions(analysis, use.name)
        for metric in (metric for metric in use.metrics if metric.primary):
            questions += [_Question(settings[0], other, metric) for other in settings[1:]]
    return _answered(analysis, questions)


def across_workloads(analysis: Analysis) -> tuple[Kept, ...]:
    """Compare every arm in a workload with itself in the first earlier workload that has the same primary metric.

    Both values are of the same condition. Metrics count as the same if they agree in name, unit, better direction and
    kind of effect (ratio or difference), such as the goodput of a ring and that of one stream. Return () if no two
    workloads have the same primary metric.
    """
    questions = []
    uses = analysis.results.plan.workloads
    for place, use in enumerate(uses):
        for metric in (metric for metric in use.metrics if metric.primary):
            earlier = next((other for other in uses[:place] if any(_alike(metric, m) for m in other.metrics)), None)
            if earlier is not None:
                questions += [
                    _Question(Scenario(setting.profile, setting.topology, earlier.name), setting, metric)
                    for setting in conditions(analysis, use.name)
                ]
    return _answered(analysis, questions)


def _alike(one: MetricInfo, other: MetricInfo) -> bool:
    return other.primary and (one.name, one.unit, one.better, one.compare) == (
        other.name,
        other.unit,
        other.better,
        other.compare,
    )


def _answered(analysis: Analysis, questions: Sequence[_Question]) -> tuple[Kept, ...]:
    plan, reference = analysis.results.plan, analysis.reference
    outcomes = _outcomes(analysis)
    metrics = {f"{one.setting.workload}/{one.metric.name}": one.metric for one in questions}
    twins: list[Comparison] = []
    family: list[Comparison] = []
    shares: dict[tuple[str, _Question], dict[int, float]] = {}
    for question in questions:
        for arm in plan.arms:
            shares[arm.name, question] = _shares(analysis, arm.name, question)
        own = [
            _beside(analysis, arm.name, arm.same_as, question, shares, negligible(question.metric))
            for arm in plan.arms
            if arm.same_as is not None
        ]
        found = (seen(pair, question.metric) for pair in own)
        threshold = max([negligible(question.metric), *(each for each in found if each is not None)])
        twins += own
        family += [
            _beside(analysis, arm.name, reference, question, shares, threshold)
            for arm in plan.arms
            if reference is not None and reference not in (arm.name, arm.same_as)
        ]
    # A twin of the reference is judged among twins, whose differences are false alarms; all others are one family.
    judged = {
        (pair.arm, pair.setting, pair.metric): pair
        for pair in (*decide(twins, metrics), *decide(family, metrics))
        if pair.against == reference
    }
    return tuple(
        _kept(analysis, arm.name, question, judged.get((arm.name, question.setting, question.metric.name)), outcomes)
        for question in questions
        for arm in plan.arms
    )


def _values(analysis: Analysis, arm: str, setting: Scenario, metric: str) -> dict[int, float]:
    return by_block(analysis.cell(arm, setting, metric).values)


def _shares(analysis: Analysis, arm: str, question: _Question) -> dict[int, float]:
    """Return what the arm keeps in each block: a share, or a difference in the metric's unit.

    A block whose value in the base setting is zero has no share.
    """
    name = question.metric.name
    here, there = (_values(analysis, arm, setting, name) for setting in (question.setting, question.base))
    both = sorted(here.keys() & there.keys())
    if question.metric.compare == "ratio":
        return {block: here[block] / there[block] for block in both if there[block] > 0}
    return {block: here[block] - there[block] for block in both}


def _beside(
    analysis: Analysis,
    arm: str,
    against: str,
    question: _Question,
    shares: Mapping[tuple[str, _Question], dict[int, float]],
    threshold: float,
) -> Comparison:
    mine, theirs = (shares[name, question] for name in (arm, against))
    level = level_of(analysis.results.plan.enough)
    return compare_values(arm, against, question.setting, question.metric, mine, theirs, threshold, level)


def _kept(
    analysis: Analysis,
    arm: str,
    question: _Question,
    over_direct: Comparison | None,
    outcomes: Mapping[tuple[str, Scenario], Mapping[int, str]],
) -> Kept:
    metric, base = question.metric, question.base
    here, there = (_values(analysis, arm, setting, metric.name) for setting in (question.setting, base))
    empty = [block for block in here.keys() & there.keys() if metric.compare == "ratio" and there[block] <= 0]
    full = {block: value for block, value in there.items() if block not in empty}
    kept = compare_values(
        arm,
        f"in {base.profile}, {base.topology}, {base.workload}",
        question.setting,
        metric,
        here,
        full,
        negligible(metric),
        level_of(analysis.results.plan.enough),
    )
    tried = [outcomes.get((arm, setting), {}) for setting in (question.setting, base)]
    lost = (tried[0].keys() & tried[1].keys()) - set(kept.blocks) - set(empty)
    failed = sum("failed" in (tried[0][block], tried[1][block]) for block in lost)
    void = len(lost) - failed
    planned = all(is_planned(analysis.results.plan, setting, arm) for setting in (question.setting, base))
    said: Verdict = "failed" if failed else "void" if void else "not run" if planned else "left out"
    if kept.blocks or empty:
        said = "reference" if arm == analysis.reference else verdict(metric, over_direct)
    return Kept(arm, metric, question.setting, base, kept, over_direct, said, failed, void, len(empty))


def _outcomes(analysis: Analysis) -> Mapping[tuple[str, Scenario], Mapping[int, str]]:
    """Return the outcome of the attempt that counts ("ok", "failed" or "void") by block, for each arm and setting."""
    found: dict[tuple[str, Scenario], dict[int, str]] = {}
    for row in analysis.trials:
        found.setdefault((row.arm, setting_of(row)), {})[row.block] = row.outcome
    return found
