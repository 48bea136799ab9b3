"""Draws figures for a paper, as PDF and SVG: effects against direct, heat maps over conditions, and box plots.

The box plots show values over time. Figures are as wide as one column of a journal (3.5 inches) or two (7.16), with
letters of 6.5 to 8 points, and colours that colour-blind readers can tell apart (Okabe and Ito 2008,
https://jfly.uni-koeln.de/color/). The same results give the same bytes. Needs matplotlib (`tunnelmark[paper]`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from math import isfinite
from textwrap import fill
from typing import TYPE_CHECKING, Any

from tunnelmark.analyse.model import Analysis, MetricCell, Scenario
from tunnelmark.analyse.pairing import effect as effect_of
from tunnelmark.errors import MissingPart
from tunnelmark.record.results import MetricInfo
from tunnelmark.report import formatting, queries
from tunnelmark.report.across_tables import Matrix, matrices
from tunnelmark.report.figures.boxes import REACH, five_numbers
from tunnelmark.report.figures.heat import shade

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FORMS = ("pdf", "svg")
"""The file formats of each figure."""

COLUMN, TWO_COLUMNS = 3.5, 7.16
"""Widths in inches: one and two columns of an IEEE journal."""

BLUE, VERMILION, GREY = "#0072B2", "#D55E00", "#666666"

_STYLE: dict[str, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 7.5,
    "axes.titlesize": 8,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.0,
    "pdf.fonttype": 42,  # letters as TrueType, which publishers ask for
    "svg.fonttype": "none",  # letters as text, which can be searched and edited
    "svg.hashsalt": "tunnelmark",
}
_ROW = 0.24  # inches per arm
_LINE = 40  # letters per line below the axes


@dataclass(frozen=True, slots=True)
class PaperFigure:
    """A figure for a paper.

    `name`: the name of its files without an ending.
    `caption`: the text below it.
    `wide`: whether it spans two columns.
    `files`: the content of each file, by its ending (`pdf`, `svg`).
    """

    name: str
    caption: str
    wide: bool
    files: dict[str, bytes]


def figures(analysis: Analysis) -> Iterator[PaperFigure]:
    """Yield effects and box plots of each primary metric in each scenario, and heat maps over several conditions.

    Raises MissingPart if matplotlib is not installed.
    """
    _require()
    for setting in analysis.settings():
        for metric in queries.primary_metrics(analysis, setting):
            yield from filter(None, (_effects(analysis, setting, metric), _boxes(analysis, setting, metric)))
    for matrix in matrices(analysis):
        yield _heat(analysis, matrix)


def _require() -> None:
    try:
        import matplotlib  # noqa: F401 (whether it is there)
    except ImportError:
        raise MissingPart(
            "figures for a paper need matplotlib, which is not installed", hint="pip install 'tunnelmark[paper]'"
        ) from None


def _effects(analysis: Analysis, setting: Scenario, metric: MetricInfo) -> PaperFigure | None:
    """Draw a row per arm: a ring per block, the estimate with its 95 % interval, filled if shown to be different.

    None if no arm has an estimate.
    """
    rows = [cell for cell in queries.cells(analysis, setting, metric) if _estimate(cell) is not None]
    if not rows:
        return None
    scale = formatting.scale(metric.unit, [abs(size) for cell in rows if (size := _estimate(cell))])
    factor = 1.0 if metric.compare == "ratio" else 1 / scale.factor
    with _axes(COLUMN, _ROW * len(rows) + 0.62) as (drawn, axes):
        for place, cell in enumerate(reversed(rows)):
            found = cell.against_direct
            assert found is not None and found.estimate is not None
            blocks = [value * factor for value in found.effects if isfinite(value)]
            axes.plot(blocks, [place] * len(blocks), "o", ms=2.6, mfc="none", mec=GREY, mew=0.5, zorder=2)
            if found.interval is not None and isfinite(found.interval.high):
                ends = [found.interval.low * factor, found.interval.high * factor]
                axes.plot(ends, [place, place], "-", color=BLUE, lw=1.6, solid_capstyle="butt", zorder=3)
            inside = BLUE if cell.verdict in ("better", "worse") else "white"
            axes.plot([found.estimate * factor], [place], "o", ms=4, mfc=inside, mec=BLUE, mew=1, zorder=4)
        axes.axvline(effect_of(metric, 0.0) * factor, color="black", lw=0.6, zorder=1)
        axes.set_yticks(range(len(rows)), [queries.label(analysis, cell.arm) for cell in reversed(rows)])
        axes.set_ylim(-0.6, len(rows) - 0.4)
        against = analysis.reference or "direct"
        unit = (
            f"over that of {against}"
            if metric.compare == "ratio"
            else f"more than {against}, in {'percentage points' if metric.unit == '%' else scale.unit or metric.unit}"
        )
        axes.set_xlabel(_wrapped(f"{metric.title}, {unit}"))
        if metric.compare == "ratio" and min(size for cell in rows if (size := _estimate(cell)) is not None) < 0.8:
            axes.set_xlim(left=0)
        return PaperFigure(
            _name("effects", setting, metric.name),
            f"{_what(analysis, setting, metric)} against {against}, in the same block: estimate with its 95 % interval, and each block "
            f"(rings). Filled: different from {against} by a test that is corrected over the study's primary comparisons.",
            wide=False,
            files=_saved(drawn),
        )


def _boxes(analysis: Analysis, setting: Scenario, metric: MetricInfo) -> PaperFigure | None:
    """Draw a box per arm (Tukey) over all values over time of all blocks; None if no whisker reaches above 0."""
    found = {
        arm: five_numbers([value for points in blocks.values() for _, value in points])
        for arm, blocks in queries.series(analysis, setting, metric).items()
    }
    if not any(one.high for one in found.values()):
        return None
    scale = formatting.scale(metric.unit, [one.median for one in found.values()])
    with _axes(COLUMN, _ROW * len(found) + 0.62) as (drawn, axes):
        drawable = [
            {
                "med": one.median / scale.factor,
                "q1": one.quarter / scale.factor,
                "q3": one.three_quarters / scale.factor,
                "whislo": one.low / scale.factor,
                "whishi": one.high / scale.factor,
                "fliers": [value / scale.factor for value in one.beyond],
            }
            for one in reversed(found.values())
        ]
        line = {"color": GREY, "linewidth": 0.7}
        axes.bxp(
            drawable,
            orientation="horizontal",
            positions=range(len(found)),
            widths=0.55,
            patch_artist=True,
            boxprops={"facecolor": "#DCE9F2", "edgecolor": BLUE, "linewidth": 0.7},
            medianprops={"color": BLUE, "linewidth": 1.4},
            whiskerprops=line,
            capprops=line,
            flierprops={
                "marker": "o",
                "markersize": 2,
                "markerfacecolor": "none",
                "markeredgecolor": GREY,
                "markeredgewidth": 0.4,
            },
        )
        axes.set_yticks(range(len(found)), [queries.label(analysis, arm) for arm in reversed(found)])
        axes.set_xlim(left=0)
        axes.set_xlabel(_wrapped(f"{metric.title}, {scale.unit or metric.unit}"))
        counts = sorted({one.count for one in found.values()})
        values = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
        return PaperFigure(
            _name("by-second", setting, metric.name),
            f"{_what(analysis, setting, metric)}, all values over time of all blocks ({values} an arm): median, quartiles, and whiskers to "
            f"the last value within {REACH} box lengths of the box. Values of one trial are not independent.",
            wide=False,
            files=_saved(drawn),
        )


def _heat(analysis: Analysis, matrix: Matrix) -> PaperFigure:
    """Draw arms by conditions, each with its effect, shaded from four times worse than direct to four times better."""
    from matplotlib.colors import LinearSegmentedColormap

    rows = list(matrix.rows.items())
    colours = LinearSegmentedColormap.from_list("verdict", ["#E8A07A", "#FFFFFF", "#7FB6DA"])
    width = COLUMN if len(matrix.heads) <= 3 else TWO_COLUMNS
    with _axes(width, 0.3 * len(rows) + 0.75) as (drawn, axes):
        axes.imshow(
            [[shade(shown.cell) if shown.cell.spread else 0.0 for shown in cells] for _, cells in rows],
            cmap=colours,
            vmin=-1,
            vmax=1,
            aspect="auto",
        )
        for y, (_, cells) in enumerate(rows):
            for x, shown in enumerate(cells):
                axes.text(x, y, _field(shown.cell), ha="center", va="center", fontsize=6.5)
        axes.set_xticks(
            range(len(matrix.heads)), list(matrix.heads), rotation=20 if len(matrix.heads) > 2 else 0, ha="center"
        )
        axes.set_yticks(range(len(rows)), [queries.label(analysis, arm) for arm, _ in rows])
        axes.tick_params(length=0)
        for spine in axes.spines.values():
            spine.set_visible(False)
        against = analysis.reference or "direct"
        return PaperFigure(
            _plain(f"conditions-{matrix.workload}-{matrix.metric.name}"),
            f"{matrix.title} of each arm in each condition against {against}. Shaded from four times worse (orange) to four times better "
            "(blue). Unmarked fields are undecided or equal; an asterisk marks what a test tells from it.",
            wide=width == TWO_COLUMNS,
            files=_saved(drawn),
        )


def _field(cell: MetricCell) -> str:
    found = cell.against_direct
    if cell.spread is None:
        return formatting.VERDICTS[cell.verdict]
    if found is None or found.estimate is None or not isfinite(found.estimate):
        return formatting.scale(cell.metric.unit, [cell.spread.median]).value(cell.spread.median)
    return formatting.amount(cell.metric, found.estimate) + ("*" if cell.verdict in ("better", "worse") else "")


def _estimate(cell: MetricCell) -> float | None:
    found = cell.against_direct
    return found.estimate if found and found.estimate is not None and isfinite(found.estimate) else None


def _what(analysis: Analysis, setting: Scenario, metric: MetricInfo) -> str:
    title = formatting.capital(metric.title)
    return f"{title} ({queries.workload(analysis, setting).title}; {setting.profile}, {setting.topology})"


def _wrapped(label: str) -> str:
    """Break the label of an axis into lines that fit below the axes of one column."""
    return fill(label, _LINE)


def _name(kind: str, setting: Scenario, metric: str) -> str:
    return _plain("-".join([kind, setting.profile, setting.topology, setting.workload, metric]))


def _plain(text: str) -> str:
    """Return the text as a file name, with a hyphen for each character that LaTeX or a shell might interpret."""
    return "".join(sign if sign.isascii() and (sign.isalnum() or sign == "-") else "-" for sign in text)


@contextmanager
def _axes(width: float, height: float) -> Iterator[tuple[Figure, Axes]]:
    """Yield a figure of `width` x `height` inches and its axes, in the style that all figures have."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure as Drawn

    with rc_context(_STYLE):  # type: ignore[arg-type]
        drawn = Drawn(figsize=(width, height), layout="constrained")
        yield drawn, drawn.add_subplot()


def _saved(drawn: Figure) -> dict[str, bytes]:
    """Return the figure's bytes in each format of `FORMS`. They contain no date, which would differ each time."""
    files = {}
    for form in FORMS:
        held = BytesIO()
        drawn.savefig(held, format=form, metadata={"CreationDate": None} if form == "pdf" else {"Date": None})
        files[form] = held.getvalue()
    return files
