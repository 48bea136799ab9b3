"""On a link of several nodes the emulator and its counts name a direction by its target alone: they are still about what a look met."""

from __future__ import annotations

import pytest

from tunnelmark.analyse.link import lateness, text
from tunnelmark.record.link_check import LinkCheck, LinkPart

LATE = {"count": 900, "p50": 20.0, "p99": 900.0, "max": 2000.0}


@pytest.mark.parametrize("name", ["a to c", "all to c"])
def test_how_late_packets_left_is_found(name: str) -> None:
    reports = [
        {"directions": [{"name": "all to b", "lateness_us": {**LATE, "p99": 1.0}}, {"name": name, "lateness_us": LATE}]}
    ]
    assert lateness._late("a>c", reports) == LATE


def look(verdict: str, why: str = "") -> LinkCheck:
    part = LinkPart("a>c", "loss", verdict, why)  # type: ignore[arg-type]
    return LinkCheck("rare", "lan-3", "before", 0.0, 1.0, "verified", "", (), parts=(part,))


def counted(way: str, verdict: str) -> tuple[str, str, LinkPart]:
    return "rare", "lan-3", LinkPart(way, "loss", verdict, "the emulator counted")  # type: ignore[arg-type]


def test_what_a_look_could_not_test_is_shown_by_the_counts_of_the_same_direction() -> None:
    checks = [look("not tested", "too rare")]
    assert text.untested(checks) == "loss a>c of rare (too rare)"
    assert text.untested(checks, [counted("all>c", "shown")]) == ""
    assert text.shown([look("shown")], [counted("all>c", "shown")]) == 1, "one direction"


def test_a_direction_that_nobody_looked_at_leaves_nothing_untested() -> None:
    assert text.untested([look("shown")], [counted("all>b", "not tested")]) == ""
    assert text.untested([], [counted("all>b", "not tested")]) != ""
