"""Gives the values of a run by the source's names, in the source's units, and says what prevents a comparison."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from tunnelmark.analyse import steady
from tunnelmark.analyse.model import RELIABLE, Analysis, MetricCell
from tunnelmark.analyse.pairing import setting_of
from tunnelmark.claims import differences, run_statistics
from tunnelmark.claims.machine_limits import MachineLimits
from tunnelmark.claims.model import OVER_BLOCKS, Cell, CellValues, ClaimsFile
from tunnelmark.claims.run_cells import RunCells


class RunValues:
    """The values that a run has for the cells of a source's tables.

    `differences`: what the run does otherwise than the source (see `differences.that_apply`).
    """

    paired = True
    single = False
    measured_here = True
    units = OVER_BLOCKS

    def __init__(self, claims: ClaimsFile, analysis: Analysis) -> None:
        self._run = RunCells(claims, analysis)
        self._limits = MachineLimits(self._run)
        self.differences = differences.that_apply(claims, analysis.results.plan, self._run.machine)

    def of(self, cell: Cell) -> CellValues | None:
        """Return the run's values of one cell by block, in the source's unit; None if the run has none.

        If the cell is a share of successful trials, the values are in per cent.
        """
        quantity = self._run.claims.quantities[cell.quantity]
        if quantity.statistic in run_statistics.SHARES:
            rows, _ = self._run.tried(cell)
            blocks = {row.block for row in rows}
            shares = {each: [row.outcome == "ok" for row in rows if row.block == each] for each in sorted(blocks)}
            values = {block: 100 * sum(good) / len(good) for block, good in shares.items()}
            return CellValues(values, (sum(row.outcome == "ok" for row in rows), len(rows))) if rows else None
        if not (found := self._run.values(cell)):
            return None
        return CellValues({block: value / quantity.factor for block, value in found.items()})

    def obstacle(self, cells: Mapping[Cell, int], scale: str, conservative: Collection[Cell] = ()) -> str:
        """Return the reason why these cells cannot be compared with the published ones; "" if they can.

        `cells`, `scale` ("ratio" or "difference"), `conservative`: see `model.Values.obstacle`.
        """
        if reason := next(filter(None, map(self._unmeasured, cells)), "") or self._decided(cells):
            return reason
        for cell in cells:
            if reason := self._missing(cell) or self._limits.of_a_figure(cell, cells):
                return reason
        return self._limits.of_a_ratio(cells, conservative) if scale == "ratio" else ""

    def unsteady(self, cell: Cell) -> str:
        """Return the cell with how far the halves of its window were apart, as text; "" if it was stationary."""
        found = self._run.cell(cell)
        moved = None if found is None else steady.unsteady(self._run.analysis, found)
        condition = self._run.claims.conditions[cell.condition].title
        return "" if moved is None else f"{cell.arm}, {condition} ({moved:+.0f} %)".replace("(-", "(−")

    def _unmeasured(self, cell: Cell) -> str:
        """Return the reason why no run of this study or length has a value that repeats this cell; "" if one may have."""
        quantity, condition = self._run.claims.quantities[cell.quantity], self._run.claims.conditions[cell.condition]
        for reason in (quantity.unmeasured, condition.unmeasured, self._run.claims.absent.get(cell.arm, "")):
            if reason:
                return reason
        plan = self._run.analysis.results.plan
        if quantity.full_only and not (plan.full and plan.study == self._run.claims.study):
            return f"how long the source's tests were decides it, and only {self._run.claims.study} with `--full` has them as long"
        return ""

    def _decided(self, cells: Iterable[Cell]) -> str:
        """Return the reason why a difference from the source decides these cells; "" if none does.

        Of several it is the first one in the file of claims, whichever of the cells it concerns.
        """
        for each in (difference for difference in self.differences if difference.decides):
            for cell in cells:
                if differences.concerns(each, self._run.claims, cell):
                    return f"{self._run.claims.describe(cell)}: {each.decides}"
        return ""

    def _missing(self, cell: Cell) -> str:
        """Return the reason why the run has no value that repeats this cell; "" if it has one."""
        quantity, condition = self._run.claims.quantities[cell.quantity], self._run.claims.conditions[cell.condition]
        named, plan = self._run.claims.describe(cell), self._run.analysis.results.plan
        if quantity.study and quantity.study != plan.study:
            return f"this run has no {quantity.title}; the study {quantity.study} measures it"
        if (arm := self._run.claims.arms.get(cell.arm, "")) not in {each.name for each in plan.arms}:
            return f"this run has no arm {arm}"
        if condition.profile and condition.profile not in {each.name for each in plan.profiles}:
            return f"this run has no profile {condition.profile}, which repeats {condition.title}"
        workload = self._run.workload(cell)
        if not quantity.of_arm and workload not in {use.name for use in plan.workloads}:
            return f"this run has no workload {workload}"
        if quantity.statistic == run_statistics.SUITE and plan.design.part.workloads:
            return "this run has only a part of the workloads, and the source counts the successes of all of them"
        if quantity.statistic in run_statistics.SHARES:
            rows, why = self._run.tried(cell)
            if why:
                return f"{named}: {why}"
            return "" if rows else f"this run has no {named}"
        if quantity.of_arm:
            answered, of = run_statistics.answered(self._run.analysis, arm, condition.profile, condition.topology)
            if of and answered / of < RELIABLE:
                return f"{named}: {answered} of {of} deployments answered here, fewer than nine in ten"
            return "" if self._run.values(cell) else f"this run has no {named}"
        found = self._run.cell(cell)
        if found is None:
            return f"this run has no {named}"
        if not found.values and quantity.statistic not in run_statistics.SECONDS:  # which may be of a series only
            return f"{named}: {self._why_none(found)}"
        if found.success.total and found.success.count / found.success.total < RELIABLE:
            return f"{named}: {found.success.count} of {found.success.total} attempts succeeded here, fewer than nine in ten"
        if not self._run.values(cell):
            return f"{named}: {_TOO_LITTLE[quantity.statistic in run_statistics.SPREADS]}"
        return ""

    def _why_none(self, cell: MetricCell) -> str:
        """Return why a cell has no value, with what its failed trials say if all of them say the same."""
        if cell.verdict != "failed":
            return _WHY_NONE.get(cell.verdict, "no value here")
        said = {
            row.message
            for row in self._run.analysis.failed
            if row.arm == cell.arm and setting_of(row) == cell.setting and row.message
        }
        return f"every attempt failed here ({said.pop()})" if len(said) == 1 else "every attempt failed here"


_TOO_LITTLE = {
    False: "its trials have too few whole seconds here",
    True: "fewer than three runs have a value here, or they do not differ",
}
"""The reason why there is no statistic; the key is whether the statistic is a spread over runs."""


_WHY_NONE = {
    "void": "the laboratory spoilt every attempt here",
    "not run": "not run yet",
    "left out": "the study leaves it out",
}
