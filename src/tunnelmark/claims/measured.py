"""Gives the values of a run by the source's names, in the source's units, and says what prevents a comparison."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from itertools import permutations
from statistics import fmean

from tunnelmark.analyse.model import RELIABLE, Analysis, Bottleneck, MetricCell, Scenario
from tunnelmark.analyse.pairing import setting_of
from tunnelmark.claims import differences, run_statistics
from tunnelmark.claims.model import OVER_BLOCKS, Cell, CellValues, ClaimsFile
from tunnelmark.record.results import TrialRow

LINK_SHARE = 0.9
"""An arm that reached this share of the source's bare link was limited by that link, not by its processor."""


def _is_machine(bound: Bottleneck) -> bool:
    """Return whether a faster machine would carry more: the processor or the emulator was the limit."""
    return bound.processor or bound.what == "emulator"


class RunValues:
    """The values that a run has for the cells of a source's tables.

    A cell is one quantity of one arm under one condition, all by the source's names. `differences`: what the run does
    otherwise than the source (see `differences.that_apply`).
    """

    paired = True
    single = False
    measured_here = True
    units = OVER_BLOCKS

    def __init__(self, claims: ClaimsFile, analysis: Analysis) -> None:
        self._claims = claims
        self._analysis = analysis
        self._settings: dict[tuple[str, str], list[Scenario]] = {}
        for setting in analysis.settings():
            self._settings.setdefault((setting.profile, setting.workload), []).append(setting)
        one_machine = not analysis.results.environment.get("hosts")
        self.differences = differences.that_apply(claims, analysis.results.plan, one_machine=one_machine)
        self._direct = next((name for name, arm in claims.arms.items() if arm == analysis.reference), None)

    def of(self, cell: Cell) -> CellValues | None:
        """Return the run's values of one cell by block, in the source's unit; None if the run has none.

        If the cell is a share of successful trials, the values are in per cent.
        """
        quantity = self._claims.quantities[cell.quantity]
        if quantity.statistic in run_statistics.SHARES:
            rows, _ = self._tried(cell)
            blocks = {row.block for row in rows}
            shares = {each: [row.outcome == "ok" for row in rows if row.block == each] for each in sorted(blocks)}
            values = {block: 100 * sum(good) / len(good) for block, good in shares.items()}
            return CellValues(values, (sum(row.outcome == "ok" for row in rows), len(rows))) if rows else None
        if not (found := self._values(cell)):
            return None
        return CellValues({block: value / quantity.factor for block, value in found.items()})

    def obstacle(self, cells: Mapping[Cell, int], scale: str, conservative: Collection[Cell] = ()) -> str:
        """Return the reason why these cells cannot be compared with the published ones; "" if they can.

        `cells`, `scale` ("ratio" or "difference"), `conservative`: see `model.Values.obstacle`.
        """
        for cell in cells:
            if reason := self._missing(cell) or self._needs_cores(cell, cells) or self._with_full_cores(cell):
                return reason
        if scale != "ratio":
            return ""
        if reason := self._by_a_ceiling(cells):
            return reason
        # A value that is too low on the other side of the ratio would favour the claim, so none may be limited there.
        others_are_free = not any(self._processor(cell) for cell in cells if cell not in conservative)
        for cell in cells:
            excused = others_are_free and cell in conservative and self._lowered(cell)
            if not excused and (reason := self._held_by_the_processor(cell)):
                return reason
        return self._bound_unlike(cells, conservative)

    def _bound_unlike(self, cells: Mapping[Cell, int], conservative: Collection[Cell]) -> str:
        """Return the reason, if the processor limits one side of a ratio of rates and something else the other; else "".

        Then the ratio is larger or smaller on a faster machine, whatever limited the source's. If the processor limits
        both sides of the ratio, how fast it is cancels.
        """
        bounds = {cell: bound for cell in cells if self._times_work(cell) and (bound := self._bound(cell)) is not None}
        slow = [cell for cell, bound in bounds.items() if _is_machine(bound)]
        other = next((cell for cell in bounds if cell not in slow), None)
        excused = all(cell in conservative and self._lowered(cell) for cell in slow)
        if not sum(cells[cell] for cell in slow) or other is None or excused:
            return ""
        return (
            f"{self._claims.describe(slow[0])}: {bounds[slow[0]].text} is the limit here, and {bounds[other].text} that of "
            f"{self._claims.describe(other)}, so how fast this machine is would be in the ratio"
        )

    def _cores(self, cell: Cell) -> int | None:
        """Return how many cores each node had; what was asked for if that was not recorded, None on hosts of their own."""
        record, setting = self._analysis.results.environment, self._setting(cell)
        if record.get("hosts"):
            return None
        lab = record.get("lab")
        placed = (lab.get("placement") if isinstance(lab, Mapping) else None) or {}
        found = placed.get(setting.topology) if setting is not None else None
        return int(found["cores_per_node"]) if found else self._analysis.results.plan.cores

    def _needs_cores(self, cell: Cell, cells: Collection[Cell]) -> str:
        """Return the reason, if the figure needs nodes with several cores and they have one here; else "".

        A time needs them only in a comparison with the bare link: with one core a VPN's daemon is woken on the core of the
        program that waits for it, which takes less time than on another core, and the bare link wakes no daemon. Two VPNs
        are woken alike.
        """
        quantity = self._claims.quantities[cell.quantity]
        if not quantity.several_cores or self._cores(cell) != 1:
            return ""
        named = self._claims.describe(cell)
        if quantity.kind != "time":
            return f"{named}: a node has one core here, which the VPN, the load and the kernel share"
        if cell.arm != self._direct or len({each.arm for each in cells}) == 1:
            return ""
        return f"{named}: a node has one core here, so that no daemon is woken on another, and the bare link wakes none"

    def _with_full_cores(self, cell: Cell) -> str:
        """Return the reason, if the figure says nothing once a core is full and one is full here; else ""."""
        if not self._claims.quantities[cell.quantity].unless_full:
            return ""
        bound = self._processor(cell)
        full = bound.text if bound is not None else self._full_core(cell)
        named = self._claims.describe(cell)
        return f"{named}: {full} was fully used here, and the figure then depends on this machine" if full else ""

    def _by_a_ceiling(self, cells: Mapping[Cell, int]) -> str:
        """Return the reason, if one of two rates could not exceed the other, whatever the impairment does; else "".

        That is so if an arm reaches less here without the impairment than the other does with it, and the source's did
        not: then what holds the arm without the impairment decides the comparison.
        """
        for one, other in permutations(cells, 2):
            condition = self._claims.conditions[one.condition]
            alike = (one.quantity, one.condition) == (other.quantity, other.condition)
            if len(cells) > 2 or not alike or not condition.impaired or not self._lowered(one):
                return ""
            free = [
                replace(one, condition=name)
                for name, each in self._claims.conditions.items()
                if not each.impaired and each.topology == condition.topology
            ]
            for cell in free:
                mine, others = self._values(cell).values(), self._values(other).values()
                printed = [self._claims.printed.get(each) for each in (cell, other)]
                there = printed[0] is not None and printed[1] is not None and printed[0].value < printed[1].value
                if mine and others and fmean(mine) < fmean(others) and not there:
                    return (
                        f"{self._claims.describe(cell)}: even this is less here than {self._claims.describe(other)}, which "
                        "was not so there, and so decides instead of the impairment"
                    )
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

    def _values(self, cell: Cell) -> dict[int, float]:
        """Return by block, in the metric's unit, the metric's value or the quantity's statistic of it, or {}."""
        quantity, condition = self._claims.quantities[cell.quantity], self._claims.conditions[cell.condition]
        arm = self._claims.arms.get(cell.arm)
        if quantity.statistic == "first-packet":
            return (
                {}
                if arm is None
                else run_statistics.first_packets(self._analysis, arm, condition.profile, condition.topology)
            )
        found = self._cell(cell)
        if found is None:
            return {}
        if quantity.statistic in run_statistics.SECONDS:
            return run_statistics.of_seconds(self._analysis, found.arm, found.setting, found.metric, quantity.statistic)
        values = {value.block: value.value for value in found.values}
        return run_statistics.of_runs(values) if quantity.statistic in run_statistics.SPREADS else values

    def _tried(self, cell: Cell) -> tuple[tuple[TrialRow, ...], str]:
        """Return the trials that a share of successes counts, and why they say nothing about the arm, or ""."""
        quantity, condition = self._claims.quantities[cell.quantity], self._claims.conditions[cell.condition]
        arm, setting = self._claims.arms.get(cell.arm), None if quantity.of_arm else self._setting(cell)
        if arm is None or (setting is None and not quantity.of_arm):
            return (), ""
        return run_statistics.tried(self._analysis, arm, setting, condition.profile, condition.topology)

    def _missing(self, cell: Cell) -> str:
        """Return the reason why the run has no value that repeats this cell; "" if it has one."""
        quantity, condition = self._claims.quantities[cell.quantity], self._claims.conditions[cell.condition]
        named = self._claims.describe(cell)
        for reason in (quantity.unmeasured, condition.unmeasured, self._claims.absent.get(cell.arm, "")):
            if reason:
                return reason
        plan = self._analysis.results.plan
        if quantity.full_only and not (plan.full and plan.study == self._claims.study):
            return f"how long the source's tests were decides it, and only {self._claims.study} with `--full` has them as long"
        for each in self.differences:
            if each.decides and differences.concerns(each, self._claims, cell):
                return f"{named}: {each.decides}"
        if (arm := self._claims.arms.get(cell.arm, "")) not in {each.name for each in plan.arms}:
            return f"this run has no arm {arm}"
        if not quantity.of_arm and quantity.workload not in {use.name for use in plan.workloads}:
            return f"this run has no workload {quantity.workload}"
        if quantity.statistic == run_statistics.SUITE and plan.design.part.workloads:
            return "this run has only a part of the workloads, and the source counts the successes of all of them"
        if quantity.statistic in run_statistics.SHARES:
            rows, why = self._tried(cell)
            if why:
                return f"{named}: {why}"
            return "" if rows else f"this run has no {named}"
        if quantity.of_arm:
            answered, of = run_statistics.answered(self._analysis, arm, condition.profile, condition.topology)
            if of and answered / of < RELIABLE:
                return f"{named}: {answered} of {of} deployments answered here, fewer than nine in ten"
            return "" if self._values(cell) else f"this run has no {named}"
        found = self._cell(cell)
        if found is None:
            return f"this run has no {named}"
        if not found.values and quantity.statistic not in run_statistics.SECONDS:  # which may be of a series only
            return f"{named}: {self._why_none(found)}"
        if found.success.total and found.success.count / found.success.total < RELIABLE:
            return f"{named}: {found.success.count} of {found.success.total} attempts succeeded here, fewer than nine in ten"
        if not self._values(cell):
            return f"{named}: {_TOO_LITTLE[quantity.statistic in run_statistics.SPREADS]}"
        return ""

    def _why_none(self, cell: MetricCell) -> str:
        """Return why a cell has no value, with what its failed trials say if all of them say the same."""
        if cell.verdict != "failed":
            return _WHY_NONE.get(cell.verdict, "no value here")
        said = {
            row.message
            for row in self._analysis.failed
            if row.arm == cell.arm and setting_of(row) == cell.setting and row.message
        }
        return f"every attempt failed here ({said.pop()})" if len(said) == 1 else "every attempt failed here"

    def _held_by_the_processor(self, cell: Cell) -> str:
        """Return the reason, if the link limited the cell in the source and the processor limits it here; else "".

        The ratio of such a cell depends on the machine.
        """
        quantity, condition = self._claims.quantities[cell.quantity], self._claims.conditions[cell.condition]
        named = self._claims.describe(cell)
        if quantity.unless_full or not self._times_work(cell):
            return ""
        one_machine = not self._analysis.results.environment.get("hosts")
        if quantity.all_nodes and one_machine and (reason := self._all_at_once(cell)):
            return f"{named}: all nodes work at once and share the cores of this machine; {reason}"
        bound = self._processor(cell)
        if bound is None:
            return ""
        if condition.impaired or self._filled_the_link(cell):
            return f"{named}: the link is taken for the limit there, and {bound.text} is here"
        return ""

    def _all_at_once(self, cell: Cell) -> str:
        """Return what limits a rate of all nodes at once, if it is not the link; "" if it is, or its impairment is."""
        bound, impaired = self._bound(cell), self._claims.conditions[cell.condition].impaired
        if bound is not None and _is_machine(bound):
            return f"{bound.text} is the limit here"
        if impaired or (bound is not None and bound.what == "link"):
            return ""
        return "the link is not the limit here"

    def _processor(self, cell: Cell) -> Bottleneck | None:
        """Return the bottleneck of the cell in this run if it is the processor or the emulator; else None."""
        bound = self._bound(cell)
        return bound if bound is not None and _is_machine(bound) else None

    def _bound(self, cell: Cell) -> Bottleneck | None:
        """Return the bottleneck of the cell in this run; None if it is not known."""
        setting = self._setting(cell)
        bound = None if setting is None else self._analysis.bound_by.get((self._claims.arms[cell.arm], setting))
        return bound if bound is not None and bound.what != "unknown" else None

    def _times_work(self, cell: Cell) -> bool:
        """Return whether the value is a rate, or the time of a transfer; a scatter is compared in its own run."""
        quantity = self._claims.quantities[cell.quantity]
        if quantity.statistic in run_statistics.SPREADS:
            return False
        return quantity.kind == "rate" or self._times_a_transfer(cell)

    def _full_core(self, cell: Cell) -> str:
        """Return the core that was always busy in this run, even if it was not the bottleneck; "" if there was none.

        A flood keeps its core busy, whatever limits the packets that arrive.
        """
        setting = self._setting(cell)
        return "" if setting is None else run_statistics.full_core(self._analysis, self._claims.arms[cell.arm], setting)

    def _times_a_transfer(self, cell: Cell) -> bool:
        """Return whether the value is the time of a transfer of a fixed size, which says the same as its rate."""
        found = self._cell(cell)
        return (
            found is not None
            and self._claims.quantities[cell.quantity].kind == "time"
            and found.metric.feels == "transfer"
        )

    def _lowered(self, cell: Cell) -> bool:
        """Return whether a slow processor can only lower the cell's value."""
        quantity = self._claims.quantities[cell.quantity]
        return quantity.kind == "rate" and quantity.better == "higher" and quantity.statistic is None

    def _filled_the_link(self, cell: Cell) -> bool:
        if self._direct is None or cell.arm == self._direct:
            return True
        own, bare = (
            self._claims.printed.get(each) for each in (cell, Cell(cell.quantity, cell.condition, self._direct))
        )
        if own is None or bare is None:
            return False
        # The time of a transfer is the shorter, the more of the link it had.
        slower, faster = (bare, own) if self._claims.quantities[cell.quantity].kind == "time" else (own, bare)
        return slower.value >= LINK_SHARE * faster.value


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
