"""Draws a metric over machines: for each arm, a small field with a row per machine, and the joint results below.

If all runs are of one machine, the rows are its sessions. All fields of a picture share one axis.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite

from markupsafe import Markup

from tunnelmark.analyse.meta_analysis import MergedRow
from tunnelmark.analyse.pairing import effect
from tunnelmark.analyse.session_effects import UnitEffect
from tunnelmark.report import formatting, meta_tables
from tunnelmark.report.figures import effects, svg

_ACROSS, _GAP = 3, 20.0
_NAMES, _HEAD, _FOOT, _APART = (
    68.0,
    22.0,
    26.0,
    6.0,
)  # pixels left of a field, above it, below it, and between its parts
_ROW, _LOW_ROW, _MANY = 17.0, 8.0, 40  # with more units than _MANY, rows are low and have no names
_MOST_RINGS = 3000  # of all blocks; more would make the page large and show nothing
_BEYOND = 2.0
"""How far beyond blocks and means an interval is drawn, in multiples of their range; the rest is cut off."""

_Values = tuple[float, ...]


def picture(rows: Sequence[MergedRow]) -> Markup:
    """Draw a field for each of `rows`, which share a metric and a setting; empty if there is one machine or session."""
    names = list(dict.fromkeys(each.name for row in rows for each in row.combined.by_unit))
    if len(names) < 2:
        return Markup("")
    axis = _axis(rows)
    high = _LOW_ROW if len(names) > _MANY else _ROW
    blocks = {id(row): _blocks(row) for row in rows}
    if sum(len(values) for each in blocks.values() for values in each.values()) > _MOST_RINGS:
        blocks = {id(row): {} for row in rows}
    wide = (svg.WIDTH - _GAP * (_ACROSS - 1)) / _ACROSS
    tall = _HEAD + high * len(names) + _APART + _ROW * 3 + _FOOT
    parts: list[str] = []
    for number, row in enumerate(rows):
        left, top = (number % _ACROSS) * (wide + _GAP), (number // _ACROSS) * (tall + _GAP)
        field = svg.Axis(axis.low, axis.high, left + _NAMES, left + wide - 8, axis.logarithmic)
        parts += _field(row, field, names, top, high, blocks[id(row)])
    unit = rows[0].combined.unit
    told = "; ".join(f"{row.arm}: {_told(row)}" for row in rows)
    return svg.picture(-(-len(rows) // _ACROSS) * (tall + _GAP), f"{rows[0].metric.title} by {unit}. {told}", parts)


def _field(
    row: MergedRow, axis: svg.Axis, names: Sequence[str], top: float, high: float, blocks: Mapping[str, _Values]
) -> list[str]:
    found, metric = row.combined, row.metric
    units = {each.name: each for each in found.by_unit}
    left, bottom = axis.start - _NAMES, top + _HEAD + high * len(names) + _APART + _ROW * 3
    parts: list[str] = [svg.text(left, top + 13, row.arm, "arm")]
    nothing = effect(metric, 0.0)
    if axis.low <= nothing <= axis.high:
        parts.append(svg.line(axis(nothing), top + _HEAD - 2, axis(nothing), bottom, "zero"))
    for place, name in enumerate(names):
        y = top + _HEAD + high * (place + 0.5)
        if high == _ROW:
            parts.append(svg.text(axis.start - 8, y + 4, name, "small", "end"))
        parts.append(svg.line(axis.start, y, axis.end, y, "guide"))
        parts += [
            svg.element("circle", cx=axis(effect(metric, value)), cy=y, r=1.8, class_="block")
            for value in blocks.get(name, ())
        ]
        if name in units:
            parts += _unit(row, units[name], axis, y)
    together = (
        ("like these", found.mean, found.low, found.high, "interval"),
        ("these", found.here, found.here_low, found.here_high, "interval"),
        ("one more", found.mean, found.next_low, found.next_high, "asked"),
    )
    for place, (name, mean, low, end, style) in enumerate(together):
        if low is None or end is None:
            continue
        y = bottom - _ROW * (2.5 - place)
        parts.append(svg.text(axis.start - 8, y + 4, name, "small", "end"))
        ends = effect(metric, low), effect(metric, end)
        parts.append(svg.line(axis(ends[0]), y, axis(ends[1]), y, style))
        parts += _beyond(ends, axis, y)
        if style == "interval":
            parts.append(svg.element("circle", cx=axis(effect(metric, mean)), cy=y, r=4.0, class_="dot"))
    return parts + _ticks(row, axis, bottom)


def _unit(row: MergedRow, unit: UnitEffect, axis: svg.Axis, y: float) -> list[str]:
    """Draw a machine's own mean, with its interval if its blocks give one."""
    parts: list[str] = []
    if unit.low is not None and unit.high is not None:
        ends = effect(row.metric, unit.low), effect(row.metric, unit.high)
        parts += [svg.line(axis(ends[0]), y, axis(ends[1]), y, "whisker"), *_beyond(ends, axis, y)]
    said = svg.element("title", f"{unit.name}: {meta_tables.told(row, unit.estimate, unit.low, unit.high)}")
    parts.append(svg.element("circle", said, cx=axis(effect(row.metric, unit.estimate)), cy=y, r=3.4, class_="dot tie"))
    return parts


def _beyond(ends: tuple[float, float], axis: svg.Axis, y: float) -> list[str]:
    """Draw a sign at each end of an interval that lies outside of the axis."""
    signs = ((ends[0] < axis.low, axis.start, "‹", "end"), (ends[1] > axis.high, axis.end, "›", "start"))
    return [svg.text(x, y + 4, sign, "note", anchor) for outside, x, sign, anchor in signs if outside]


def _ticks(row: MergedRow, axis: svg.Axis, bottom: float) -> list[str]:
    ticks = axis.ticks(2)
    scale = formatting.scale(row.metric.unit, ticks)
    parts: list[str] = [svg.line(axis.start, bottom, axis.end, bottom, "tick")]
    for tick in ticks:
        parts.append(svg.line(axis(tick), bottom, axis(tick), bottom + 4, "tick"))
        said = effects.tick_text(row.metric, tick, scale, last=tick == ticks[-1])
        parts.append(svg.text(axis(tick), bottom + 17, said, "note", "middle"))
    return parts


def _axis(rows: Sequence[MergedRow]) -> svg.Axis:
    """Return an axis that holds the effects of all blocks and all means; intervals only as far as `_BEYOND` says."""
    values = [value for row in rows for each in _blocks(row).values() for value in each]
    values += [each.estimate for row in rows for each in row.combined.by_unit]
    low, high = min(values), max(values)
    far = _BEYOND * ((high - low) or 1.0)
    for row in rows:
        found = row.combined
        ends = [found.low, found.high, found.here_low, found.here_high, found.next_low, found.next_high]
        ends += [end for each in found.by_unit for end in (each.low, each.high)]
        values += [min(max(end, low - far), high + far) for end in ends if end is not None]
    metric = rows[0].metric
    shown = [effect(metric, value) for value in values if isfinite(value)]
    ratio = metric.compare == "ratio"
    wide = min(shown) < 0.8 or max(shown) > 1.25  # as in the figure of effects: far from 1, lengths must mean something
    return svg.axis([*shown, effect(metric, 0.0)], 0.0, 1.0, zero=not ratio or wide, may_be_log=ratio)


def _blocks(row: MergedRow) -> dict[str, _Values]:
    """Return the effects of the blocks of each machine or session, as log ratios or differences."""
    found: dict[str, _Values] = {}
    for each in row.effects:
        name = each.machine if row.combined.unit == "machine" else each.session
        found[name] = (*found.get(name, ()), *each.values)
    return found


def _told(row: MergedRow) -> str:
    found = row.combined
    each = ", ".join(
        f"{unit.name} {meta_tables.told(row, unit.estimate, unit.low, unit.high)}" for unit in found.by_unit
    )
    mean = meta_tables.told(row, found.mean, found.low, found.high)
    return f"{each}, together {mean}"
