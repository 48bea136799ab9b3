"""A pytest plugin: tests marked `proof` show claims of the project, and the run ends with a verdict for each claim.

A claim holds when each of its tests passed, holds in part where others were skipped or met a known bug of a program under
test (pytest's xfail), is refuted when one failed, and is not tested where all were skipped. What was skipped, and each known
bug, is told with its reason. What a test measured (fixture `report`) is printed as well.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal

import pytest

CLAIM, MEASURED = "claim", "measured"
"""Names of the properties by which a test's worker tells the claim it shows, and what it measured."""

Outcome = Literal["passed", "failed", "skipped", "known bug"]


@dataclass(frozen=True, slots=True)
class Shown:
    """A claim, how its tests ended, and why some were skipped (each reason once)."""

    claim: str
    outcomes: Counter[Outcome]
    reasons: tuple[str, ...] = ()

    @property
    def verdict(self) -> str:
        """In one word or two."""
        if self.outcomes["failed"]:
            return "REFUTED"
        if self.outcomes["passed"]:
            return "holds in part" if self.outcomes["skipped"] + self.outcomes["known bug"] else "holds"
        return "known bug" if self.outcomes["known bug"] else "not tested"

    def lines(self) -> list[str]:
        """The verdict for people."""
        counts = ", ".join(f"{number} {outcome}" for outcome, number in sorted(self.outcomes.items()) if number)
        return [f"{self.verdict:<13}  {self.claim} ({counts})", *(f"{'':<15}{why}" for why in self.reasons)]


def tell_claim(item: pytest.Item) -> None:
    """Have the test's reports name the claim that it shows, the closest mark's; UsageError if a mark has no sentence."""
    mark = item.get_closest_marker("proof")
    if mark is None:
        return
    if len(mark.args) != 1:
        raise pytest.UsageError(f"{item.nodeid}: the mark `proof` needs one claim, as a sentence")
    item.user_properties.append((CLAIM, str(mark.args[0])))


def judge(reports: Iterable[tuple[str, Outcome, str]]) -> list[Shown]:
    """From (claim, outcome, reason) of every test to a verdict for each claim, in the order of the claims' names."""
    outcomes: dict[str, Counter[Outcome]] = defaultdict(Counter)
    reasons: dict[str, dict[str, None]] = defaultdict(dict)
    for claim, outcome, reason in reports:
        outcomes[claim][outcome] += 1
        if reason:
            reasons[claim][f"{outcome}: {reason}"] = None
    return [Shown(claim, outcomes[claim], tuple(reasons[claim])) for claim in sorted(outcomes)]


class Claims:
    """Collects how the tests of each claim ended, in whatever process they ran."""

    def __init__(self) -> None:
        self._ended: dict[str, tuple[str, Outcome, str]] = {}
        self._measured: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        properties: list[tuple[str, Any]] = report.user_properties
        if report.when == "teardown":
            self._measured += [str(value) for name, value in properties if name == MEASURED]
        claim = next((str(value) for name, value in properties if name == CLAIM), None)
        if claim is None or (report.when != "call" and report.passed):
            return
        outcome: Outcome = report.outcome
        reason = str(report.longrepr[2]) if report.skipped and isinstance(report.longrepr, tuple) else ""
        if report.skipped and hasattr(report, "wasxfail"):
            outcome, reason = "known bug", str(report.wasxfail).removeprefix("reason: ")
        before = self._ended.get(report.nodeid)
        if before is None or report.failed:
            self._ended[report.nodeid] = (claim, outcome, reason.removeprefix("Skipped: "))

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        for title, lines in (
            ("measured", self._measured),
            ("claims", [line for shown in judge(self._ended.values()) for line in shown.lines()]),
        ):
            if lines:
                terminalreporter.section(title)
                for line in lines:
                    terminalreporter.write_line(line)


@pytest.fixture
def report(record_property: Callable[[str, object], None]) -> Callable[[str], None]:
    """Says something that was measured; all of it stands together at the end of the run."""
    return lambda line: record_property(MEASURED, line)
