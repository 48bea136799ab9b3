"""Finds what a run has for the cells of a source's tables: settings, values, trials, and what limited them."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import fmean
from typing import Any

from tunnelmark.analyse.arms import DIRECT
from tunnelmark.analyse.model import Analysis, Bottleneck, MetricCell, Scenario
from tunnelmark.claims import run_statistics
from tunnelmark.claims.model import Cell, ClaimsFile
from tunnelmark.claims.originals import Machine
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

    @property
    def machine(self) -> tuple[Machine, ...]:
        """What is true of the machine that all nodes of the run share; () if there is none."""
        if not self.one_machine:
            return ()
        placed = self._placed().values()
        single: tuple[Machine, ...] = (
            ("one core a node",) if any(each["cores_per_node"] == 1 for each in placed) else ()
        )
        return ("one", *single, *(("shared cores",) if any(each.get("shared") for each in placed) else ()))

    def is_bare(self, cell: Cell) -> bool:
        """Return whether the cell's arm is a bare link, of whatever MTU."""
        arm = self.claims.arms.get(cell.arm)
        return any(each.vpn == DIRECT for each in self.analysis.results.plan.arms if each.name == arm)

    def cores(self, cell: Cell) -> int | None:
        """Return how many cores each node had; what was asked for if that was not recorded, None on hosts of their own."""
        if not self.one_machine:
            return None
        setting = self.setting(cell)
        found = self._placed().get(setting.topology) if setting is not None else None
        return int(found["cores_per_node"]) if found else self.analysis.results.plan.cores

    def _placed(self) -> Mapping[str, Mapping[str, Any]]:
        """Return, by topology, which cores the nodes had; {} if that was not recorded."""
        lab = self.analysis.results.environment.get("lab")
        return (lab.get("placement") if isinstance(lab, Mapping) else None) or {}

    def workload(self, cell: Cell) -> str:
        """Return the name of the workload that repeats the cell in this run."""
        return self.claims.workload(cell, [use.name for use in self.analysis.results.plan.workloads])

    def setting(self, cell: Cell) -> Scenario | None:
        condition = self.claims.conditions[cell.condition]
        settings = self._settings.get((condition.profile, self.workload(cell)), ())
        return next((setting for setting in settings if condition.topology in ("", setting.topology)), None)

    def cell(self, cell: Cell) -> MetricCell | None:
        arm = self.claims.arms.get(cell.arm)
        return None if arm is None else self._cell(cell, arm)

    def _cell(self, cell: Cell, arm: str) -> MetricCell | None:
        setting = self.setting(cell)
        if setting is None:
            return None
        try:
            return self.analysis.cell(arm, setting, self.claims.quantities[cell.quantity].metric)
        except KeyError:
            return None

    def values(self, cell: Cell) -> dict[int, float]:
        """Return by block, in the metric's unit, the metric's value or the quantity's statistic of it, or {}.

        If the study measures an arm twice (`same_as`), a block's value is the mean of both.
        """
        arm = self.claims.arms.get(cell.arm)
        if arm is None:
            return {}
        twins = [each.name for each in self.analysis.results.plan.arms if each.same_as == arm]
        by_arm = [self._values(cell, name) for name in (arm, *twins)]
        blocks = sorted({block for each in by_arm for block in each})
        return {block: fmean(each[block] for each in by_arm if block in each) for block in blocks}

    def _values(self, cell: Cell, arm: str) -> dict[int, float]:
        quantity, condition = self.claims.quantities[cell.quantity], self.claims.conditions[cell.condition]
        if quantity.statistic == "first-packet":
            return run_statistics.first_packets(self.analysis, arm, condition.profile, condition.topology)
        found = self._cell(cell, arm)
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
        bound = self.looked_for(cell)
        return bound if bound is not None and bound.what != "unknown" else None

    def looked_for(self, cell: Cell) -> Bottleneck | None:
        """Return the bottleneck of the cell in this run, also if it is `unknown`; None if it was not looked for."""
        setting = self.setting(cell)
        return None if setting is None else self.analysis.bound_by.get((self.claims.arms[cell.arm], setting))

    def is_too_slow_for(self, cell: Cell) -> bool:
        """Return whether the test before the run showed that this machine does not carry a full load over the cell's link."""
        setting = self.setting(cell)
        return setting is not None and setting.profile in self.analysis.results.not_carried

    def full_core(self, cell: Cell) -> str:
        """Return the core that was always busy in this run, even if it was not the bottleneck; "" if there was none.

        A flood keeps its core busy, whatever limits the packets that arrive.
        """
        setting = self.setting(cell)
        return "" if setting is None else run_statistics.full_core(self.analysis, self.claims.arms[cell.arm], setting)
