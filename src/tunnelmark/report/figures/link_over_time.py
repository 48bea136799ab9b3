"""Draws the checks of a link: delay and loss of its probes over time, and the expected values, in each direction."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from tunnelmark.record.link_check import LinkCheck, LinkPoint
from tunnelmark.report.figures import svg

_WIDTH, _DELAY, _LOSS = 318.0, 112.0, 44.0  # the width of a panel, and the heights of its two parts
_LEFT, _TOP, _GAP = 56.0, 26.0, 62.0


def link(checks: Sequence[LinkCheck]) -> Markup:
    """Draw those checks of one link that sent probes: a column per direction, with delay above and loss below.

    Empty if no check has values over time.
    """
    looks = [check for check in checks if any(check.series.values())]
    if not looks:
        return Markup("")
    ways = list(dict.fromkeys(way for check in looks for way in check.series))
    largest = max(_upper(check, way) for check in looks for way in ways)
    most_lost = max([_asked(looks, way, "loss") for way in ways] + [p.loss for look in looks for p in _points(look)])
    parts: list[str] = []
    for column, way in enumerate(ways):
        parts += _panel(looks, way, _LEFT + column * (_WIDTH + _GAP), 1.1 * largest or 1.0, 1.1 * most_lost or 1.0)
    height = _TOP + _DELAY + _LOSS + 58.0
    said = ", ".join(
        f"{way} {check.when}: {_achieved(check, way, 'delay_p50', 'ms')}, {_achieved(check, way, 'loss', '% lost')}, "
        f"asked {_asked(looks, way, 'delay_p50'):.2f} ms, {_asked(looks, way, 'loss'):.2f} %"
        for check in looks
        for way in ways
    )
    return svg.picture(height, f"Delay and loss of the link over time: {said}", parts)


def _panel(looks: Sequence[LinkCheck], way: str, x0: float, largest: float, most_lost: float) -> list[str]:
    until = max((point.time for look in looks for point in look.series.get(way, ())), default=1.0) or 1.0
    across = svg.Axis(0.0, until, x0, x0 + _WIDTH)
    delay = svg.Axis(0.0, largest, _TOP + _DELAY, _TOP)
    low = _TOP + _DELAY + 22.0
    loss = svg.Axis(0.0, most_lost, low + _LOSS, low)
    parts: list[str] = [svg.text(x0, _TOP - 10, way.replace(">", " to "), "arm")]
    parts.append(svg.text(across.end, _TOP - 10, "delay, ms", "note", "end"))
    parts.append(svg.text(across.end, low - 5, "lost, %", "note", "end"))
    for axis, count in ((delay, 4), (loss, 2)):
        for tick in axis.ticks(count):
            parts.append(svg.line(across.start, axis(tick), across.end, axis(tick), "guide"))
            parts.append(svg.text(x0 - 6, axis(tick) + 4, f"{tick:.4g}", "note", "end"))
    for tick in across.ticks(5):
        parts.append(svg.text(across(tick), low + _LOSS + 16, f"{tick:.3g} s", "note", "middle"))
    for look in looks:
        kind = "line median" if look.when in ("before", "alone") else "line direct"
        points = look.series.get(way, ())
        for edge in ("least", "largest"):
            found = [(across(p.time), delay(value)) for p in points if (value := getattr(p, edge)) is not None]
            parts.append(svg.path(found, "line thin"))
        parts.append(svg.path([(across(p.time), delay(p.delay)) for p in points if p.delay is not None], kind))
        parts.append(svg.path([(across(p.time), loss(p.loss)) for p in points], kind))
    for axis, name in ((delay, "delay_p50"), (loss, "loss")):
        asked = axis(_asked(looks, way, name))
        parts.append(svg.line(across.start, asked, across.end, asked, "asked"))
    return parts


def _points(check: LinkCheck) -> list[LinkPoint]:
    return [point for points in check.series.values() for point in points]


def _upper(check: LinkCheck, way: str) -> float:
    """Return the upper end of the delay axis in ms; it cuts off single peaks, which would flatten all the rest."""
    medians = [point.delay for point in check.series.get(way, ()) if point.delay is not None]
    ends = sorted(point.largest for point in check.series.get(way, ()) if point.largest is not None)
    usual = ends[int(0.9 * (len(ends) - 1))] if ends else 0.0
    return max([*medians, usual, _asked([check], way, "delay_p50")], default=0.0)


def _asked(checks: Sequence[LinkCheck], way: str, name: str) -> float:
    found = (line.expected for check in checks for line in check.lines if (line.way, line.name) == (way, name))
    return next((value for value in found if value is not None), 0.0)


def _achieved(check: LinkCheck, way: str, name: str, unit: str) -> str:
    """Return what a check measured, with its unit; `unknown` if it did not measure that."""
    found = (line.achieved for line in check.lines if (line.way, line.name) == (way, name))
    value = next((value for value in found if value is not None), None)
    return f"unknown {unit}" if value is None else f"{value:.2f} {unit}"
