"""Draws box plots of a series by arm, after Tukey: one value for each second (or each sample) of all blocks.

J. W. Tukey, "Exploratory Data Analysis", 1977, 2C: the box holds the middle half, the line in it is the median, the
whiskers go to the last value within one and a half box lengths of the box, and each value beyond is a ring.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from tunnelmark.analyse.model import Analysis, Scenario
from tunnelmark.record.results import MetricInfo
from tunnelmark.report import formatting, queries
from tunnelmark.report.figures import svg

REACH = 1.5
RINGS = 40
"""How many values beyond the whiskers are drawn as rings at most, on each side of an arm's box: those farthest off.

The picture's title counts all values beyond the whiskers.
"""

_ROW, _TOP, _RIGHT = 34.0, 26.0, 560.0


@dataclass(frozen=True, slots=True)
class FiveNumbers:
    """Tukey's summary of `count` values, in their unit.

    `low`, `high`: the ends of the whiskers. `quarter`, `median`, `three_quarters`: the quartiles. `beyond`: the values
    beyond the whiskers, in ascending order.
    """

    count: int
    low: float
    quarter: float
    median: float
    three_quarters: float
    high: float
    beyond: tuple[float, ...]


def five_numbers(values: Sequence[float]) -> FiveNumbers:
    """Summarise `values`, of which there must be at least one."""
    ordered = sorted(values)
    quarter, middle, three_quarters = (queries.quantile(ordered, q) for q in (0.25, 0.5, 0.75))
    reach = REACH * (three_quarters - quarter)
    inside = [value for value in ordered if quarter - reach <= value <= three_quarters + reach]
    beyond = tuple(value for value in ordered if not inside[0] <= value <= inside[-1])
    return FiveNumbers(len(ordered), inside[0], quarter, middle, three_quarters, inside[-1], beyond)


def boxes(analysis: Analysis, setting: Scenario, metric: MetricInfo) -> Markup:
    """Draw a row with a box plot for each arm; the row of an arm without values over time says why it has none.

    Empty if no arm has such values, or if all of them are zero.
    """
    found = {
        arm: five_numbers([value for points in blocks.values() for _, value in points])
        for arm, blocks in queries.series(analysis, setting, metric).items()
    }
    if not any(one.high or one.beyond for one in found.values()):
        return Markup("")
    arms = [arm.name for arm in analysis.results.plan.arms]
    left = svg.names_width(queries.label(analysis, arm) for arm in arms)
    axis = svg.axis(_shown(found.values()), left, _RIGHT, zero=True, may_be_log=False)
    bottom = _TOP + _ROW * len(arms)
    scale = formatting.scale(metric.unit, [one.median for one in found.values()])
    parts: list[str] = [
        svg.text(_RIGHT + 96, _TOP - 9, "median", "note", "end"),
        svg.text(svg.WIDTH - 8, _TOP - 9, "values", "note", "end"),
    ]
    ticks = axis.ticks()
    for tick in ticks:
        parts.append(svg.line(axis(tick), _TOP, axis(tick), bottom + 4, "guide"))
        label = f"{tick / scale.factor:.4g}"
        text = formatting.with_unit(label, scale.unit) if tick == ticks[-1] else label
        parts.append(svg.text(axis(tick), bottom + 19, text, "note", "middle"))
    for index, arm in enumerate(arms):
        y = _TOP + _ROW * (index + 0.5)
        parts.append(svg.text(left - 12, y + 4.5, queries.label(analysis, arm), "arm", "end"))
        if arm in found:
            parts += _row(found[arm], axis, y, scale)
        else:
            parts.append(svg.text(left + 6, y + 4.5, _why(analysis, arm, setting, metric), "value bad"))
    title = f"Box plot of {metric.title} by arm: " + "; ".join(
        f"{arm} {_said(found[arm], scale)}" if arm in found else f"{arm} {_why(analysis, arm, setting, metric)}"
        for arm in arms
    )
    return svg.picture(bottom + 30, title, parts)


def _row(one: FiveNumbers, axis: svg.Axis, y: float, scale: formatting.Scale) -> list[str]:
    parts: list[str] = [svg.line(axis(one.low), y, axis(one.high), y, "whisker")]
    parts += [svg.line(axis(end), y - 5, axis(end), y + 5, "whisker") for end in (one.low, one.high)]
    left, right = axis(one.quarter), axis(one.three_quarters)
    parts.append(svg.element("rect", x=left, y=y - 9, width=max(right - left, 0.8), height=18, class_="quartiles"))
    parts.append(svg.line(axis(one.median), y - 9, axis(one.median), y + 9, "interval"))
    parts += [svg.element("circle", cx=axis(value), cy=y, r=2.2, class_="block") for value in _rings(one)]
    parts.append(svg.text(_RIGHT + 96, y + 4.5, scale.value(one.median), "value", "end"))
    parts.append(svg.text(svg.WIDTH - 8, y + 4.5, str(one.count), "value", "end"))
    return parts


def _rings(one: FiveNumbers) -> list[float]:
    below = [value for value in one.beyond if value < one.low][:RINGS]
    above = [value for value in one.beyond if value > one.high][-RINGS:]
    return [*below, *above]


def _shown(found: Iterable[FiveNumbers]) -> list[float]:
    return [value for one in found for value in (one.low, one.high, *_rings(one))]


def _why(analysis: Analysis, arm: str, setting: Scenario, metric: MetricInfo) -> str:
    cell = analysis.cell(arm, setting, metric.name)
    return formatting.VERDICTS[cell.verdict] if cell.spread is None else "no value over time"


def _said(one: FiveNumbers, scale: formatting.Scale) -> str:
    half = f"{scale.value(one.quarter)} to {scale.value(one.three_quarters)}"
    return f"median {scale.value(one.median)}, middle half {half}, {len(one.beyond)} of {one.count} values beyond the whiskers"
