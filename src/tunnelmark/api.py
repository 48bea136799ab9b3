"""Gives results to Python programs: `tunnelmark.load(folder)` returns a Run, whose methods return Arrow tables.

>>> import tunnelmark
>>> run = tunnelmark.load("docs/demo/results")
>>> run
<Run quick: 216 trials, finished>
>>> effects = run.effects().to_pylist()
>>> row = next(row for row in effects if row["arm"] == "nebula" and row["metric"] == "goodput" and row["against"] == "direct")
>>> row["effect"], row["low"] <= row["estimate"] <= row["high"]
('ratio', True)

Each table has the columns that `tunnelmark query --schema` shows, with the unit in the metadata of its field:

>>> run.trials().schema.field("phases").metadata[b"unit"]
b's'

If pandas is installed, `run.trials().to_pandas()` returns a data frame; tunnelmark itself does not need pandas.
The errors are those of `tunnelmark.errors`, such as StoreError if a folder's results are damaged.
"""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from pathlib import Path

import pyarrow as pa

from tunnelmark.analyse import Analysis
from tunnelmark.record import run_folders
from tunnelmark.record.results import Results
from tunnelmark.report.exports.tidy import StoredRuns

__all__ = ["Run", "load"]


def load(folder: str | PathLike[str]) -> Run:
    """Read a folder of results: one run, or several runs, such as those that `repeat` or `merge` has put together.

    The column `run` of every table names the run. StoreError if the folder does not exist or its results are damaged,
    UsageError if it holds no results. Nothing is measured, and root is not needed.
    """
    return Run(Path(folder), StoredRuns(run_folders.read([Path(folder)])))


class Run:
    """The results that `load` has read, as tables. The analysis is made once, for the first table that needs it."""

    def __init__(self, folder: Path, stored: StoredRuns) -> None:
        self.folder = folder
        self._stored = stored

    def __repr__(self) -> str:
        studies = " and ".join(dict.fromkeys(each.plan.study for each in self.results.values()))
        trials = sum(len(each.trials) for each in self.results.values())
        finished = all(each.finished for each in self.results.values())
        return f"<Run {studies}: {trials} trials, {'finished' if finished else 'not finished'}>"

    @property
    def results(self) -> Mapping[str, Results]:
        """The plan, environment and attempts of each run as frozen dataclasses, by the name of the run."""
        return self._stored.results

    @property
    def analyses(self) -> Mapping[str, Analysis]:
        """The statistical analysis of each run (effects, ranks, gates), by the name of the run."""
        return self._stored.analyses

    def trials(self) -> pa.Table:
        """Return a table with a row for each attempt at a trial: outcome, start, and the seconds that phases took."""
        return self._stored.table("trials")

    def samples(self) -> pa.Table:
        """Return a table with a row for each measured value, in its `unit`.

        `time`: seconds since the measuring window began; null if the value is that of the whole window.
        """
        return self._stored.table("samples")

    def metrics(self) -> pa.Table:
        """Return the samples that are values of a whole window; `used` says whether the analysis uses the value."""
        return self._stored.table("metrics")

    def effects(self) -> pa.Table:
        """Return a table with a row for each comparison of two arms by one metric.

        The effect is a ratio, or a difference in the row's `unit`, with its 95 % confidence interval.
        """
        return self._stored.table("effects")

    def verdicts(self) -> pa.Table:
        """Return a table with a row for each arm, scenario and metric: value, `unit`, and comparison with direct."""
        return self._stored.table("verdicts")

    def environment(self) -> pa.Table:
        """Return a table with a row for each fact about the machine or its programs: key and value, both as text."""
        return self._stored.table("environment")
