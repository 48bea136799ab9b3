"""Makes rows of the tidy tables from a data file of flent, to show its values next to runs of this laboratory.

A file is one trial in one block, of an arm that has the file's title as its name. A file has no direct, no grade and no
links, and so no effects and no verdicts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from statistics import fmean
from typing import Any

from tunnelmark.record.flent_files import FlentFile
from tunnelmark.report.exports.moments import moment

VIEWS = ("runs", "trials", "samples", "metrics")
"""The views in which such a file has rows."""


def rows(view: str, file: FlentFile) -> Iterable[Mapping[str, Any]]:
    """Yield the rows that a file has in one of `VIEWS`, without the column `run`; a column that a row lacks is null."""
    attempt = {
        "study": "flent",
        "block": 1,
        "arm": file.title or file.test,
        "workload": file.test,
        "trial": file.path.name,
        "attempt": 1,
        "outcome": "ok",
    }
    started = moment(file.started) if file.started is not None else None
    if view == "runs":
        yield {
            "study": "flent",
            "title": file.title or file.test,
            "folder": str(file.path),
            "started": started,
            "finished": True,
            "blocks": 1,
        }
    elif view == "trials":
        yield attempt | {"counts": True, "started": started}
    else:
        for series in file.series:
            of_series = attempt | {"metric": series.name, "unit": series.unit}
            if series.points:
                yield of_series | {"value": fmean(value for _, value in series.points), "used": True}
            if view == "samples":
                yield from (of_series | {"value": value, "time": time, "used": False} for time, value in series.points)
