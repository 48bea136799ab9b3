"""Finds what a run has for the cells of a source's tables: settings, values, trials, and what limited them."""

from __future__ import annotations

from collections.abc import Mapping

from tunnelmark.analyse.model import Analysis, Bottleneck, MetricCell, Scenario
from tunnelmark.claims import run_statistics
from tunnelmark.claims.model import Cell, ClaimsFile
from tunnelmark.record.results import TrialRow


class RunCells:
    """A run by the source's names. A cell is one quantity of one arm under one condition.

    `direct`: the source's name of the bare link; None if it has none. `one_machine`: whether all nodes shared a machine.
    """

    def __init__(self, claims: ClaimsFile, analysis: Analysis) -> None:
        self.claims = claims
        self.analysis = analysis
        self.direct = next((name for name, arm in claims.arms.items() if arm == analysis.reference), None)
        self.one_machine = not analysis.results.environment.get("hosts")
        self._settings: dict[tuple[str, str], list[Scenario]] = {}
        for setting in analysis.settings():
            self._settings.setdefault((setting.profile, setting.workload), []).append(setting)

    def cores(self, cell: Cell) -> int | None:
        """Return how many cores each node had; what was asked for if that was not recorded, None on hosts of their own."""
        record, setting = self.analysis.results.environment, self.setting(cell)
        if record.get("hosts"):
            return None
        lab = record.get("lab")
        placed = (lab.get("placement") if isinstance(lab, Mapping) else None) or {}
        found = placed.get(setting.topology) if setting is not None else None
        return int(found["cores_per_node"]) if found else self.analysis.results.plan.cores

    def setting(self, cell: Cell) -> Scenario | None:
        quantity, condition = self.claims.quantities[cell.quantity], self.claims.conditions[cell.condition]
        settings = self._settings.get((condition.profile, quantity.workload), ())
        return next((setting for setting in settings if condition.topology in ("", setting.topology)), None)

    def cell(self, cell: Cell) -> MetricCell | None:
        setting = self.setting(cell)
        arm = self.claims.arms.get(cell.arm)
        if setting is None or arm is None:
            return None
        try:
            return self.analysis.cell(arm, setting, self.claims.quantities[cell.quantity].metric)
        except KeyError:
            return None

    def values(self, cell: Cell) -> dict[int, float]:
        """Return by block, in the metric's unit, the metric's value or the quantity's statistic of it, or {}."""
        quantity, condition = self.claims.quantities[cell.quantity], self.claims.conditions[cell.condition]
        arm = self.claims.arms.get(cell.arm)
        if quantity.statistic == "first-packet":
            return (
                {}
                if arm is None
                else run_statistics.first_packets(self.analysis, arm, condition.profile, condition.topology)
            )
        found = self.cell(cell)
        if found is None:
            return {}
        if quantity.statistic in run_statistics.SECONDS:
            return run_statistics.of_seconds(self.analysis, found.arm, found.setting, found.metric, quantity.statistic)
        values = {value.block: value.value for value in found.values}
        return run_statistics.of_runs(values) if quantity.statistic in run_statistics.SPREADS else values

    def tried(self, cell: Cell) -> tuple[tuple[TrialRow, ...], str]:
        """Return the trials that a share of successes counts, and why they say nothing about the arm, or ""."""
        quantity, condition = self.claims.quantities[cell.quantity], self.claims.conditions[cell.condition]
        arm, setting = self.claims.arms.get(cell.arm), None if quantity.of_arm else self.setting(cell)
        if arm is None or (setting is None and not quantity.of_arm):
            return (), ""
        return run_statistics.tried(self.analysis, arm, setting, condition.profile, condition.topology)

    def bound(self, cell: Cell) -> Bottleneck | None:
        """Return the bottleneck of the cell in this run; None if it is not known."""
        setting = self.setting(cell)
        bound = None if setting is None else self.analysis.bound_by.get((self.claims.arms[cell.arm], setting))
        return bound if bound is not None and bound.what != "unknown" else None

    def full_core(self, cell: Cell) -> str:
        """Return the core that was always busy in this run, even if it was not the bottleneck; "" if there was none.

        A flood keeps its core busy, whatever limits the packets that arrive.
        """
        setting = self.setting(cell)
        return "" if setting is None else run_statistics.full_core(self.analysis, self.claims.arms[cell.arm], setting)
