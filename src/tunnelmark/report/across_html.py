"""Builds two sections of the HTML page: arms across conditions, and distributions (scatter, box plots, rank tests)."""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup

from tunnelmark.analyse.across import conditions
from tunnelmark.analyse.model import Analysis, Scenario
from tunnelmark.analyse.unpaired import BlockScatter, RankTest, rank_tests, scatter
from tunnelmark.record.results import MetricInfo
from tunnelmark.report import across_tables, formatting, queries
from tunnelmark.report.across_tables import Matrix, WorkloadShares
from tunnelmark.report.figures import boxes, heat, points, series

SCATTER_HEAD = ("arm", "blocks", "mean", "standard deviation", "coefficient of variation", "remarks")
RANKS_HEAD = ("arms", "values", "U", "p", "p after Holm", "Cliff’s delta", "difference, without blocks", "remarks")

CAPTIONS = {
    "heat": (
        "Shade: how many times direct’s value, on a logarithmic scale. In the cell the effect against direct with its sign, "
        "below it the median. Where differences are taken, the shade is the ratio of medians; where direct is at "
        "zero, it is full if the arm differs, and says nothing of how much."
    ),
    "points": "Dots: medians over blocks, hollow for direct. Thin lines: from the least block to the greatest.",
    "boxes": (
        "All values of all blocks. Box: the middle half, with the median; whiskers: to the last value within one and a half "
        f"box lengths of the box; rings: values beyond, at most {boxes.RINGS} on a side. Values of one trial follow each other and "
        "are not independent: the box says how steady a transfer is, not how sure its mean is."
    ),
}


@dataclass(frozen=True, slots=True)
class Titled:
    """A figure (SVG) with its title and its caption."""

    title: str
    drawing: Markup
    caption: str


@dataclass(frozen=True, slots=True)
class MatrixShown:
    """A matrix with its heat map."""

    matrix: Matrix
    figure: Titled


@dataclass(frozen=True, slots=True)
class ScatterTable:
    """Two tables of one primary metric, which show how its values vary over blocks and whether arms differ by ranks.

    `scatter`: a row for each arm in each condition: mean, standard deviation and more (columns: `SCATTER_HEAD`).
    `ranks`: a row for each two arms in each condition, with Mann-Whitney's test (columns: `RANKS_HEAD`).
    """

    title: str
    scatter: tuple[tuple[str, ...], ...]
    ranks: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class AcrossSection:
    """The content of two sections: arms across conditions, and distributions.

    `matrices`: a matrix of arms and conditions for each primary metric; empty if the study has one condition.
    `explained`: how to read the matrices. `alarm`: a warning that the signs in the matrices cannot be believed; "" if
    they can. `shares`: tables of a metric's value in one workload over its value in another; empty if no two workloads
    have the same primary metric. `points`: figures of two metrics against each other. `boxes`: box plots, in pairs of a
    condition's heading and its figures. `tables`: a table for each primary metric.
    """

    matrices: tuple[MatrixShown, ...]
    explained: str
    alarm: str
    shares: tuple[WorkloadShares, ...]
    points: tuple[Titled, ...]
    boxes: tuple[tuple[str, tuple[Titled, ...]], ...]
    tables: tuple[ScatterTable, ...]
    scatter_head: tuple[str, ...] = SCATTER_HEAD
    ranks_head: tuple[str, ...] = RANKS_HEAD

    @property
    def any_across(self) -> bool:
        """Whether conditions or workloads are compared with each other."""
        return bool(self.matrices or self.shares)

    @property
    def any_distributions(self) -> bool:
        """Whether there are values whose scatter can be shown."""
        return bool(self.boxes or self.tables or self.points)


def section(analysis: Analysis) -> AcrossSection:
    """Build the content of both sections, arms across conditions and distributions, from the analysis."""
    found = across_tables.matrices(analysis)
    return AcrossSection(
        tuple(
            MatrixShown(
                one, Titled(one.title, heat.heat(analysis, one), CAPTIONS["heat"].replace("direct", _direct(analysis)))
            )
            for one in found
        ),
        across_tables.explained(analysis) if found else "",
        across_tables.false_alarms(analysis, found),
        across_tables.workload_shares(analysis),
        _points(analysis),
        _boxes(analysis),
        _tables(analysis),
    )


def _direct(analysis: Analysis) -> str:
    return analysis.reference or "direct"


def _points(analysis: Analysis) -> tuple[Titled, ...]:
    found = []
    for axes in points.choices(analysis):
        settings = conditions(analysis, axes.across_of)
        places = [(across_tables.condition(analysis, one), one.profile, one.topology) for one in settings]
        if drawing := points.points(analysis, axes, places):
            title = f"{axes.title} ({axes.across_of}{'' if axes.up_of == axes.across_of else f', {axes.up_of}'})"
            found.append(Titled(title, drawing, CAPTIONS["points"].replace("direct", _direct(analysis))))
    return tuple(found)


def _boxes(analysis: Analysis) -> tuple[tuple[str, tuple[Titled, ...]], ...]:
    """Return box plots of the primary metrics' values over time, by the heading of their condition.

    Metrics of collectors are left out, and delays, whose distribution is shown elsewhere.
    """
    groups = []
    for heading, settings in queries.groups(analysis):
        found = [
            Titled(f"{metric.title} ({setting.workload})", drawing, CAPTIONS["boxes"])
            for setting in settings
            for metric in queries.workload(analysis, setting).metrics
            if metric.primary and not metric.watcher and not series.is_spread(metric)
            if (drawing := boxes.boxes(analysis, setting, metric))
        ]
        if found:
            groups.append((heading, tuple(found)))
    return tuple(groups)


def _tables(analysis: Analysis) -> tuple[ScatterTable, ...]:
    found = []
    for use in analysis.results.plan.workloads:
        settings = conditions(analysis, use.name)
        for metric in (metric for metric in use.metrics if metric.primary):
            rows = tuple(_scattered(analysis, one) for one in scatter(analysis, settings, metric))
            tests = tuple(_ranked(analysis, one) for one in rank_tests(analysis, settings, metric))
            if rows:
                found.append(ScatterTable(f"{metric.title} ({use.name})", rows, tests))
    return tuple(found)


def _named(analysis: Analysis, setting: Scenario, name: str) -> str:
    where = across_tables.condition(analysis, setting)
    return f"{name}, {where}" if where else name


def _scattered(analysis: Analysis, one: BlockScatter) -> tuple[str, ...]:
    metric: MetricInfo = one.cell.metric
    scale = formatting.scale(metric.unit, [] if one.mean is None else [one.mean])
    remarks = [f"{one.failed} failed"] if one.failed else []
    remarks += [f"{one.void} void"] if one.void else []
    remarks += [f"0 in {one.zeros} {'block' if one.zeros == 1 else 'blocks'}"] if one.zeros else []
    if not one.count:
        remarks.append(formatting.VERDICTS[one.cell.verdict])
    return (
        _named(analysis, one.cell.setting, queries.label(analysis, one.cell.arm)),
        str(one.count),
        "" if one.mean is None else scale.value(one.mean),
        "" if one.deviation is None else scale.value(one.deviation),
        "" if one.variation is None else formatting.percent(one.variation, 1),
        ", ".join(remarks),
    )


def _ranked(analysis: Analysis, one: RankTest) -> tuple[str, ...]:
    remarks = [
        f"{arm}: {failed} failed, not ranked"
        for arm, failed in zip((one.arm, one.against), one.failed, strict=True)
        if failed
    ]
    if one.least >= 0.05:
        remarks.append("too few values: p cannot be below 5 %")
    return (
        _named(analysis, one.setting, f"{one.arm} / {one.against}"),
        " / ".join(map(str, one.counts)),
        f"{one.u:g}",
        _p(one.p),
        _p(one.q),
        f"{one.delta:+.2f}".replace("-", "−"),
        "shown" if one.differs else "not shown",
        "; ".join(remarks),
    )


def _p(value: float) -> str:
    return "< 0.0001" if value < 0.0001 else f"{value:.4f}"
