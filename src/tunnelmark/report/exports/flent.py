"""Trials as data files of flent, so that its plots and its users' scripts read them: one file a trial of `tcp`, `ping` or `udp`.

Names are those of flent's tests that measure the same (`tcp_1up`, `ping`, `udp_flood`), with those of their series that were measured.
The format is version 4 of flent's `resultset.py`.
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
from tunnelmark.analyse.attempts import chosen
from tunnelmark.model.attempt import PHASES
from tunnelmark.record.flent_files import NEWEST
from tunnelmark.record.results import Results, TrialRow, WorkloadInfo

SUFFIX = ".flent.gz"

_BEFORE = PHASES[: PHASES.index("measure")]  # of a trial, before its window begins


@dataclass(frozen=True, slots=True)
class FlentTest:
    """A test of flent: its name, its series, and by which metric of ours, times `factor`, in which unit of flent's."""

    name: str
    series: str
    metric: str
    factor: float
    unit: str
    raw: Mapping[str, str]
    """Further metrics at the same times, by the key that flent has for them among raw values."""


TESTS = {
    "tcp": FlentTest("tcp_1up", "TCP upload", "goodput", 1e-6, "Mbits/s", {"tcp_rtt": "rtt"}),
    "ping": FlentTest("ping", "Ping (ms) ICMP", "rtt", 1.0, "ms", {}),
    "udp": FlentTest("udp_flood", "UDP upload", "delivered", 1e-6, "Mbits/s", {}),
}
"""By workload, what has a counterpart in flent."""


def files(results: Results) -> Iterator[tuple[str, bytes]]:
    """Name and content of a file for each attempt that counts and has a series; none for other workloads."""
    uses = {use.name: use for use in results.plan.workloads}
    for row in chosen(results.trials):
        test = TESTS.get(uses[row.workload].workload)
        if test is None or row.outcome != "ok":
            continue
        points = [(s.time, s.value) for s in row.samples if s.metric == test.metric and s.time is not None]
        if points:
            yield f"{row.folder}{SUFFIX}", _packed(_content(results, row, uses[row.workload], test, points))


def _content(
    results: Results, row: TrialRow, use: WorkloadInfo, test: FlentTest, points: list[tuple[float, float]]
) -> Mapping[str, Any]:
    times = [time for time, _ in points]
    steps = [later - earlier for earlier, later in pairwise(times) if later > earlier]
    began = row.started + sum(row.phases.get(phase, 0.0) for phase in _BEFORE)
    further = {
        key: {s.time: s.value for s in row.samples if s.metric == metric and s.time is not None}
        for key, metric in test.raw.items()
    }
    moment = datetime.fromtimestamp(began, UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
    return {
        "version": NEWEST,
        "metadata": {
            "NAME": test.name,
            "TITLE": f"{row.arm}, {row.profile}, {row.topology}, block {row.block}",
            "TIME": moment,
            "T0": moment,
            "HOST": row.link.partition(">")[2] or "b",
            "LOCAL_HOST": row.link.partition(">")[0] or "a",
            "LENGTH": use.window,
            "TOTAL_LENGTH": max(times[-1], use.window),
            "STEP_SIZE": median(steps) if steps else use.window,
            "IP_VERSION": 4,
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
    """The file, without a date of its own, so that the same results give the same bytes."""
    return gzip.compress(json.dumps(content, sort_keys=True).encode(), mtime=0)
