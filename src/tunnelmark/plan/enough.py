"""When a run has blocks enough: what a study, or the options of a command, ask for beyond a fixed number of blocks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tunnelmark.errors import UsageError

if TYPE_CHECKING:
    from tunnelmark.plan.model import Study

FLOOR = 8
"""Blocks before the first decision, where nothing states them: a spread of fewer blocks says too little of itself."""

FEWEST = 5
"""Fewer than these are refused where precision is asked for: with three, one sample in forty shows a sixth of its true spread."""

MOST = 40
"""Blocks at most where nothing states them: five times the usual eight, which narrow an interval to less than a half."""

BATCH = 4
"""Blocks that are added between two decisions. Each decision is a chance to stop by luck (`bench/stopping_bars.py` has these)."""


@dataclass(frozen=True, slots=True)
class Enough:
    """Blocks are added to the first `floor` until ratios are precise, the time is up, or there are `most` blocks.

    `precision` is the half-width of an interval as a share of the ratio (0.05: 5 %), None: only time ends the run; `budget` in
    seconds, None: as long as it takes. `change`: in place of a precision, until a change of that share between the arms `old` and `new`
    is found or excluded, by `metrics`, none named: the primary ones.
    """

    floor: int
    most: int
    precision: float | None = None
    budget: float | None = None
    change: float | None = None
    metrics: tuple[str, ...] = ()


def enough_of(floor: int, most: int | None, precision: float | None, budget: float | None) -> Enough | None:
    """What is asked for; None where the number of blocks is fixed. ValueError says what cannot be."""
    if precision is None and budget is None:
        if most is not None:
            raise ValueError("blocks are only added for a precision, or as long as there is time")
        return None
    if precision is not None and not 0.001 <= precision <= 0.5:
        raise ValueError("a precision should be from 0.1 % to 50 %")
    if precision is not None and floor < FEWEST:
        raise ValueError(f"a precision needs {FEWEST} blocks or more before the first decision, and {floor} are stated")
    most = max(MOST, floor) if most is None else most
    if most < floor:
        raise ValueError(f"at most {most} blocks are less than the {floor} that come first")
    return Enough(
        floor, most, None if precision is None else float(precision), None if budget is None else float(budget)
    )


def asking(
    study: Study, *, precision: float | None, budget: float | None, most: int | None, blocks_stated: bool
) -> Study:
    """The study with what the options of a command ask for in place of its own. UsageError if it cannot be.

    A study that was written for a fixed number of blocks has `FLOOR` of them at least, unless the command states them.
    """
    if precision is None and budget is None and most is None:
        return study
    own = study.enough
    floor = study.blocks
    if own is None and precision is not None and not blocks_stated:
        floor = max(floor, FLOOR)
    if own is not None:
        precision = own.precision if precision is None else precision
        budget = own.budget if budget is None else budget
        most = max(own.most, floor) if most is None else most
    try:
        made = enough_of(floor, most, precision, budget)
    except ValueError as error:
        raise UsageError(
            str(error), hint="see --precision, --time-budget, --max-blocks and --blocks, which is the least"
        ) from error
    return replace(study, blocks=floor, enough=made, replacements=0)
