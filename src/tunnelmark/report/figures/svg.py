"""Writes the few parts of SVG that the figures need: elements, scales and ticks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil, floor, log10

from markupsafe import Markup, escape

WIDTH = 760
"""The width of a figure in its own units, which are about the pixels of a text column."""


def element(name: str, *content: str, **attributes: object) -> Markup:
    """Return an element. Plain text in its content is escaped, Markup is not.

    In names of attributes, `class_` becomes `class`, and `a_b` becomes `a-b`. An attribute that is None is left out.
    """
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(_short(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    inside = "".join(escape(part) for part in content)
    return Markup(f"<{name}{written}>{inside}</{name}>" if inside else f"<{name}{written}/>")  # noqa: S704 (escaped above)


def text(x: float, y: float, words: str, class_: str = "", anchor: str = "start") -> Markup:
    return element("text", words, x=x, y=y, class_=class_ or None, text_anchor=None if anchor == "start" else anchor)


def line(x1: float, y1: float, x2: float, y2: float, class_: str) -> Markup:
    return element("line", x1=x1, y1=y1, x2=x2, y2=y2, class_=class_)


def path(points: Iterable[tuple[float, float]], class_: str) -> Markup:
    """Return a line through the points; empty without points."""
    steps = [f"{_short(float(x))} {_short(float(y))}" for x, y in points]
    return element("path", d="M" + "L".join(steps), class_=class_) if steps else Markup("")


def picture(height: float, title: str, parts: Iterable[str], width: float = WIDTH) -> Markup:
    """Return a whole figure; `title` says in words what the figure shows, for readers who cannot see it."""
    return element(
        "svg",
        element("title", title),
        *parts,
        viewBox=f"0 0 {_short(width)} {_short(height)}",
        role="img",
        aria_label=title,
    )


def names_width(names: Iterable[str], letter: float = 8.2, least: float = 150.0) -> float:
    """Return how many pixels the names of rows need on the left of a figure, at least `least`.

    `letter`: the width of a letter, in pixels.
    """
    return max(least, *(letter * len(name) + 20.0 for name in names))


@dataclass(frozen=True, slots=True)
class Axis:
    """Maps values to positions in pixels, linearly or by their logarithm.

    `low`, `high`: the range of values; a value outside of it is drawn at its end.
    `start`, `end`: the positions of `low` and `high`.
    """

    low: float
    high: float
    start: float
    end: float
    logarithmic: bool = False

    def __call__(self, value: float) -> float:
        value = min(max(value, self.low), self.high)
        if self.logarithmic:
            share = log10(value / self.low) / log10(self.high / self.low)
        else:
            share = (value - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)

    def ticks(self, about: int = 6) -> list[float]:
        """Return round values inside the axis, roughly `about` of them."""
        if self.logarithmic:
            decades = range(floor(log10(self.low)) - 1, ceil(log10(self.high)) + 1)
            sets: Sequence[Sequence[float]] = ((1, 2, 3, 5, 7), (1, 2, 5), (1, 3), (1,))
            for steps in sets:
                found = [m * 10.0**d for d in decades for m in steps if self.low <= m * 10.0**d <= self.high]
                if len(found) <= about + 2:
                    break
            return found
        step = round_step((self.high - self.low) / about)
        first = ceil(self.low / step - 1e-9)
        return [k * step for k in range(first, floor(self.high / step + 1e-9) + 1)]


def axis(values: Sequence[float], start: float, end: float, *, zero: bool, may_be_log: bool) -> Axis:
    """Return an axis that holds all `values` (at least one), from position `start` to position `end`, in pixels.

    `may_be_log`: it is logarithmic if all values are positive and they span more than a factor of five. `zero`: an axis
    that is not logarithmic also holds zero.
    """
    low, high = min(values), max(values)
    if may_be_log and low > 0 and high / low > 5:
        return Axis(low / 1.15, high * 1.15, start, end, logarithmic=True)
    if zero:
        low, high = min(low, 0.0), max(high, 0.0)
        if low == high:  # all are zero, and an axis needs a length
            return Axis(0.0, 1.0, start, end)
    span = (high - low) or abs(high) or 1.0
    air = 0.04 * span
    return Axis(low if zero and low == 0 else low - air, high if zero and high == 0 else high + air, start, end)


def round_step(rough: float) -> float:
    """Return the smallest round number (1, 2 or 5 times a power of ten) that is at least `rough`, within 0.1 %."""
    power = 10.0 ** floor(log10(rough)) if rough > 0 else 1.0
    return next(m * power for m in (1, 2, 5, 10) if m * power >= rough * 0.999)


def _short(value: object) -> str:
    return f"{value:.1f}".removesuffix(".0") if isinstance(value, float) else str(value)
