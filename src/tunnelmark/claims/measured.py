"""The values of a run as a claim needs them: by the source's names, in the source's unit, and what hinders a comparison."""

from __future__ import annotations

from collections.abc import Sequence

from tunnelmark.analyse.model import RELIABLE, Analysis, MetricCell, Scenario
from tunnelmark.claims.model import Cell, CellValues, ClaimsFile

LINK_SHARE = 0.9
"""An arm that reached this share of the source's bare link was held by that link, not by its processor."""


class RunValues:
    """The cells of a run that repeat a source's cells."""

    paired = True
    single = False

    def __init__(self, claims: ClaimsFile, analysis: Analysis) -> None:
        self._claims = claims
        self._analysis = analysis
        self._settings: dict[tuple[str, str], list[Scenario]] = {}
        for setting in analysis.settings():
            self._settings.setdefault((setting.profile, setting.workload), []).append(setting)
        self._direct = next((name for name, arm in claims.arms.items() if arm == analysis.reference), None)

    def of(self, cell: Cell) -> CellValues | None:
        """The values of a cell by block, in the source's unit; None where the run has none."""
        found = self._cell(cell)
        if found is None or not found.values:
            return None
        factor = self._claims.quantities[cell.quantity].factor
        return CellValues({value.block: value.value / factor for value in found.values})

    def obstacle(self, cells: Sequence[Cell], scale: str) -> str:
        """Why these cells say nothing about what was published."""
        for cell in cells:
            if reason := self._missing(cell):
                return reason
        if scale == "ratio":
            for cell in cells:
                if reason := self._held_by_the_processor(cell):
                    return reason
        return ""

    def _setting(self, cell: Cell) -> Scenario | None:
        quantity, condition = self._claims.quantities[cell.quantity], self._claims.conditions[cell.condition]
        settings = self._settings.get((condition.profile, quantity.workload), ())
        return next((setting for setting in settings if condition.topology in ("", setting.topology)), None)

    def _cell(self, cell: Cell) -> MetricCell | None:
        setting = self._setting(cell)
        arm = self._claims.arms.get(cell.arm)
        if setting is None or arm is None:
            return None
        try:
            return self._analysis.cell(arm, setting, self._claims.quantities[cell.quantity].metric)
        except KeyError:
            return None

    def _missing(self, cell: Cell) -> str:
        """Why the run has nothing that repeats this cell; "" where it has."""
        quantity, condition = self._claims.quantities[cell.quantity], self._claims.conditions[cell.condition]
        for reason in (quantity.unmeasured, condition.unmeasured, self._claims.absent.get(cell.arm, "")):
            if reason:
                return reason
        found = self._cell(cell)
        if found is None:
            return f"this run has no {cell}"
        if not found.values:
            return f"{cell}: {_why_none(found)}"
        if found.success.total and found.success.count / found.success.total < RELIABLE:
            return f"{cell}: {found.success.count} of {found.success.total} attempts succeeded here, fewer than nine in ten"
        return ""

    def _held_by_the_processor(self, cell: Cell) -> str:
        """What was held by the link there and is held by the processor here has another ratio on each machine."""
        setting = self._setting(cell)
        quantity, condition = self._claims.quantities[cell.quantity], self._claims.conditions[cell.condition]
        if setting is None or quantity.kind != "rate":
            return ""
        bound = self._analysis.bound_by.get((self._claims.arms[cell.arm], setting))
        if bound is None or not bound.processor:
            return ""
        if condition.impaired or self._filled_the_link(cell):
            return f"{cell}: the link was the limit there, and {bound.text} is here"
        return ""

    def _filled_the_link(self, cell: Cell) -> bool:
        if self._direct is None or cell.arm == self._direct:
            return True
        own, bare = (
            self._claims.printed.get(each) for each in (cell, Cell(cell.quantity, cell.condition, self._direct))
        )
        return own is not None and bare is not None and own.value >= LINK_SHARE * bare.value


def _why_none(cell: MetricCell) -> str:
    return {
        "failed": "every attempt failed here",
        "void": "the laboratory spoilt every attempt here",
        "not run": "not run yet",
    }.get(cell.verdict, "no value here")
