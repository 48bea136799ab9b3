"""Says in words which trials were too short for their link: the study shortened them, or they were not stationary.

A window is not stationary if the goodput in its second half differs from that in its first half (`analyse.steady`).
"""

from __future__ import annotations

from collections.abc import Sequence

from tunnelmark.analyse.model import Analysis, MetricCell
from tunnelmark.analyse.steady import unsteady
from tunnelmark.report import formatting

SIGN = "∿"
"""The mark for a number whose window was not stationary, for places without room for words."""


def mark(analysis: Analysis, cell: MetricCell) -> str:
    """Say that the window of a cell was not stationary, and by how much; "" if it was, or if that is not known."""
    moved = unsteady(analysis, cell)
    return "" if moved is None else f"not stationary: second half less first {_signed(moved)} of their mean"


def sentences(analysis: Analysis, cells: Sequence[MetricCell]) -> list[str]:
    """Return a sentence that names the cells whose windows were not stationary; empty if there are none."""
    found = [(cell.arm, moved) for cell in cells if (moved := unsteady(analysis, cell)) is not None]
    if not found:
        return []
    arms = formatting.listed([f"{arm} ({_signed(moved)})" for arm, moved in found])
    return [
        f"The window was not stationary, by its second half less its first, as a share of their mean: {arms}; a longer trial would say something else."
    ]


def short(analysis: Analysis) -> list[str]:
    """Return a caution that names the workloads that the study made shorter than their links need; empty if none."""
    found = [
        f"{use.name} over {profile}: {why}"
        for use in analysis.results.plan.workloads
        for profile, why in use.short.items()
    ]
    return [f"Shorter than the link asks for, as the study states it: {'; '.join(found)}."] if found else []


def _signed(percent: float) -> str:
    return f"{percent:+.0f} %".replace("-", "−")
