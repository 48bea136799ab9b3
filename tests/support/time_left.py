"""A pytest plugin that says now and then how many tests are done and how long the rest will take, and at once what failed.

The time left is the sum of what the remaining tests took last time (kept in pytest's cache), divided among the workers; a test
that is new counts as the average of its file's that are done, else of its folder's, else of one second: tests without root
take a hundredth of the others' time.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import pytest

_EVERY = 10.0  # seconds between two lines
_UNIT = 0.02  # seconds of a test without root of which nothing is known
_KEY = "tunnelmark/durations"


class TimeLeft:
    """Keeps the durations of tests by their id, last time's and this time's."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._before: dict[str, float] = config.cache.get(_KEY, None) or {} if hasattr(config, "cache") else {}
        self._now: dict[str, float] = {}
        self._waiting: dict[str, None] = {}
        self._all = 0
        self._began = self._said = time.monotonic()
        self._workers = 1

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self._wait_for([item.nodeid for item in session.items])

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node: Any, ids: Sequence[str]) -> None:
        self._workers = int(node.workerinput["workercount"])
        self._wait_for(ids)  # each worker collects the same tests; with `--dist loadgroup` an id ends in its group

    def _wait_for(self, ids: Sequence[str]) -> None:
        if not self._now:
            self._waiting = dict.fromkeys(ids)
            self._all = len(self._waiting)
            self._began = self._said = time.monotonic()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._now[report.nodeid] = self._now.get(report.nodeid, 0.0) + report.duration
        reporter = self._config.pluginmanager.get_plugin("terminalreporter")
        if report.failed and reporter is not None:  # now, and not after the last test: whoever waits can look at it
            crash = getattr(report.longrepr, "reprcrash", None)
            reporter.ensure_newline()
            reporter.write_line(f"    failed: {report.nodeid} ({report.when}): {getattr(crash, 'message', '')[:300]}")
            reporter.currentfspath = None

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        self._waiting.pop(nodeid, None)
        now = time.monotonic()
        reporter = self._config.pluginmanager.get_plugin("terminalreporter")
        if reporter is None or not self._waiting or now - self._said < _EVERY:
            return
        self._said = now
        reporter.ensure_newline()
        reporter.write_line(
            f"    {self.counted()} tests in {now - self._began:.0f} s, "
            f"about {left(list(self._waiting), self._before, self._now) / self._workers:.0f} s left"
        )
        reporter.currentfspath = None  # so that the next test's file is named again

    def counted(self) -> str:
        """How many tests are done, of how many. Those that wait say both: a test of which some phases are reported is not done yet."""
        return f"{self._all - len(self._waiting)} of {self._all}"

    def pytest_sessionfinish(self) -> None:
        if self._now and hasattr(self._config, "cache"):  # absent with -p no:cacheprovider
            self._config.cache.set(_KEY, self._before | self._now)


def left(waiting: Sequence[str], before: dict[str, float], now: dict[str, float]) -> float:
    """Seconds of tests that wait."""
    done: dict[str, list[float]] = {}
    for test, seconds in now.items():
        for place in _places(test):
            done.setdefault(place, []).append(seconds)

    def expected(test: str) -> float:
        found = next((done[place] for place in _places(test) if place in done), [_UNIT if "/unit/" in test else 1.0])
        return sum(found) / len(found)

    return sum(before[test] if test in before else expected(test) for test in waiting)


def _places(test: str) -> tuple[str, str]:
    """A test's file, and its folder of the first level."""
    file = test.partition("::")[0]
    return file, "/".join(file.split("/")[:2])
