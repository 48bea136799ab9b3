"""Draws the effects by one metric: a row per arm, with a dot and its interval, and a small ring for each block."""

from __future__ import annotations

from math import isfinite

from markupsafe import Markup

from tunnelmark.analyse.aa_test import noise
from tunnelmark.analyse.model import Analysis, MetricCell, Scenario
from tunnelmark.analyse.pairing import effect as effect_of
from tunnelmark.record.results import MetricInfo
from tunnelmark.report import formatting, queries
from tunnelmark.report.figures import svg

_ROW, _TOP, _LEFT = 34.0, 30.0, 164.0
_WIDE, _SAID, _RANK = 336.0, 18.0, 588.0
"""In pixels: the axis's length; from its end to the words of a row; from its start to the right end of the ranks."""


def effects(analysis: Analysis, setting: Scenario, metric: MetricInfo) -> Markup:
    """Draw the effects of each arm against direct; empty if no arm can be compared with it."""
    cells = [cell for cell in queries.cells(analysis, setting, metric) if cell.arm != analysis.reference]
    shown = [value for cell in cells for value in _shown(cell)]
    if not shown:
        return Markup("")
    least = noise(analysis.same, setting, metric)
    nothing = effect_of(metric, 0.0)
    band = (1 / least, least) if metric.compare == "ratio" else (-least, least)
    ratio = metric.compare == "ratio"
    # Ratios far from 1 are drawn from zero, so that lengths mean something; near 1, the axis shows the differences.
    # A ratio of zero can only be drawn on a linear axis: on a logarithmic one its end would be read as the value there.
    far = min(shown) < 0.8 or max(shown) > 1.25
    left = max(_LEFT, svg.names_width(cell.arm for cell in cells))
    axis = svg.axis(
        [*shown, nothing, *band], left, left + _WIDE, zero=not ratio or far, may_be_log=ratio and min(shown) > 0
    )
    bottom = _TOP + _ROW * len(cells)
    parts: list[str] = [_band(axis, band, bottom), *_ticks(axis, metric, shown, bottom)]
    parts.append(svg.line(axis(nothing), _TOP - 8, axis(nothing), bottom, "zero"))
    parts.append(svg.text(axis(nothing), _TOP - 13, analysis.reference or "direct", "note", "middle"))
    if analysis.rankings:
        parts.append(svg.text(left + _RANK, _TOP - 13, "rank", "note", "end"))
    for index, cell in enumerate(cells):
        parts += _row(analysis, cell, axis, _TOP + _ROW * (index + 0.5))
    title = f"{metric.title} of each arm against {analysis.reference}: " + "; ".join(
        f"{cell.arm} {_said(cell)}" for cell in cells
    )
    return svg.picture(bottom + 30, title, parts, svg.WIDTH + left - _LEFT)


def _row(analysis: Analysis, cell: MetricCell, axis: svg.Axis, y: float) -> list[str]:
    twin = queries.twin_of(analysis, cell.arm)
    parts: list[str] = [svg.line(axis.start, y, axis.end, y, "guide")]
    parts.append(svg.text(axis.start - 12, y + 4.5, cell.arm, "arm", "end"))
    found = cell.against_direct
    if found is not None and found.estimate is not None and isfinite(found.estimate):
        for block, value in zip(found.blocks, found.effects, strict=True):
            if not isfinite(value):
                continue
            place = y + 3.0 * ((block - 1) % 5 - 2)
            ring = svg.element("title", f"block {block}: {formatting.number(value)}")
            parts.append(svg.element("circle", ring, cx=axis(value), cy=place, r=2.4, class_="block"))
        if found.interval is not None:
            parts.append(svg.line(axis(found.interval.low), y, axis(found.interval.high), y, "interval"))
        solid = cell.verdict in ("better", "worse")
        parts.append(svg.element("circle", cx=axis(found.estimate), cy=y, r=5.2, class_="dot" if solid else "dot tie"))
    parts.append(svg.text(axis.end + _SAID, y + 4.5, _said(cell), "value" if cell.spread else "value bad"))
    rank = queries.place(analysis, cell.setting, cell.metric, cell.arm)
    if rank is not None:
        parts.append(svg.text(axis.start + _RANK, y + 4.5, formatting.rank(rank.first, rank.last), "value", "end"))
    elif twin is not None:
        parts.append(svg.text(axis.start + _RANK, y + 4.5, "A/A", "note", "end"))
    return parts


def _shown(cell: MetricCell) -> list[float]:
    found = cell.against_direct
    if found is None:
        return []
    ends = [found.interval.low, found.interval.high] if found.interval else []
    return [value for value in (*found.effects, *ends) if isfinite(value)]


def _said(cell: MetricCell) -> str:
    if cell.against_direct is None or cell.against_direct.estimate is None:
        return formatting.VERDICTS[cell.verdict]
    zeros = f", 0 in {cell.zeros} of {len(cell.values)} blocks" if cell.zeros else ""
    return formatting.judged(cell) + zeros + (", unreliable" if cell.unreliable else "")


def _band(axis: svg.Axis, band: tuple[float, float], bottom: float) -> Markup:
    left, right = axis(band[0]), axis(band[1])
    return svg.element(
        "rect", x=left, y=_TOP - 8, width=max(right - left, 0.5), height=bottom - _TOP + 8, class_="band"
    )


def _ticks(axis: svg.Axis, metric: MetricInfo, shown: list[float], bottom: float) -> list[str]:
    parts: list[str] = []
    scale = formatting.scale(metric.unit, shown)
    ticks = axis.ticks()
    for tick in ticks:
        parts.append(svg.line(axis(tick), bottom, axis(tick), bottom + 4, "tick"))
        said = tick_text(metric, tick, scale, last=tick == ticks[-1])
        parts.append(svg.text(axis(tick), bottom + 19, said, "note", "middle"))
    parts.append(svg.line(axis.start, bottom, axis.end, bottom, "tick"))
    return parts


def tick_text(metric: MetricInfo, tick: float, scale: formatting.Scale, *, last: bool) -> str:
    """Return the text at a tick of an axis of effects; if these are differences, only the last tick has the unit."""
    if metric.compare == "ratio":
        return f"{tick:.5g}×" if metric.better == "lower" else formatting.with_unit(f"{100 * tick:.5g}", "%")
    unit = "points" if scale.unit == "%" else scale.unit
    text = f"{tick / scale.factor:.5g}".replace("-", "−")
    return formatting.with_unit(text, unit) if last else text
