"""Builds what the HTML page shows for one profile and topology: tables of arms, costs of trials, and figures."""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup

from tunnelmark.analyse.bottleneck import apart_from_direct
from tunnelmark.analyse.model import Analysis, MetricCell, Scenario
from tunnelmark.record.results import MetricInfo
from tunnelmark.report import costs, formatting, queries, titles, travels, trial_lengths
from tunnelmark.report.figures import effects, series


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table of arms: a metric in a setting, with a cell for each arm, by its name."""

    setting: Scenario
    metric: MetricInfo
    cells: dict[str, Shown]
    title: str


@dataclass(frozen=True, slots=True)
class Shown:
    """A cell as text: its value, its effect against direct, remarks, and the verdict."""

    value: str
    effect: str
    note: str
    verdict: str
    number: float | None = None  # the value in the metric's unit


@dataclass(frozen=True, slots=True)
class Figure:
    """A drawing with its caption."""

    drawing: Markup
    title: str
    caption: str


@dataclass(frozen=True, slots=True)
class Costs:
    """What a setting's trials cost, as columns with a cell for each arm.

    `shown`: the main columns. `all`: every metric of collectors that has a value. `absent`: what was not measured, and
    why, in words.
    """

    setting: Scenario
    shown: tuple[Column, ...]
    all: tuple[Column, ...]
    absent: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ChartGroup:
    """All tables and figures of one profile and topology.

    `primary`: columns of the primary metrics. `others`: columns of all further metrics but those of collectors.
    `costs`: the metrics of collectors. `effects`: figures of the arms against direct. `insides`: figures of single
    values within the measuring windows.
    """

    heading: str
    primary: tuple[Column, ...]
    others: tuple[Column, ...]
    costs: tuple[Costs, ...]
    effects: tuple[Figure, ...]
    insides: tuple[Figure, ...]


def chart_group(analysis: Analysis, heading: str, settings: tuple[Scenario, ...]) -> ChartGroup:
    """Return the tables and figures of these settings, which share a profile and a topology, under that heading."""
    primary = [(setting, metric) for setting in settings for metric in queries.primary_metrics(analysis, setting)]
    others = [(setting, metric) for setting in settings for metric in queries.other_metrics(analysis, setting)]
    drawn = [(metric, effects.effects(analysis, setting, metric), setting) for setting, metric in primary]
    return ChartGroup(
        heading,
        primary=tuple(_column(analysis, setting, metric) for setting, metric in primary),
        others=tuple(_column(analysis, setting, metric) for setting, metric in others),
        costs=tuple(_costs(analysis, cost) for cost in costs.costs(analysis) if cost.setting in settings),
        effects=tuple(
            Figure(drawing, _title(analysis, setting, metric), _effect_caption(analysis, setting, metric))
            for metric, drawing, setting in drawn
            if drawing
        ),
        insides=tuple(figure for setting in settings for figure in _insides(analysis, setting)),
    )


def _costs(analysis: Analysis, cost: costs.Cost) -> Costs:
    return Costs(
        cost.setting,
        tuple(_priced(analysis, cost.setting, metric, title) for metric, title in cost.columns),
        tuple(
            _priced(analysis, cost.setting, metric, metric.title) for metric in costs.watched(analysis, cost.setting)
        ),
        cost.absent,
    )


def _priced(analysis: Analysis, setting: Scenario, metric: MetricInfo, title: str) -> Column:
    """Return a column of one metric of cost; its text is "–" where nothing was measured. Costs are not judged."""
    shown = {}
    for cell in queries.cells(analysis, setting, metric):
        effect = formatting.effect(metric, cell.against_direct) if cell.spread and cell.against_direct else ""
        number = cell.spread.median if cell.spread else None
        shown[cell.arm] = Shown(costs.value(analysis, cell), effect, "", cell.verdict, number)
    return Column(setting, metric, shown, title)


def _column(analysis: Analysis, setting: Scenario, metric: MetricInfo) -> Column:
    cells = queries.cells(analysis, setting, metric)
    scale = formatting.scale(metric.unit, [cell.spread.median for cell in cells if cell.spread])
    return Column(
        setting, metric, {cell.arm: _shown(analysis, cell, scale) for cell in cells}, _title(analysis, setting, metric)
    )


def _title(analysis: Analysis, setting: Scenario, metric: MetricInfo) -> str:
    return titles.title(analysis.results.plan, setting.workload, metric)


def _shown(analysis: Analysis, cell: MetricCell, scale: formatting.Scale) -> Shown:
    if cell.spread is None:
        return Shown("", "", formatting.VERDICTS[cell.verdict], cell.verdict)
    found = queries.place(analysis, cell.setting, cell.metric, cell.arm)
    notes = [f"rank {formatting.rank(found.first, found.last)} of the VPNs"] if found else []
    notes += formatting.remarks(cell, analysis.reference)
    if cell.success.count < cell.success.total and not cell.unreliable:
        notes.append(f"{formatting.share(cell.success)} ok")
    if cell.void:
        notes.append(f"{cell.void} void")
    if cell.ceiling:
        notes.append(formatting.CEILINGS[cell.ceiling])
    if moved := trial_lengths.mark(analysis, cell):
        notes.append(moved)
    effect = formatting.judged(cell) + travels.mark(apart_from_direct(analysis, cell))
    return Shown(scale.value(cell.spread.median), effect, ", ".join(notes), cell.verdict, cell.spread.median)


def _effect_caption(analysis: Analysis, setting: Scenario, metric: MetricInfo) -> str:
    better = "More is better." if metric.better == "higher" else "Less is better."
    limited: dict[str, list[str]] = {}
    for cell in queries.cells(analysis, setting, metric):
        if cell.ceiling:
            limited.setdefault(formatting.CEILINGS[cell.ceiling], []).append(cell.arm)
    return " ".join([better, *(f"{limit.capitalize()}: {formatting.listed(arms)}." for limit, arms in limited.items())])


def _insides(analysis: Analysis, setting: Scenario) -> list[Figure]:
    figures = []
    for metric in queries.workload(analysis, setting).metrics:
        only_series = not any(cell.spread for cell in queries.cells(analysis, setting, metric))
        if metric.watcher or not (metric.primary or only_series):
            continue
        if series.is_spread(metric):
            drawing = series.spread(analysis, setting, metric)
            caption = (
                "All single values of all blocks: the thin line runs from the 1st to the 99th percentile, the thick one "
                "holds the middle half, the dot is the median."
            )
        else:
            drawing, highest = series.over_time(analysis, setting, metric)
            caption = (
                "Seconds since the measuring window began, from left to right. Thin: each block; thick: their median; "
                f"grey: the median of {analysis.reference or 'direct'}. Peaks are cut off at the top; the highest value is "
                f"{highest}."
            )
        if drawing:
            figures.append(Figure(drawing, _title(analysis, setting, metric), caption))
    return figures
