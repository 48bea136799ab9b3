"""Writes trials as data files of flent, so that its plots and its users' scripts can read them.

There is at most one file for each trial of `tcp`, `ping` or `udp`. Tests and series have the names that flent gives to
the same quantities (`tcp_1up`, `ping`, `udp_flood`). A file has only those series that were measured. The format is
version 4 of flent's `resultset.py`.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from statistics import median
from typing import Any

import tunnelmark
from tunnelmark.analyse.attempts import chosen, usable
from tunnelmark.analyse.link_gate import voided
from tunnelmark.model.attempt import PHASES
from tunnelmark.record.flent_files import NEWEST
from tunnelmark.record.results import Results, TrialRow, WorkloadInfo

SUFFIX = ".flent.gz"

_BEFORE = PHASES[: PHASES.index("measure")]  # the phases of a trial before its window begins


@dataclass(frozen=True, slots=True)
class FlentTest:
    """A test of flent, with one series. A value of the series, in `unit`, is `factor` times a value of our `metric`."""

    name: str
    series: str
    metric: str
    factor: float
    unit: str
    raw: Mapping[str, str]
    """Further metrics of ours that are measured at the same times, by the key that flent has for each in raw values."""


TESTS = {
    "tcp": FlentTest("tcp_1up", "TCP upload", "goodput", 1e-6, "Mbits/s", {"tcp_rtt": "rtt"}),
    "ping": FlentTest("ping", "Ping (ms) ICMP", "rtt", 1.0, "ms", {}),
    "udp": FlentTest("udp_flood", "UDP upload", "delivered", 1e-6, "Mbits/s", {}),
}
"""For each workload that flent can measure too, by its name: flent's test of the same quantity."""


def files(results: Results) -> Iterator[tuple[str, bytes]]:
    """Yield the name and the bytes of a data file for each attempt that the analysis uses and that has a series.

    Workloads without a test in `TESTS` have no file. An attempt that is void has no file, because a reader of the file
    could not see the grade. The same holds if a link check did not verify the attempt's link, and if only the metric of
    the test is void. Traffic of several flows or streams has no file, because flent's tests of these names have one
    stream.
    """
    uses = {use.name: use for use in results.plan.workloads}
    for row in chosen(voided(results).trials):
        use = uses[row.workload]
        test = TESTS.get(use.workload)
        if test is None or not _one_stream(use):
            continue
        points = _points(row, use, test.metric)
        if points:
            yield f"{row.folder}{SUFFIX}", _packed(_content(results, row, use, test, points))


def _one_stream(use: WorkloadInfo) -> bool:
    """Return whether the traffic is one stream in one direction; only `tcp` can be asked for more."""
    return use.options.get("flows", "forward") in ("forward", "back") and use.options.get("streams", 1) == 1


def _points(row: TrialRow, use: WorkloadInfo, name: str) -> list[tuple[float, float]]:
    """Return pairs of seconds since the window began and the metric's value; empty without a result, or if void."""
    metric = next((one for one in use.metrics if one.name == name), None)
    if row.outcome != "ok" or (metric is not None and not usable(row, metric)):
        return []
    return [(s.time, s.value) for s in row.samples if s.metric == name and s.time is not None]


def _content(
    results: Results, row: TrialRow, use: WorkloadInfo, test: FlentTest, points: list[tuple[float, float]]
) -> Mapping[str, Any]:
    source, _, target = row.link.partition(">")
    if use.options.get("flows") == "back":
        source, target = target, source
    times = [time for time, _ in points]
    steps = [later - earlier for earlier, later in pairwise(times) if later > earlier]
    began = row.started + sum(row.phases.get(phase, 0.0) for phase in _BEFORE)
    further = {key: dict(_points(row, use, metric)) for key, metric in test.raw.items()}
    window = use.window_over(row.profile, row.topology)
    moment = datetime.fromtimestamp(began, UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
    return {
        "version": NEWEST,
        "metadata": {
            "NAME": test.name,
            "TITLE": f"{row.arm}, {row.profile}, {row.topology}, block {row.block}",
            "TIME": moment,
            "T0": moment,
            "HOST": target or "b",
            "LOCAL_HOST": source or "a",
            "LENGTH": window,
            "TOTAL_LENGTH": max(times[-1], window),
            "STEP_SIZE": median(steps) if steps else window,
            "NOTE": f"{results.plan.study}, seed {results.plan.seed}, trial {row.trial}: measured by tunnelmark {tunnelmark.__version__}",
            "DATA_FILENAME": f"{row.folder}{SUFFIX}",
            "SERIES_META": {test.series: {"UNITS": test.unit}},
        },
        "x_values": times,
        "results": {test.series: [value * test.factor for _, value in points]},
        "raw_values": {
            test.series: [
                {
                    "t": began + time,
                    "val": value * test.factor,
                    **{key: of[time] for key, of in further.items() if time in of},
                }
                for time, value in points
            ]
        },
    }


def _packed(content: Mapping[str, Any]) -> bytes:
    """Return the file's bytes; they hold no date, so that the same results give the same bytes."""
    return gzip.compress(json.dumps(content, sort_keys=True).encode(), mtime=0)
