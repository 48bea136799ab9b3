"""Draws what happens inside a window: values over time in a small panel per arm, and the spread of single values."""

from __future__ import annotations

from statistics import median

from markupsafe import Markup

from tunnelmark.analyse.model import Analysis, Scenario
from tunnelmark.record.results import MetricInfo
from tunnelmark.report import formatting, queries
from tunnelmark.report.figures import svg

PERCENTILES = (0.01, 0.25, 0.5, 0.75, 0.99)
_POINTS = 160
"""The most points that a line has; a screen could not show more."""


def is_spread(metric: MetricInfo) -> bool:
    """Return whether a metric's unit is one of time: its values are shown as a distribution then, not over time."""
    return metric.unit in ("s", "ms", "us", "µs")


def over_time(analysis: Analysis, setting: Scenario, metric: MetricInfo) -> tuple[Markup, str]:
    """Draw a panel for each arm; return the picture, and the highest value as text.

    Both are empty if all values are zero. In a panel, each block is a thin line, and the median over blocks is a thick
    line. In the panels of all other arms, direct's median is drawn behind these lines.
    """
    found = queries.series(analysis, setting, metric)
    values = sorted(value for blocks in found.values() for points in blocks.values() for _, value in points)
    if not any(values):
        return Markup(""), ""
    medians = {arm: _median_line(blocks) for arm, blocks in found.items()}
    # A receiver that stalls reports what came meanwhile in one burst; such peaks must not flatten all the rest.
    top_value = (
        1.1 * max(queries.quantile(values, 0.95), *(value for line in medians.values() for _, value in line))
        or values[-1]
    )
    until = max(time for blocks in found.values() for points in blocks.values() for time, _ in points) or 1.0
    columns, width, height, top = 3, 240.0, 104.0, 22.0
    scale = formatting.scale(metric.unit, [top_value])
    parts: list[str] = []
    for index, (arm, blocks) in enumerate(found.items()):
        x0 = 44.0 + (index % columns) * width
        y0 = top + (index // columns) * (height + 46.0)
        across = svg.Axis(0.0, until, x0, x0 + width - 34.0)
        up = svg.Axis(0.0, top_value, y0 + height, y0)
        parts.append(svg.text(x0, y0 - 7, arm, "arm"))
        for tick in up.ticks(3):
            parts.append(svg.line(across.start, up(tick), across.end, up(tick), "guide"))
            if index % columns == 0:
                parts.append(svg.text(x0 - 6, up(tick) + 4, f"{tick / scale.factor:.4g}", "note", "end"))
        for tick in across.ticks(4):
            parts.append(svg.text(across(tick), y0 + height + 15, f"{tick:.4g}", "note", "middle"))
        if index == 0:
            parts.append(svg.text(across.end, y0 - 7, scale.unit, "note", "end"))
        if arm != analysis.reference and analysis.reference in medians:
            parts.append(svg.path([(across(t), up(v)) for t, v in medians[analysis.reference]], "line direct"))
        parts += [
            svg.path([(across(t), up(v)) for t, v in _thinned(points)], "line thin") for points in blocks.values()
        ]
        parts.append(svg.path([(across(t), up(v)) for t, v in medians[arm]], "line median"))
    rows = -(-len(found) // columns)
    highest = scale.value(values[-1])
    title = f"{metric.title} over time of each arm, in {scale.unit}, up to {highest}"
    return svg.picture(top + rows * (height + 46.0), title, parts), highest


def spread(analysis: Analysis, setting: Scenario, metric: MetricInfo) -> Markup:
    """Draw a row per arm over all single values: 1st to 99th percentile, middle half, median; empty without values."""
    found = {
        arm: [
            queries.quantile(sorted(value for points in blocks.values() for _, value in points), q) for q in PERCENTILES
        ]
        for arm, blocks in queries.series(analysis, setting, metric).items()
    }
    if not found:
        return Markup("")
    row, top, right = 34.0, 26.0, 560.0
    left = svg.names_width(found, least=128.0)
    shown = [value for quantiles in found.values() for value in quantiles]
    axis = svg.axis(shown, left, right, zero=True, may_be_log=True)
    bottom = top + row * len(found)
    scale = formatting.scale(metric.unit, [median(shown)])
    parts: list[str] = [
        svg.text(right + 96, top - 9, "median", "note", "end"),
        svg.text(svg.WIDTH - 8, top - 9, "99th percentile", "note", "end"),
    ]
    for tick in axis.ticks(5):
        parts.append(svg.line(axis(tick), top, axis(tick), bottom + 4, "guide"))
        label = formatting.with_unit(f"{tick / scale.factor:.4g}", scale.unit)
        parts.append(svg.text(axis(tick), bottom + 19, label, "note", "middle"))
    for index, (arm, (low, quarter, middle, three_quarters, high)) in enumerate(found.items()):
        y = top + row * (index + 0.5)
        parts.append(svg.text(left - 12, y + 4.5, arm, "arm", "end"))
        parts.append(svg.line(axis(low), y, axis(high), y, "whisker"))
        parts.append(svg.line(axis(quarter), y, axis(three_quarters), y, "interval"))
        parts.append(svg.element("circle", cx=axis(middle), cy=y, r=5.2, class_="dot"))
        parts.append(svg.text(right + 96, y + 4.5, scale.value(middle), "value", "end"))
        parts.append(svg.text(svg.WIDTH - 8, y + 4.5, scale.value(high), "value", "end"))
    title = f"Distribution of {metric.title}: " + "; ".join(
        f"{arm} median {scale.value(quantiles[2])}, 99 % below {scale.value(quantiles[4])}"
        for arm, quantiles in found.items()
    )
    return svg.picture(bottom + 30, title, parts)


def _median_line(blocks: dict[int, list[tuple[float, float]]]) -> list[tuple[float, float]]:
    """Return the median over blocks at each time, to a tenth of a second."""
    at: dict[float, list[float]] = {}
    for points in blocks.values():
        for time, value in points:
            at.setdefault(round(time, 1), []).append(value)
    return _thinned([(time, median(values)) for time, values in sorted(at.items())])


def _thinned(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    return points[:: -(-len(points) // _POINTS)]
