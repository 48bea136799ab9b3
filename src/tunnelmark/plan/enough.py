"""Says when a run has enough blocks, if a study or a command does not ask for a fixed number of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tunnelmark.errors import UsageError

if TYPE_CHECKING:
    from tunnelmark.plan.model import Study

FLOOR = 8
"""Blocks before the first decision if their number is not stated: with fewer, the spread is too uncertain."""

FEWEST = 5
"""Fewest blocks if a precision is asked for: with three, one sample in forty shows a sixth of its true spread."""

MOST = 40
"""The most blocks if no maximum is stated: five times the usual eight, which more than halves an interval."""

BATCH = 4
"""Blocks that are added between two decisions. Each decision is a chance to stop by luck (`bench/stopping_bars.py`)."""


@dataclass(frozen=True, slots=True)
class Enough:
    """When a run has enough blocks: after `floor` blocks, more are added until one of these conditions holds.

    `most`: the run has this number of blocks. `precision`: the half-width of every ratio's interval is at most this
    share of the ratio (0.05: 5 %), except for ratios that cannot reach it with `most` blocks; None: no such condition.
    `budget`: another block would not end within this number of seconds for the whole run; None: no limit.
    `change`: a change of this share (0.03: 3 %) from arm `old` to arm `new` is found or excluded; it is stated only
    without a precision. `metrics`: the metrics in which the change is looked for; empty: the primary metrics.
    """

    floor: int
    most: int
    precision: float | None = None
    budget: float | None = None
    change: float | None = None
    metrics: tuple[str, ...] = ()


def enough_of(floor: int, most: int | None, precision: float | None, budget: float | None) -> Enough | None:
    """Return when a run has enough blocks; None if their number is fixed (neither precision nor budget).

    The parameters are the fields of `Enough`; `most` None: `MOST`, or `floor` if that is more. ValueError if `most` has
    neither precision nor budget, if it is below `floor`, if the precision is not from 0.1 % to 50 %, or if a precision
    has a `floor` below `FEWEST`.
    """
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
    """Return the study with the figures that a command's options state; an option that is None keeps the study's own.

    The options are those of `enough_of`; UsageError if it refuses the figures. With a precision, a study that has a
    fixed number of blocks gets at least `FLOOR` blocks, unless the command states their number (`blocks_stated`).
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
