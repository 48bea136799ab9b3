"""Draws a grid of routers: for each arm, a table of the kinds of NAT at both ends, with the path that the arm found."""

from __future__ import annotations

from markupsafe import Markup

from tunnelmark.report import formatting
from tunnelmark.report.figures import svg
from tunnelmark.report.paths_found import FoundPath, Grid, named

_NAMES = 118.0  # width of the kinds' names on the left
_CELL = (58.0, 30.0)
_HEAD, _GAP = 74.0, 26.0  # pixels above each field, and between two fields
_CLASSES = {"direct": "path-direct", "relayed": "path-relayed", "both": "path-relayed", "none": "path-none"}


def picture(grid: Grid) -> Markup:
    """Draw the grid of each arm, as many side by side as the width allows.

    The cell of two kinds of NAT holds the time until the path was direct, or else says which path there is.
    """
    kinds = list(dict.fromkeys(kind for row in grid.rows for kind in _both(row)))
    width = _NAMES + _CELL[0] * len(kinds)
    across = max(1, int((svg.WIDTH + _GAP) // (width + _GAP)))
    height = _HEAD + _CELL[1] * len(kinds)
    parts: list[str] = []
    for number, arm in enumerate(grid.arms):
        left, top = (number % across) * (width + _GAP), (number // across) * (height + _GAP)
        parts += _field(grid, arm, kinds, left, top)
    down = -(-len(grid.arms) // across)
    told = "; ".join(
        f"{arm}: " + ", ".join(f"{named(row)} {grid.cells[row, arm]}" for row in grid.rows) for arm in grid.arms
    )
    return svg.picture(down * (height + _GAP), f"{grid.title}. {told}", parts)


def _field(grid: Grid, arm: str, kinds: list[str], left: float, top: float) -> list[str]:
    wide, high = _CELL
    parts: list[str] = [svg.text(left, top + 14, arm, "arm")]
    for place, kind in enumerate(kinds):
        x, y = left + _NAMES + wide * place, top + _HEAD + high * place
        parts.append(svg.text(left + _NAMES - 8, y + high / 2 + 4, kind, "small", "end"))
        turned = f"rotate(-32 {x + 8:.0f} {top + _HEAD - 7:.0f})"
        parts.append(svg.element("text", kind, x=x + 8, y=top + _HEAD - 7, class_="small", transform=turned))
    for row in grid.rows:
        one, other = (kinds.index(kind) for kind in _both(row))
        found = grid.cells[row, arm]
        x, y = left + _NAMES + wide * other, top + _HEAD + high * one
        box = {"x": x + 1, "y": y + 1, "width": wide - 2, "height": high - 2}
        parts.append(svg.element("rect", **box, rx=3, class_=_CLASSES.get(found.outcome, "path-unknown")))
        parts.append(svg.text(x + wide / 2, y + high / 2 + 4, _short(found), "small", "middle"))
    return parts


def _both(row: tuple[str, ...]) -> tuple[str, str]:
    """Return the kind of NAT of the first node and that of the last one."""
    return (row[0], row[-1]) if row else ("as it is", "as it is")


def _short(found: FoundPath) -> str:
    if found.seconds is not None:
        return formatting.scale("s", [found.seconds]).value(found.seconds)
    return {"relayed": "relay" + (" (TCP)" if found.tcp else ""), "both": "both", "none": "none"}.get(
        found.outcome, "–"
    )
