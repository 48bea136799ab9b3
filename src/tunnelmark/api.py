"""Results for Python programs: `tunnelmark.load(folder)` gives a run, and the run gives Arrow tables.

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

Where pandas is installed, `run.trials().to_pandas()` is a data frame; tunnelmark itself does not need it. Errors are those of
`tunnelmark.errors`: StoreError where a folder holds no results, or damaged ones.
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
    """The results in a folder: of one run, or of several that `repeat` or `merge` joined, which the column `run` then names.

    StoreError if there is nothing to read, or it is damaged. Nothing is measured, and no root is needed.
    """
    return Run(Path(folder), StoredRuns(run_folders.read([Path(folder)])))


class Run:
    """Results that were read, as tables; what needs an analysis makes it when it is asked for, and once."""

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
        """What the folder holds as frozen data, by the name of each run."""
        return self._stored.results

    @property
    def analyses(self) -> Mapping[str, Analysis]:
        """What the analysis says of each run, by its name."""
        return self._stored.analyses

    def trials(self) -> pa.Table:
        """One row an attempt at a trial: what came of it, when, how long each phase took (s)."""
        return self._stored.table("trials")

    def samples(self) -> pa.Table:
        """One row a value, in its `unit`: of a whole window where `time` is null, else of a moment (s since it began)."""
        return self._stored.table("samples")

    def metrics(self) -> pa.Table:
        """The samples of whole windows alone; `used` says which of them the analysis uses."""
        return self._stored.table("metrics")

    def effects(self) -> pa.Table:
        """One row a comparison of two arms by one metric: a ratio, or a difference in its `unit`, with a 95 % interval."""
        return self._stored.table("effects")

    def verdicts(self) -> pa.Table:
        """One row an arm in a scenario by one metric: what it reached, in its `unit`, and how it compares with direct."""
        return self._stored.table("verdicts")

    def environment(self) -> pa.Table:
        """One row a recorded fact of the machine and its programs: key and value as text."""
        return self._stored.table("environment")
