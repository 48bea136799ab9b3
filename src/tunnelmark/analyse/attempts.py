"""Chooses the attempt of each trial that counts, and says for which metrics it can be used. Pure.

The choice does not depend on any measured value. Whether an attempt is void or disturbed follows only from what the
laboratory recorded about itself and its machine during the attempt.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tunnelmark.model.attempt import NOT_INSTALLED
from tunnelmark.model.grades import QUIET, Grade, others
from tunnelmark.record.results import MetricInfo, TrialRow


def chosen(rows: Iterable[TrialRow]) -> tuple[TrialRow, ...]:
    """Return the attempt that counts of each trial, in the order in which trials first occur.

    It is the trial's first attempt that is not void and whose primary metrics all have usable values. If there is none,
    it is the first attempt that is not void, else the last attempt. A disturbance can spoil some metrics of an attempt
    and leave others usable (see `grade_for`). An attempt for which a program was not installed is passed over if there
    is another one.
    """
    by_trial: dict[str, list[TrialRow]] = {}
    for row in rows:
        by_trial.setdefault(row.trial, []).append(row)
    return tuple(_chosen(attempts) for attempts in by_trial.values())


def _chosen(attempts: Sequence[TrialRow]) -> TrialRow:
    attempts = [row for row in attempts if row.reason != NOT_INSTALLED] or attempts
    usable = [row for row in attempts if row.outcome != "void"]
    return next((row for row in usable if not row.wanting), usable[0] if usable else attempts[-1])


def grade_of(row: TrialRow) -> Grade | None:
    """Return the grade of an attempt; None if the attempt failed, because failed attempts are not graded."""
    if row.outcome != "ok":
        return "void" if row.outcome == "void" else None
    if row.grade is not None:
        return row.grade
    return "disturbed" if others(row.host) > QUIET else "good"  # from before there were grades


def causes_of(row: TrialRow) -> tuple[str, ...]:
    """Return why an attempt with a result is not good, one text for each cause; () if it is good."""
    if row.causes or grade_of(row) != "disturbed":
        return row.causes
    return (f"other work took {others(row.host):.2f} cores (good up to {QUIET:g})",)


def grade_for(row: TrialRow, metric: MetricInfo) -> Grade:
    """Return the grade of an attempt's value of one metric; "void" if the attempt has no result.

    A disturbance affects some metrics more than others. The field `feels` of a metric names the kind of disturbance
    that affects the metric, and an attempt has a grade for each kind.
    """
    if row.grade is None:
        return grade_of(row) or "void"
    return row.grades.get(metric.feels, "good")


def usable(row: TrialRow, metric: MetricInfo) -> bool:
    """Return whether an attempt's value of this metric may be used."""
    return row.outcome == "ok" and grade_for(row, metric) != "void"


def good(row: TrialRow, metric: MetricInfo) -> bool:
    """Return whether no disturbance affected an attempt's value of this metric."""
    return row.outcome == "ok" and grade_for(row, metric) == "good"
