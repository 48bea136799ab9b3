"""The options `--precision`, `--time-budget` and `--max-blocks` of `run` and `compare`: until when blocks are added."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any, TypeVar

import click

from tunnelmark.errors import UsageError
from tunnelmark.plan.enough import asking
from tunnelmark.plan.model import Study
from tunnelmark.units import Duration, Share

_Command = TypeVar("_Command", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Asked:
    """The options' values; None for an option that is not given: then the study's own value holds.

    `precision`: a share of 1. `budget`: seconds for all blocks. `most`: the largest number of blocks.
    """

    precision: Share | None = None
    budget: Duration | None = None
    most: int | None = None

    def __bool__(self) -> bool:
        return (self.precision, self.budget, self.most) != (None, None, None)

    def of(self, study: Study, *, blocks_stated: bool) -> Study:
        """Return the study with these values. UsageError if they cannot be used, or if the study is a smoke run.

        `blocks_stated`: whether the command states a number of blocks. If it does not, and a precision is asked for, a
        study with a fixed number of blocks gets at least `plan.enough.FLOOR` blocks.
        """
        if self and study.smoke:
            raise UsageError(
                "--smoke cannot be combined with --precision, --time-budget or --max-blocks: it only shows whether a study works",
                hint="leave --smoke out, or --precision, --time-budget and --max-blocks",
            )
        return asking(study, precision=self.precision, budget=self.budget, most=self.most, blocks_stated=blocks_stated)


NOTHING_ASKED = Asked()
"""The value if no option is given."""


def options(command: _Command) -> _Command:
    """Add the options to a command; it gets their values as the argument `enough`."""

    @wraps(command)
    def with_enough(*, precision: str | None, time_budget: str | None, max_blocks: int | None, **others: Any) -> Any:
        return command(**others, enough=asked(precision, time_budget, max_blocks))

    made: Any = with_enough
    made = click.option(
        "--max-blocks",
        type=click.IntRange(min=1),
        metavar="N",
        help="Number of blocks at most, where they are added [40].",
    )(made)
    made = click.option(
        "--time-budget", metavar="TIME", help="Add blocks as long as they end within that time, such as 30m."
    )(made)
    result: _Command = click.option(
        "--precision",
        metavar="PERCENT",
        help="Add blocks until each headline ratio is within that, such as 5%; --blocks come first in any case.",
    )(made)
    return result


def asked(precision: str | None, time_budget: str | None, most: int | None) -> Asked:
    """Return the values of the options' texts; UsageError if one cannot be read. `30m` is minutes, `2h` is hours."""
    try:
        share = None if precision is None else Share.parse(precision)
    except ValueError as error:
        raise UsageError(f"--precision {precision}: {error}", hint="such as 5%") from error
    try:
        text = None if time_budget is None else time_budget.strip()
        budget = None if text is None else Duration.parse(f"{text}in" if text.endswith("m") else text)
    except ValueError as error:
        raise UsageError(f"--time-budget {time_budget}: {error}", hint="such as 30m or '2 h'") from error
    return Asked(share, budget, most)
