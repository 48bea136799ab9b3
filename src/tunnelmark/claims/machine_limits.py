"""Says which comparisons with a source this machine's processor, or the bare link's lack of a daemon, would decide."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from itertools import permutations, product
from statistics import fmean

from tunnelmark.analyse.model import Bottleneck
from tunnelmark.claims import run_statistics
from tunnelmark.claims.model import Cell
from tunnelmark.claims.run_cells import RunCells

SENT_AGAIN = "retransmit_share"
"""The metric that says how much TCP sent again."""

LINK_SHARE = 0.9
"""An arm that reached this share of the source's bare link was limited by that link, not by its processor."""

COLLAPSED = 0.5
"""An arm collapses here without impairment if it has less than this part of the source's share of the bare link."""

MORE_LOST = 1.6
"""From so many times the source's losses on, losses are this machine's: TCP's rate goes with one over their root (Mathis
et al., CCR 27(3), 1997), which is then a factor of 1.25, the most that a ratio of rates may usually differ."""


def _is_machine(bound: Bottleneck) -> bool:
    """Return whether a faster machine would carry more: the processor or the emulator was the limit."""
    return bound.processor or bound.what == "emulator"


def _in_words(bound: Bottleneck) -> str:
    """Return what limited a cell, also of losses that show that a core was too slow."""
    if bound.what == "loss" and bound.processor:
        return f"a core (it is too slow for {bound.place}, which loses packets)"
    return bound.text


class MachineLimits:
    """What of a run depends on the machine that it ran on."""

    def __init__(self, run: RunCells) -> None:
        self._run = run

    def of_a_figure(self, cell: Cell, cells: Collection[Cell]) -> str:
        """Return the reason why a figure, next to the others that it is compared with, says which machine this is; or ""."""
        return self._needs_cores(cell, cells) or self._with_full_cores(cell)

    def of_a_ratio(self, cells: Mapping[Cell, int], conservative: Collection[Cell]) -> str:
        """Return the reason why a ratio says which machine this is; "" if it does not.

        `cells`, `conservative`: see `model.Values.obstacle`.
        """
        if reason := self._by_a_ceiling(cells) or self._by_a_collapse(cells, conservative):
            return reason
        # A value that is too low on the other side of the ratio would favour the claim, so none may be limited there.
        others_are_free = not any(self._processor(cell) for cell in cells if cell not in conservative)
        for cell in cells:
            excused = others_are_free and cell in conservative and self._lowered(cell)
            if not excused and (reason := self._held_by_the_processor(cell) or self._loses_more(cell)):
                return reason
        return self._bound_unlike(cells, conservative)

    def _needs_cores(self, cell: Cell, cells: Collection[Cell]) -> str:
        """Return the reason, if the figure needs nodes with several cores and they have one here; else "".

        A time needs them only in a comparison with the bare link: with one core a VPN's daemon is woken on the core of the
        program that waits for it, which takes less time than on another core, and the bare link wakes no daemon. Two VPNs
        are woken alike.
        """
        quantity = self._run.claims.quantities[cell.quantity]
        if not quantity.several_cores or self._run.cores(cell) != 1:
            return ""
        named = self._run.claims.describe(cell)
        if quantity.kind != "time":
            return f"{named}: a node has one core here, which the VPN, the load and the kernel share"
        if not self._run.is_bare(cell) or all(map(self._run.is_bare, cells)):
            return ""
        return f"{named}: with one core a node, a packet need not wake a VPN's program on another core, which is a part of what a VPN adds to the bare link"

    def _with_full_cores(self, cell: Cell) -> str:
        """Return the reason, if the figure says nothing once a core is full and one is full here; else ""."""
        if not self._run.claims.quantities[cell.quantity].unless_full:
            return ""
        bound = self._processor(cell)
        full = bound.text if bound is not None else self._run.full_core(cell)
        named = self._run.claims.describe(cell)
        return f"{named}: {full} was fully used here, and the figure then depends on this machine" if full else ""

    def _by_a_ceiling(self, cells: Mapping[Cell, int]) -> str:
        """Return the reason, if one of two rates could not exceed the other, whatever the impairment does; else "".

        That is so if an arm reaches less here without the impairment than the other does with it, and the source's did
        not: then what holds the arm without the impairment decides the comparison.
        """
        if len(cells) != 2:
            return ""
        one, other = cells
        claims, condition = self._run.claims, self._run.claims.conditions[one.condition]
        alike = (one.quantity, one.condition) == (other.quantity, other.condition)
        if not alike or not condition.impaired or not self._lowered(one):
            return ""
        without = [
            name
            for name, each in claims.conditions.items()
            if not each.impaired and each.topology == condition.topology
        ]
        for (arm, against), name in product(permutations(cells, 2), without):
            free = replace(arm, condition=name)
            mine, theirs = self._run.values(free).values(), self._run.values(against).values()
            printed = [claims.printed.get(each) for each in (free, against)]
            there = printed[0] is not None and printed[1] is not None and printed[0].value < printed[1].value
            if mine and theirs and fmean(mine) < fmean(theirs) and not there:
                return (
                    f"{claims.describe(free)}: even this is less here than {claims.describe(against)}, which "
                    "was not so there, and so decides instead of the impairment"
                )
        return ""

    def _by_a_collapse(self, cells: Mapping[Cell, int], conservative: Collection[Cell]) -> str:
        """Return the reason, if an arm collapses here without the impairment that a ratio is about; else "".

        It then keeps more of what it had than it would if the impairment alone took it.
        """
        conditions, direct = self._run.claims.conditions, self._run.direct
        free = [cell for cell in cells if not conditions[cell.condition].impaired]
        of_one = len({(cell.arm, cell.quantity) for cell in cells}) == 1
        if direct is None or not of_one or len(cells) != 2 or len(free) != 1 or not self._lowered(free[0]):
            return ""
        own, bare = free[0], replace(free[0], arm=direct)
        here = [self._run.values(cell).values() for cell in (own, bare)]
        there = self._run.claims.printed.get(own)
        carried = self._bare_there(bare)
        if own in conservative or not all(here) or there is None or carried is None:
            return ""
        share, printed = fmean(here[0]) / fmean(here[1]), there.value / carried
        if share >= COLLAPSED * printed:
            return ""
        of = "" if bare in self._run.claims.printed else " of what the bare link is printed to carry"
        return (
            f"{self._run.claims.describe(own)}: it has {100 * share:.2g} % of the bare link here, and had {100 * printed:.3g} %{of} "
            "there, so that little is left for the impairment to take"
        )

    def _bare_there(self, bare: Cell) -> float | None:
        """Return what the source's bare link had; by other rates in the same unit if the source does not print it.

        The highest of these is the least that the link carries, so that an arm's share of it is no less than this says.
        """
        claims = self._run.claims
        if bare in claims.printed:
            return claims.printed[bare].value
        unit = claims.quantities[bare.quantity].unit
        carried = [
            claims.printed[cell].value
            for name, each in claims.quantities.items()
            if each.kind == "rate" and each.unit == unit and not (each.all_nodes or each.unless_full or each.statistic)
            if (cell := replace(bare, quantity=name)) in claims.printed
        ]
        return max(carried, default=None)

    def _loses_more(self, cell: Cell) -> str:
        """Return the reason, if packets that a program took too late are what limits a rate, and not so there; else ""."""
        claims, bound = self._run.claims, self._run.bound(cell)
        if bound is None or bound.what != "loss" or not bound.processor or not self._times_work(cell):
            return ""
        for name, quantity in claims.quantities.items():
            of_it = (quantity.workload, quantity.metric) == (claims.quantities[cell.quantity].workload, SENT_AGAIN)
            again = replace(cell, quantity=name)
            if not of_it or quantity.statistic is not None or (there := claims.printed.get(again)) is None:
                continue
            here = [value / quantity.factor for value in self._run.values(again).values()]
            if here and fmean(here) > MORE_LOST * there.value:
                return (
                    f"{claims.describe(cell)}: {_in_words(bound)} is the limit here, so that {fmean(here):.2g} % is sent again, "
                    f"and {there.value:.2g} % there"
                )
        return ""

    def _bound_unlike(self, cells: Mapping[Cell, int], conservative: Collection[Cell]) -> str:
        """Return the reason, if the processor limits one side of a ratio of rates, and not or not surely the other; else "".

        Then the ratio is larger or smaller on a faster machine, whatever limited the source's. If the processor limits
        both sides of the ratio, how fast it is cancels.
        """
        bounds = {
            cell: bound
            for cell in cells
            if self._times_work(cell) and (bound := self._run.looked_for(cell)) is not None
        }
        slow = [cell for cell, bound in bounds.items() if _is_machine(bound)]
        other = next((cell for cell in bounds if cell not in slow), None)
        excused = all(cell in conservative and self._lowered(cell) for cell in slow)
        if not sum(cells[cell] for cell in slow) or other is None or excused:
            return ""
        limit, elsewhere = bounds[other], self._run.claims.describe(other)
        that = f"none was found of {elsewhere}" if limit.what == "unknown" else f"{limit.text} that of {elsewhere}"
        return (
            f"{self._run.claims.describe(slow[0])}: {_in_words(bounds[slow[0]])} is the limit here, and {that}, so how fast this "
            "machine is would be in the ratio"
        )

    def _held_by_the_processor(self, cell: Cell) -> str:
        """Return the reason, if no processor limited the cell in the source and the processor limits it here; else "".

        The ratio of such a cell depends on the machine.
        """
        quantity, condition = self._run.claims.quantities[cell.quantity], self._run.claims.conditions[cell.condition]
        named = self._run.claims.describe(cell)
        if quantity.unless_full or not self._times_work(cell):
            return ""
        if quantity.all_nodes and self._run.one_machine and (reason := self._all_at_once(cell)):
            return f"{named}: all nodes work at once and share the cores of this machine; {reason}"
        bound = self._processor(cell)
        if bound is None:
            return "" if condition.impaired else self._not_carried(cell, named)
        there = self._run.claims.there
        if there.free_cores:
            return f"{named}: no processor was the limit there, by its own account, and {_in_words(bound)} is here"
        if condition.impaired or self._filled_the_link(cell):
            known = there.processors or "it is not known whether a processor was the source's"
            return f"{named}: {_in_words(bound)} is the limit here, and {known}"
        return ""

    def _not_carried(self, cell: Cell, named: str) -> str:
        """Return the reason, if a bare link's limit was not found and the machine does not carry the link's rate; else ""."""
        if not self._run.is_bare(cell) or self._run.bound(cell) is not None or not self._run.is_too_slow_for(cell):
            return ""
        return f"{named}: this machine does not carry a full load over the bare link, by the test before the run"

    def _all_at_once(self, cell: Cell) -> str:
        """Return what limits a rate of all nodes at once, if it is not the link; "" if it is, or its impairment is."""
        if (machine := self._processor(cell)) is not None:
            return f"{machine.text} is the limit here"
        bound = self._run.bound(cell)
        if self._run.claims.conditions[cell.condition].impaired or (bound is not None and bound.what == "link"):
            return ""
        return "the link is not the limit here"

    def _processor(self, cell: Cell) -> Bottleneck | None:
        """Return the bottleneck of the cell in this run if it is the processor or the emulator; else None."""
        bound = self._run.bound(cell)
        return bound if bound is not None and _is_machine(bound) else None

    def _times_work(self, cell: Cell) -> bool:
        """Return whether the value is a rate, or the time of a transfer; a scatter is compared in its own run."""
        quantity = self._run.claims.quantities[cell.quantity]
        if quantity.statistic in run_statistics.SPREADS:
            return False
        return quantity.kind == "rate" or self._times_a_transfer(cell)

    def _times_a_transfer(self, cell: Cell) -> bool:
        """Return whether the value is the time of a transfer of a fixed size, which says the same as its rate."""
        found = self._run.cell(cell)
        return (
            found is not None
            and self._run.claims.quantities[cell.quantity].kind == "time"
            and found.metric.feels == "transfer"
        )

    def _lowered(self, cell: Cell) -> bool:
        """Return whether a slow processor can only lower the cell's value."""
        quantity = self._run.claims.quantities[cell.quantity]
        return quantity.kind == "rate" and quantity.better == "higher" and quantity.statistic is None

    def _filled_the_link(self, cell: Cell) -> bool:
        if self._run.direct is None or cell.arm == self._run.direct:
            return True
        own, bare = (
            self._run.claims.printed.get(each) for each in (cell, Cell(cell.quantity, cell.condition, self._run.direct))
        )
        if own is None or bare is None:
            return False
        # The time of a transfer is the shorter, the more of the link it had.
        slower, faster = (bare, own) if self._run.claims.quantities[cell.quantity].kind == "time" else (own, bare)
        return slower.value >= LINK_SHARE * faster.value
