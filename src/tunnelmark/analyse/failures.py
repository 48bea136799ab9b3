"""Groups failures for a report: trials that failed for the same reason are reported once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tunnelmark.model.attempt import stem
from tunnelmark.record.results import TrialRow

NAMED = 3  # up to so many trials of one cause are named one by one; of more, only their number for each arm


@dataclass(frozen=True, slots=True)
class FailureGroup:
    """Attempts without a result that have the same reason and message.

    Messages of void attempts may differ in their figures. A failed attempt with a log has a group of its own.
    """

    rows: tuple[TrialRow, ...]

    @property
    def first(self) -> TrialRow:
        """The attempt whose message is shown for the whole group."""
        return self.rows[0]

    @property
    def title(self) -> str:
        """The trial's name; for several attempts, the names of their arms and how many attempts there are."""
        arms = ", ".join(dict.fromkeys(row.arm for row in self.rows))
        return self.first.trial if len(self.rows) == 1 else f"{arms}, {len(self.rows)} trials"


def grouped(failures: Iterable[TrialRow]) -> tuple[FailureGroup, ...]:
    """Group attempts with the same reason and message, in the order of each group's first attempt.

    Failures are grouped by arm, and a failure with a log is alone. A void attempt says nothing about its arm, and its
    figures say little, so void attempts are grouped over all arms, whatever their figures.
    """
    found: dict[tuple[object, ...], list[TrialRow]] = {}
    for row in failures:
        void = row.outcome == "void"
        alone = (row.trial,) if row.log and not void else ()
        words = stem(row.message or "") if void else (row.arm, row.message)
        found.setdefault((row.outcome, row.reason, words, row.hint, *alone), []).append(row)
    return tuple(FailureGroup(tuple(rows)) for rows in found.values())


def silent(trials: Sequence[TrialRow]) -> tuple[str, ...]:
    """Return the arms with a failed attempt and no result, in the order of their first failed attempts in `trials`."""
    tried = Counter(row.arm for row in trials if row.outcome != "void")
    good = Counter(row.arm for row in trials if row.outcome == "ok")
    return tuple(arm for arm in tried if not good[arm])


def causes(failures: Sequence[TrialRow]) -> str:
    """Return every cause as text, with the names of its trials.

    If a cause has more than `NAMED` trials, the text says instead how many of each arm there are.
    """
    by_cause: dict[str, list[TrialRow]] = {}
    for row in failures:
        by_cause.setdefault(row.reason or row.outcome, []).append(row)
    return "; ".join(f"{cause}: {_trials(rows)}" for cause, rows in by_cause.items())


def _trials(rows: Sequence[TrialRow]) -> str:
    if len(rows) <= NAMED:
        return ", ".join(row.trial for row in rows)
    return ", ".join(f"{count} of {arm}" for arm, count in Counter(row.arm for row in rows).items())
