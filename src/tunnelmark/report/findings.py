"""Says in sentences what was found: one finding for each primary metric in each setting, and where the time went."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from itertools import combinations

from tunnelmark.analyse.ceilings import AT_LOAD
from tunnelmark.analyse.failures import silent
from tunnelmark.analyse.intervals import MIN_BLOCKS
from tunnelmark.analyse.model import JUDGED, Analysis, Comparison, MetricCell, Scenario
from tunnelmark.record.results import MetricInfo
from tunnelmark.report import formatting, trial_lengths
from tunnelmark.report.queries import primary_metrics, unlike_voids
from tunnelmark.units import clock

_DIFFER = {True: "differs", False: "differ"}
_SHORTFALL = "shortfall"  # the metric of a workload that offers a rate: per cent of it that the sender did not offer
_SHORT = 5.0


@dataclass(frozen=True, slots=True)
class Finding:
    """What one metric shows in one setting, in whole sentences."""

    setting: Scenario
    metric: MetricInfo
    sentences: tuple[str, ...]

    @property
    def text(self) -> str:
        return " ".join(self.sentences)


def findings(analysis: Analysis) -> tuple[Finding, ...]:
    """Return the findings in the order of the plan; if nothing may be ranked, they give estimates without verdicts."""
    nothing = silent(analysis.trials)  # the cautions name these arms once
    return tuple(
        Finding(setting, metric, _sentences(analysis, setting, metric, nothing))
        for setting in analysis.settings()
        for metric in primary_metrics(analysis, setting)
    )


def time_spent(analysis: Analysis) -> str:
    """Return a sentence on the wall time and its share inside measuring windows; it says so if no time is recorded."""
    wall = analysis.wall
    if wall.wall <= 0:
        return "No wall time is recorded."
    so_far = "" if wall.complete or analysis.results.finished else " so far"
    return f"{clock(wall.wall)}{so_far}, {formatting.percent(wall.measuring)} of it inside measuring windows."


def phases(analysis: Analysis) -> list[tuple[str, str, str]]:
    """Return rows of texts: a phase, its time, and its share of the wall time; [] if no wall time is recorded.

    If trials overlap by half a second or more, the last row is the time that was counted twice.
    """
    wall = analysis.wall
    if wall.wall <= 0:
        return []
    rows = [*wall.phases.items(), ("outside of trials", wall.outside)]
    if wall.overlap >= 0.5:
        rows.append(("counted twice: one trial ended while the next was set up", wall.overlap))
    return [(name, clock(seconds), formatting.percent(seconds / wall.wall, 1)) for name, seconds in rows]


def _sentences(analysis: Analysis, setting: Scenario, metric: MetricInfo, nothing: Collection[str]) -> tuple[str, ...]:
    """Return sentences on one metric. Arms in `nothing` have no result at all, and are not named as failed again."""
    twins = {arm.name for arm in analysis.results.plan.arms if arm.same_as is not None}
    cells = [
        cell
        for cell in analysis.cells
        if (cell.setting, cell.metric.name) == (setting, metric.name)
        and cell.arm not in twins
        and cell.arm != analysis.reference
        and cell.verdict != "left out"
    ]
    if not cells:
        return ("Only the bare link was measured.",)
    said = []
    judged = [cell for cell in cells if cell.verdict in JUDGED]
    if analysis.same.standing != "agrees":
        said += _unranked([cell for cell in cells if cell.against_direct and cell.against_direct.estimate is not None])
    elif judged:
        said += _ranked(analysis, metric, judged, len(cells))
    said += _doubtful(cells)
    said += _spared(analysis, setting, metric)
    said += _ceilings(cells)
    said += trial_lengths.sentences(analysis, cells)
    for verdict, text in (
        ("failed", "failed in every attempt"),
        ("void", "void in every attempt"),
        ("not run", "not run yet"),
    ):
        arms = [cell.arm for cell in cells if cell.verdict == verdict and cell.arm not in nothing]
        if arms:
            said.append(f"{formatting.listed(arms)}: {text}.")
    few = [cell.arm for cell in cells if cell.verdict == "too few blocks"]
    if few and analysis.results.plan.blocks >= MIN_BLOCKS:  # with fewer, the cautions say it for all arms
        said.append(f"Too few blocks to judge {formatting.listed(few)}.")
    return tuple(said)


def _ranked(analysis: Analysis, metric: MetricInfo, judged: list[MetricCell], arms_measured: int) -> list[str]:
    """Say how the judged arms compare with direct; `arms_measured` also counts the arms that could not be judged."""
    sign = -1 if metric.better == "higher" else 1
    judged = sorted(judged, key=lambda cell: sign * (_against(cell).order or 0.0))
    said = []
    worse = [cell for cell in judged if cell.verdict == "worse"]
    for cell in judged:
        if cell.verdict == "better":
            said.append(f"{cell.arm} does better than the bare link: {formatting.effect(metric, _against(cell))}.")
    if worse:
        said.append(_each(metric, worse))
    alike = [cell.arm for cell in judged if cell.verdict == "equal"]
    open_ = [cell.arm for cell in judged if cell.verdict == "undecided"]
    if alike:
        every = len(alike) == arms_measured > 1
        arms, verb = ("Every arm", "is") if every else (formatting.listed(alike), "is" if len(alike) == 1 else "are")
        said.append(f"{arms} {verb} equal to the bare link within {formatting.margin(metric)}.")
    if open_:
        said.append(f"Whether {formatting.listed(open_)} {_DIFFER[len(open_) == 1]} from the bare link is undecided.")
    return said + _among(analysis, worse)


def _each(metric: MetricInfo, cells: list[MetricCell]) -> str:
    effects = [(cell.arm, formatting.effect(metric, _against(cell))) for cell in cells]
    if metric.compare == "difference" or metric.better == "lower":
        return f"Against the bare link it is {formatting.listed([f'{effect} with {arm}' for arm, effect in effects])}."
    (arm, effect), *rest = effects
    others = [f"{other} {text}" for other, text in rest]
    return formatting.listed([f"{arm} keeps {effect} of the bare link's", *others]) + "."


def _unranked(cells: list[MetricCell]) -> list[str]:
    if not cells:
        return []
    said = ", ".join(f"{cell.arm} {formatting.effect(cell.metric, _against(cell))}" for cell in cells)
    return [f"Estimates against the bare link, not to be ranked: {said}."]


def _among(analysis: Analysis, cells: list[MetricCell]) -> list[str]:
    """Say which arms are not shown to differ from each other; if groups overlap, refer to the rank ranges."""
    near: dict[str, set[str]] = {cell.arm: {cell.arm} for cell in cells}
    about = {(cell.setting, cell.metric.name) for cell in cells}
    equal = set()
    for pair in analysis.pairs:
        same = (pair.setting, pair.metric) in about and not pair.differs
        if same and pair.arm in near and pair.against in near:
            near[pair.arm].add(pair.against)
            near[pair.against].add(pair.arm)
            if pair.equal:
                equal.add(frozenset((pair.arm, pair.against)))
    groups = list(dict.fromkeys(frozenset(arms) for arms in near.values() if len(arms) > 1))
    apart = [group for group in groups if all(near[arm] == group for arm in group)]
    said = []
    for group in apart:
        arms, within = [arm for arm in near if arm in group], f"equal within {formatting.margin(cells[0].metric)}"
        pairs = list(combinations(arms, 2))
        alike = [two for two in pairs if frozenset(two) in equal]
        if alike and alike != pairs:
            rest = "the other pair is" if len(pairs) - len(alike) == 1 else "the other pairs are"
            level = "; ".join(map(formatting.listed, alike))
            said.append(f"Of {formatting.listed(arms)}, {level} are {within}; {rest} undecided.")
        else:
            said.append(f"{formatting.listed(arms)} are {within if alike else 'undecided among each other'}.")
    if len(apart) < len(groups):
        said.append("Not all of them differ; the rank ranges show which.")
    return said


def _spared(analysis: Analysis, setting: Scenario, metric: MetricInfo) -> list[str]:
    """Name the arms that were void more or less often than others, and senders that offered too little traffic.

    [] for all metrics but the setting's first primary one, so that it is said once.
    """
    if metric != primary_metrics(analysis, setting)[0]:
        return []
    unlike, more = unlike_voids(analysis)
    said = []
    if unlike:
        arms = formatting.listed([rate.arm for rate in unlike])
        said.append(
            f"Trials of {arms} are void {'more' if more else 'less'} often than others', which may bias the numbers."
        )
    for cell in analysis.cells_of(setting, _SHORTFALL):
        short = [value.value for value in cell.values if value.value > _SHORT]
        if short:
            said.append(
                f"With {cell.arm} the sender offered less than it was asked for in {len(short)} of {len(cell.values)} blocks"
                f" (at worst {formatting.percent(1 - max(short) / 100)} of it), and nothing outside of its nodes explains that."
            )
    return said


def _doubtful(cells: list[MetricCell]) -> list[str]:
    """Return a sentence for each arm with values of zero, or that fails too often: a mean shows neither."""
    said = [f"{cell.arm}: 0 in {cell.zeros} of {len(cell.values)} blocks." for cell in cells if cell.zeros]
    for cell in cells:
        if cell.unreliable and cell.success.count:
            said.append(f"{cell.arm} is {formatting.reliability(cell)}.")
    return said


def _ceilings(cells: list[MetricCell]) -> list[str]:
    at_load = [cell.arm for cell in cells if cell.ceiling == "load"]
    at_link = [cell.arm for cell in cells if cell.ceiling == "link"]
    near = [cell.arm for cell in cells if cell.ceiling == "near the link"]
    at_lab = [cell.arm for cell in cells if cell.ceiling == "lab"]
    said = []
    if at_load:
        arms = "every arm" if len(at_load) == len(cells) else formatting.listed(at_load)
        verb = "delivers" if len(at_load) in (1, len(cells)) else "deliver"
        offered = f"at least {formatting.percent(AT_LOAD)} of what is offered"
        said.append(
            f"In the median block {arms} {verb} {offered}, so the offered load and not the arm is the limit here."
        )
    if at_link:
        said.append(f"{formatting.listed(at_link)}: limited by the link itself; a faster link might show more.")
    if near:
        said.append(f"{formatting.listed(near)}: below the link's limit by no more than a tunnel's own headers.")
    if at_lab:
        said.append(
            f"{formatting.listed(at_lab)}: near what the generator reaches on the bare link that is not shaped, so generator and "
            "lab may be the limit."
        )
    return said


def _against(cell: MetricCell) -> Comparison:
    assert cell.against_direct is not None
    return cell.against_direct
