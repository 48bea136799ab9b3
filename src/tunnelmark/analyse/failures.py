"""Failures for a reader: what ended for one and the same reason is told once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tunnelmark.record.results import TrialRow

NAMED = 3  # trials of one cause that are named one by one; of more, the arms and how many trials of each


@dataclass(frozen=True, slots=True)
class FailureGroup:
    """Attempts of one arm without a result that all said the same; `log` and `raw` are those of the only one, if it is."""

    rows: tuple[TrialRow, ...]

    @property
    def first(self) -> TrialRow:
        """The attempt whose words stand for all."""
        return self.rows[0]

    @property
    def title(self) -> str:
        """The trial, or the arm and how many of its trials."""
        return self.first.trial if len(self.rows) == 1 else f"{self.first.arm}, {len(self.rows)} trials"


def grouped(failures: Iterable[TrialRow]) -> tuple[FailureGroup, ...]:
    """Attempts of an arm with the same reason and words and without a log of their own together, in order of the first."""
    found: dict[tuple[object, ...], list[TrialRow]] = {}
    for row in failures:
        alone = (row.trial,) if row.log else ()
        found.setdefault((row.arm, row.outcome, row.reason, row.message, row.hint, *alone), []).append(row)
    return tuple(FailureGroup(tuple(rows)) for rows in found.values())


def silent(trials: Sequence[TrialRow]) -> tuple[str, ...]:
    """Arms of which no attempt has a result, in order of their first."""
    tried = Counter(row.arm for row in trials)
    good = Counter(row.arm for row in trials if row.outcome == "ok")
    return tuple(arm for arm in tried if not good[arm])


def causes(failures: Sequence[TrialRow]) -> str:
    """Every cause with its trials, or where they are many with their number by arm."""
    by_cause: dict[str, list[TrialRow]] = {}
    for row in failures:
        by_cause.setdefault(row.reason or row.outcome, []).append(row)
    return "; ".join(f"{cause}: {_trials(rows)}" for cause, rows in by_cause.items())


def _trials(rows: Sequence[TrialRow]) -> str:
    if len(rows) <= NAMED:
        return ", ".join(row.trial for row in rows)
    return ", ".join(f"{count} of {arm}" for arm, count in Counter(row.arm for row in rows).items())
