"""Draws the heat map of a metric: arms by conditions, shaded by the ratio to direct, with the effect in each cell."""

from __future__ import annotations

from math import isfinite, log

from markupsafe import Markup

from tunnelmark.analyse.model import Analysis, MetricCell
from tunnelmark.report import formatting, queries
from tunnelmark.report.across_tables import Matrix
from tunnelmark.report.figures import svg

FULL = 4.0
"""A cell has the full shade if its arm is at least this many times better or worse than direct."""

STRONGEST = 0.42
"""The greatest opacity of the colour of a cell; text is still readable on it in light and in dark mode."""

_ROW, _NARROWEST, _WIDEST = 44.0, 84.0, 150.0
_LETTER = 6.3  # pixels of a letter of a small label


def heat(analysis: Analysis, matrix: Matrix) -> Markup:
    """Draw one row per arm, one column per condition; each cell has its effect against direct and its median."""
    left = svg.names_width(queries.label(analysis, arm) for arm in matrix.rows)
    wide = max(_NARROWEST, min(_WIDEST, (svg.WIDTH - left) / len(matrix.heads)))
    turned = max(len(head) for head in matrix.heads) * _LETTER > wide - 4
    top = 30.0 + (max(len(head) for head in matrix.heads) * _LETTER * 0.53 if turned else 0.0)
    parts: list[str] = []
    for place, head in enumerate(matrix.heads):
        x = left + wide * (place + 0.5)
        if turned:  # down to its column from the left, where there is room above the arms' names
            turn = f"rotate(32 {x + 6:.0f} {top - 8:.0f})"
            parts.append(
                svg.element("text", head, x=x + 6, y=top - 8, class_="small", transform=turn, text_anchor="end")
            )
        else:
            parts.append(svg.text(x, top - 9, head, "small", "middle"))
    for row, (arm, cells) in enumerate(matrix.rows.items()):
        y = top + _ROW * row
        parts.append(svg.text(left - 12, y + _ROW / 2 + 4, queries.label(analysis, arm), "arm", "end"))
        for place, shown in enumerate(cells):
            parts += _field(shown.cell, shown.value, left + wide * place, y, wide)
    bottom = top + _ROW * len(matrix.rows)
    parts += _legend(left, bottom + 16)
    told = "; ".join(
        f"{arm}: " + ", ".join(f"{head} {_said(shown.cell)}" for head, shown in zip(matrix.heads, cells, strict=True))
        for arm, cells in matrix.rows.items()
    )
    title = f"{matrix.title} of each arm in each condition, against {analysis.reference or 'direct'}. {told}"
    return svg.picture(bottom + 44, title, parts, max(svg.WIDTH, left + wide * len(matrix.heads)))


def ratio(cell: MetricCell) -> float | None:
    """Return the ratio of an arm's value to direct's value; None if the arm has no value or no finite effect.

    If effects are differences, the ratio is m / (m - e), with the arm's median m and its effect e against direct; None
    if m or m - e is not positive.
    """
    found = cell.against_direct
    if found is None or found.estimate is None or cell.spread is None:
        return None
    if cell.metric.compare == "ratio":
        return found.estimate if isfinite(found.estimate) else None
    direct = cell.spread.median - found.estimate
    return cell.spread.median / direct if direct > 0 and cell.spread.median > 0 else None


def shade(cell: MetricCell) -> float:
    """Return the shade: from -1 (four times worse than direct, or more) to 1 (four times better, or more).

    Without a ratio, the shade is -1 for the verdict worse, 1 for better, and 0 for every other verdict.
    """
    found = ratio(cell)
    if found is None:  # zeros: only the verdict says something
        return {"better": 1.0, "worse": -1.0}.get(cell.verdict, 0.0)
    size = -1.0 if found <= 0 else max(-1.0, min(1.0, log(found) / log(FULL)))
    return size if cell.metric.better == "higher" or found <= 0 else -size


def _field(cell: MetricCell, value: str, x: float, y: float, wide: float) -> list[str]:
    box = {"x": x + 1, "y": y + 1, "width": wide - 2, "height": _ROW - 2, "rx": 3}
    size = shade(cell) if cell.spread else 0.0
    parts: list[str] = [svg.element("rect", **box, class_="band")]
    if abs(size) > 0.02:
        kind = "heat-better" if size > 0 else "heat-worse"
        parts.append(svg.element("rect", **box, class_=kind, fill_opacity=f"{STRONGEST * abs(size):.2f}"))
    middle = x + wide / 2
    if not value:
        return [*parts, svg.text(middle, y + _ROW / 2 + 4, formatting.VERDICTS[cell.verdict], "value bad", "middle")]
    first, second = _said(cell), value + _marks(cell)
    if cell.against_direct is None or first == value:
        return [*parts, svg.text(middle, y + _ROW / 2 + 4, second, "value", "middle")]
    parts.append(svg.text(middle, y + _ROW / 2 - 3, first, "value", "middle"))
    return [*parts, svg.text(middle, y + _ROW / 2 + 13, second, "small", "middle")]


def _said(cell: MetricCell) -> str:
    """Return the sign and the effect without interval; else the median, or without one the verdict in words."""
    found = cell.against_direct
    if cell.spread is None:
        return formatting.VERDICTS[cell.verdict]
    if found is None or found.estimate is None or not isfinite(found.estimate):
        return formatting.scale(cell.metric.unit, [cell.spread.median]).value(cell.spread.median)
    sign = formatting.sign(cell.metric, cell.verdict, found)
    return f"{sign} {formatting.amount(cell.metric, found.estimate)}".strip()


def _marks(cell: MetricCell) -> str:
    """Say how many values are zero and how many trials failed, in few characters; "" if none."""
    zeros = f", {cell.zeros}\N{MULTIPLICATION SIGN} 0" if cell.zeros else ""
    lost = cell.success.total - cell.success.count
    return zeros + (f", {lost} failed" if lost else "")


def _legend(left: float, y: float) -> list[str]:
    steps = [-1.0, -0.5, -0.25, 0.25, 0.5, 1.0]
    parts: list[str] = [svg.text(left - 12, y + 11, "shade", "note", "end")]
    x = left
    for size in steps:
        kind = "heat-better" if size > 0 else "heat-worse"
        box = {"x": x, "y": y, "width": 26, "height": 14}
        parts.append(svg.element("rect", **box, class_="band"))
        parts.append(svg.element("rect", **box, class_=kind, fill_opacity=f"{STRONGEST * abs(size):.2f}"))
        x += 28
    words = f"from {FULL:g} times worse than direct, or more, to {FULL:g} times better, or more"
    return [*parts, svg.text(x + 8, y + 11, words, "note")]
