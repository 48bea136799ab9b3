"""Failures for a reader: trials that failed for the same reason are reported once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tunnelmark.model.attempt import stem
from tunnelmark.record.results import TrialRow

NAMED = 3  # trials of one cause that are named one by one; of more, the arms and how many trials of each


@dataclass(frozen=True, slots=True)
class FailureGroup:
    """Attempts without a result that all said the same; void ones may differ in figures. A single one has its log and raw output."""

    rows: tuple[TrialRow, ...]

    @property
    def first(self) -> TrialRow:
        """The attempt whose words are shown for all."""
        return self.rows[0]

    @property
    def title(self) -> str:
        """The trial, or how many of the trials of which arms."""
        arms = ", ".join(dict.fromkeys(row.arm for row in self.rows))
        return self.first.trial if len(self.rows) == 1 else f"{arms}, {len(self.rows)} trials"


def grouped(failures: Iterable[TrialRow]) -> tuple[FailureGroup, ...]:
    """Attempts with the same reason and words together, in order of the first: failures by arm, and alone if they have a log.

    A void attempt says nothing about its arm and little by its figures, so it is reported once for all.
    """
    found: dict[tuple[object, ...], list[TrialRow]] = {}
    for row in failures:
        void = row.outcome == "void"
        alone = (row.trial,) if row.log and not void else ()
        words = stem(row.message or "") if void else (row.arm, row.message)
        found.setdefault((row.outcome, row.reason, words, row.hint, *alone), []).append(row)
    return tuple(FailureGroup(tuple(rows)) for rows in found.values())


def silent(trials: Sequence[TrialRow]) -> tuple[str, ...]:
    """Arms that never had a result, though the laboratory gave them a chance, in order of their first."""
    tried = Counter(row.arm for row in trials if row.outcome != "void")
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
