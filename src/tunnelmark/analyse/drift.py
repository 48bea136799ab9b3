"""Says whether a machine changed during a run, by its yardsticks (short measurements) before and after the trials."""

from __future__ import annotations

from dataclasses import dataclass

from tunnelmark.record.results import Results, YardstickRow

MARGIN = 0.25
"""A yardstick has moved when it takes a quarter longer or shorter, and its quartiles before and after lie apart.

The margin is chosen, and was not measured on a quiet machine: it is more than the fifth from which on a change makes a
result void (`model.grades`). Other work moves yardsticks, too: docs/limitations.md says how often.
"""


@dataclass(frozen=True, slots=True)
class MovedYardstick:
    """A yardstick that took `before` nanoseconds at first and `after` at the end."""

    name: str
    before: float
    after: float

    @property
    def change(self) -> float:
        """By how much it grew, as a share: 0.5 is half as long again, -0.5 half as long."""
        return self.after / self.before - 1


def ends(results: Results) -> tuple[YardstickRow, YardstickRow] | None:
    """Return the first measurement of the yardsticks before the trials, and the last one after them.

    None if the run does not have both, in this order.
    """
    before = next((row for row in results.yardsticks if row.when == "before" and row.lengths), None)
    after = next((row for row in reversed(results.yardsticks) if row.when == "after" and row.lengths), None)
    return None if before is None or after is None or after.started < before.started else (before, after)


def moved(results: Results) -> tuple[MovedYardstick, ...]:
    """Return the yardsticks that say that the machine had changed at the end, most moved first.

    () if none says so, or if they were not measured both before and after the trials.
    """
    if (both := ends(results)) is None:
        return ()
    before, after = both
    found = []
    for name in before.lengths.keys() & after.lengths.keys():
        first, last = before.lengths[name], after.lengths[name]
        if first.value <= 0 or last.value <= 0:
            continue
        apart = first.high < last.low or last.high < first.low
        ratio = last.value / first.value
        if apart and max(ratio, 1 / ratio) > 1 + MARGIN:
            found.append(MovedYardstick(name, first.value, last.value))
    return tuple(sorted(found, key=lambda each: (-max(each.change, -each.change / (1 + each.change)), each.name)))
