"""Draws two metrics against each other: per condition, a named dot for each arm at its medians over blocks.

Lines through the dot reach from the arm's smallest block value to its largest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import cos, hypot, inf, pi, sin

from markupsafe import Markup

from tunnelmark.analyse.model import Analysis, MetricCell, Scenario
from tunnelmark.record.results import MetricInfo
from tunnelmark.report import formatting, queries
from tunnelmark.report.figures import svg

_LETTER, _LINE = 7.0, 13.0  # pixels of a name: the width of a letter, and the height
_PANEL, _HEIGHT, _LEFT, _BETWEEN = 296.0, 236.0, 56.0, 82.0
_ALONE = 2 * _PANEL + _BETWEEN  # the width of a single panel
_DOT = 5.2
_SIDES = 16  # directions that are tried for a name
_FREE = 60.0  # a box that covers fewer pixels of lines (plus its distance) is good enough: none farther is tried
_REACH = (11.0, 18.0, 27.0, 38.0, 52.0, 70.0)  # distances from the dot that are tried, in pixels


@dataclass(frozen=True, slots=True)
class Axes:
    """The two metrics of a figure, with the names of their workloads.

    `across`, of workload `across_of`, is drawn from left to right; `up`, of workload `up_of`, is drawn upwards.
    """

    across: MetricInfo
    across_of: str
    up: MetricInfo
    up_of: str

    @property
    def title(self) -> str:
        """Both metrics by their titles."""
        return f"{self.up.title} against {self.across.title}"


@dataclass(frozen=True, slots=True)
class _Dot:
    arm: str
    across: MetricCell
    up: MetricCell


Box = tuple[float, float, float, float]
"""Left, top, right, bottom, in pixels."""


def choices(analysis: Analysis) -> tuple[Axes, ...]:
    """Return the axes of each figure: a figure shows the goodput of one `tcp` workload against one other metric.

    The other metrics are delay under load (of any workload), and round-trip time and retransmissions of the `tcp`
    workload, as far as the study measures them. () if the study has no `tcp` workload, or none of the other metrics.
    """
    found = []
    uses = analysis.results.plan.workloads
    delays = [
        (metric, use.name)
        for use in uses
        for metric in use.metrics
        if metric.primary and metric.feels == "tail" and metric.unit in ("s", "ms", "us")
    ]
    for use in uses:
        goodput = next((metric for metric in use.metrics if metric.primary and metric.unit == "bit/s"), None)
        if goodput is None or use.workload != "tcp":
            continue
        own = {metric.name: metric for metric in use.metrics}
        against = [*delays[:1], *((own[name], use.name) for name in ("rtt", "retransmits") if name in own)]
        found += [Axes(goodput, use.name, metric, of) for metric, of in against]
    return tuple(found)


def points(analysis: Analysis, axes: Axes, places: Sequence[tuple[str, str, str]]) -> Markup:
    """Draw a panel for each of `places` (heading, profile, topology) in which two or more arms have both metrics.

    Empty if there is no such place.
    """
    panels = []
    for heading, profile, topology in places:
        dots, without = _dots(analysis, axes, profile, topology)
        if len(dots) > 1:
            panels.append((heading, dots, without))
    if not panels:
        return Markup("")
    parts: list[str] = []
    across = 2 if len(panels) > 1 else 1
    wide = _PANEL if len(panels) > 1 else _ALONE
    for number, (heading, dots, without) in enumerate(panels):
        left = _LEFT + (number % across) * (_PANEL + _BETWEEN)
        top = 34.0 + (number // across) * (_HEIGHT + 92.0)
        parts += _panel(analysis, axes, heading, dots, without, (left, left + wide), top)
    down = -(-len(panels) // across)
    told = "; ".join(
        f"{heading}{': ' if heading else ''}"
        + ", ".join(f"{dot.arm} {_value(dot.across)} and {_value(dot.up)}" for dot in dots)
        + (f"; without a value: {', '.join(without)}" if without else "")
        for heading, dots, without in panels
    )
    return svg.picture(34.0 + down * (_HEIGHT + 92.0) - 16.0, f"{axes.title}. {told}", parts)


def _dots(analysis: Analysis, axes: Axes, profile: str, topology: str) -> tuple[list[_Dot], list[str]]:
    """Return the arms that have both values; and those that lack one, with the verdict on the lacking value."""
    dots, without = [], []
    for arm in (arm.name for arm in analysis.results.plan.arms):
        across = analysis.cell(arm, Scenario(profile, topology, axes.across_of), axes.across.name)
        up = analysis.cell(arm, Scenario(profile, topology, axes.up_of), axes.up.name)
        if across.spread and up.spread:
            dots.append(_Dot(arm, across, up))
        else:
            without.append(f"{arm} ({formatting.VERDICTS[(across if not across.spread else up).verdict]})")
    return dots, without


def _panel(
    analysis: Analysis,
    axes: Axes,
    heading: str,
    dots: Sequence[_Dot],
    without: Sequence[str],
    sides: tuple[float, float],
    top: float,
) -> list[str]:
    left, right, bottom = *sides, top + _HEIGHT
    x_axis = svg.axis(_ends([dot.across for dot in dots]), left, right, zero=True, may_be_log=True)
    y_axis = svg.axis(_ends([dot.up for dot in dots]), bottom, top, zero=True, may_be_log=True)
    parts: list[str] = [svg.text(left, top - 19, heading, "arm")] if heading else []
    parts += _grid(axes, dots, x_axis, y_axis)
    spots = [(x_axis(_median(dot.across)), y_axis(_median(dot.up))) for dot in dots]
    lines: list[Box] = []
    for dot, (x, y) in zip(dots, spots, strict=True):
        assert dot.across.spread is not None and dot.up.spread is not None
        lines.append((x_axis(dot.across.spread.low), y, x_axis(dot.across.spread.high), y))
        lines.append((x, y_axis(dot.up.spread.high), x, y_axis(dot.up.spread.low)))
    parts += [svg.line(*line, "range") for line in lines]
    names = [queries.label(analysis, dot.arm) for dot in dots]
    frame = (left - 20.0, top - 14.0, right + 28.0, bottom + 2.0)
    boxes = placed(names, spots, frame, lines)
    for spot, box in zip(spots, boxes, strict=True):
        near = (min(max(spot[0], box[0]), box[2]), min(max(spot[1], box[1]), box[3]))
        if hypot(near[0] - spot[0], near[1] - spot[1]) > _DOT + 6:
            parts.append(svg.line(*spot, *near, "leader"))
    # Direct comes last, on top of its twins.
    for place in sorted(range(len(dots)), key=lambda place: dots[place].arm == analysis.reference):
        dot, (x, y) = dots[place], spots[place]
        words = svg.element("title", f"{names[place]}: {_value(dot.across)}, {_value(dot.up)}")
        kind = "dot tie" if dot.arm == analysis.reference else "dot"
        parts.append(svg.element("circle", words, cx=x, cy=y, r=_DOT, class_=kind))
    for name, box in zip(names, boxes, strict=True):
        parts.append(svg.text((box[0] + box[2]) / 2, (box[1] + box[3]) / 2 + 4.0, name, "small halo", "middle"))
    if without:
        parts.append(svg.text(left, bottom + 52, f"without a value: {', '.join(without)}", "note bad"))
    return parts


def _grid(axes: Axes, dots: Sequence[_Dot], x_axis: svg.Axis, y_axis: svg.Axis) -> list[str]:
    parts: list[str] = []
    x_scale = formatting.scale(axes.across.unit, [x_axis.high])
    y_scale = formatting.scale(axes.up.unit, [y_axis.high])
    bottom, top, left, right = y_axis.start, y_axis.end, x_axis.start, x_axis.end
    for tick in x_axis.ticks(5):
        parts.append(svg.line(x_axis(tick), top, x_axis(tick), bottom + 4, "guide"))
        parts.append(svg.text(x_axis(tick), bottom + 18, f"{tick / x_scale.factor:.4g}", "note", "middle"))
    for tick in y_axis.ticks(5):
        parts.append(svg.line(left - 4, y_axis(tick), right, y_axis(tick), "guide"))
        parts.append(svg.text(left - 8, y_axis(tick) + 4, f"{tick / y_scale.factor:.4g}", "note", "end"))
    parts.append(svg.text(right, bottom + 35, f"{axes.across_of}: {axes.across.name}, {x_scale.unit}", "note", "end"))
    unit = y_scale.unit or axes.up.name
    parts.append(svg.text(left - 48, top - 5, unit, "note"))
    return parts


def placed(
    names: Sequence[str], spots: Sequence[tuple[float, float]], frame: Box, lines: Sequence[Box] = ()
) -> list[Box]:
    """Return a box for each name near its dot: inside the frame, and off dots and earlier names if there is room.

    All positions are in pixels. `spots`: the middle of each name's dot. `lines`: the two ends of each line of the
    figure. Names are placed one after the other. A name gets the position around its dot that covers the least area of
    dots and earlier names. If several positions cover equally little, the nearest is taken; an area of covered lines
    counts as a longer distance. So a name may cover a line, because lines are thin and the name can be read on top of
    them.
    """
    dots = [(x - _DOT - 1, y - _DOT - 1, x + _DOT + 1, y + _DOT + 1) for x, y in spots]
    thin = [(x1 - 0.5, y1 - 0.5, x2 + 0.5, y2 + 0.5) for x1, y1, x2, y2 in lines]
    taken: list[Box] = []
    for name, spot in zip(names, spots, strict=True):
        best, least = _box(name, spot, _REACH[0], 0), (inf, inf)
        for reach in _REACH:
            for box in (_box(name, spot, reach, side) for side in range(_SIDES)):
                if not _covers(box, frame):
                    continue
                covered = sum(_overlap(box, each) for each in (*dots, *taken))
                cost = covered, sum(_overlap(box, each) for each in thin) + reach
                if cost < least:
                    best, least = box, cost
            if least[0] == 0 and least[1] < _FREE:
                break
        taken.append(best)
    return taken


def _box(name: str, spot: tuple[float, float], reach: float, side: int) -> Box:
    """Return the box of a name in direction number `side`; its nearest edge is about `reach` pixels from the dot."""
    angle = 2 * pi * side / _SIDES
    wide, high = _LETTER * len(name), _LINE
    x = spot[0] + cos(angle) * (reach + wide / 2)
    y = spot[1] + sin(angle) * (reach + high / 2)
    return x - wide / 2, y - high / 2, x + wide / 2, y + high / 2


def _covers(box: Box, frame: Box) -> bool:
    return box[0] >= frame[0] and box[1] >= frame[1] and box[2] <= frame[2] and box[3] <= frame[3]


def _overlap(one: Box, other: Box) -> float:
    """Return the area that two boxes share, in square pixels."""
    wide = min(one[2], other[2]) - max(one[0], other[0])
    high = min(one[3], other[3]) - max(one[1], other[1])
    return wide * high if wide > 0 and high > 0 else 0.0


def _ends(cells: Sequence[MetricCell]) -> list[float]:
    return [end for cell in cells if cell.spread for end in (cell.spread.low, cell.spread.high)]


def _median(cell: MetricCell) -> float:
    assert cell.spread is not None
    return cell.spread.median


def _value(cell: MetricCell) -> str:
    median = _median(cell)
    return formatting.scale(cell.metric.unit, [median]).value(median)
