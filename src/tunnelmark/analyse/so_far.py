"""Computes effects against direct while a study still runs, from the blocks so far, without a verdict. Pure.

Decisions from results before the end find differences that do not exist. So there are effects and intervals, but no
verdict of better or worse. Only values of primary metrics are kept, so that an answer takes some milliseconds.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from tunnelmark.analyse.arms import reference_of
from tunnelmark.analyse.attempts import chosen, usable
from tunnelmark.analyse.intervals import level_of
from tunnelmark.analyse.model import Comparison, Scenario
from tunnelmark.analyse.pairing import compare, values_by_block
from tunnelmark.record.results import MetricInfo, PlanInfo, TrialRow


class EffectsSoFar:
    """A run's attempts so far, with those of earlier sessions, and the effects of arms against direct from them."""

    def __init__(self, plan: PlanInfo, rows: Iterable[TrialRow] = ()) -> None:
        self._plan = plan
        self._primary = {(use.name, m.name): m for use in plan.workloads for m in use.metrics if m.primary}
        self._rows: list[TrialRow] = []
        for row in rows:
            self.add(row)

    def add(self, row: TrialRow) -> None:
        """Add the result of an attempt that has ended; only its values of primary metrics are kept."""
        kept = tuple(s for s in row.samples if s.time is None and (row.workload, s.metric) in self._primary)
        self._rows.append(replace(row, samples=kept, raw=(), phases={}, counted=(), limits={}))

    def effects(self) -> tuple[tuple[MetricInfo, Comparison], ...]:
        """Compare each arm with direct, in each setting by each primary metric, in the order of the plan.

        Comparisons without an estimate (such as those without a block that has both arms) are left out; () without
        direct.
        """
        plan = self._plan
        reference = reference_of(plan)
        if reference is None:
            return ()
        values = values_by_block(chosen(self._rows), lambda row, name: usable(row, self._primary[row.workload, name]))
        found = [
            (metric, compare(arm.name, reference, setting, metric, values, 0.0, level_of(plan.enough)))
            for setting in (
                Scenario(profile.name, topology.name, use.name)
                for profile in plan.profiles
                for topology in plan.topologies
                for use in plan.workloads
            )
            for (workload, _), metric in self._primary.items()
            if workload == setting.workload
            for arm in plan.arms
            if arm.name != reference
        ]
        return tuple((metric, one) for metric, one in found if one.estimate is not None)
