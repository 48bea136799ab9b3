"""What is billed to a VPN's daemons, and what else of a node is the workload's own."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tunnelmark.run.collectors._proc import process_seconds
from tunnelmark.run.collectors.daemons import NodeCpu, billed, shares


def stat(name: str, user: int, system: int, children: int = 0) -> str:
    return f"7 ({name}) S 1 7 7 0 -1 4194560 100 0 0 0 {user} {system} {children} 0 20 0 4 0 100 1000 10"


def test_a_process_is_read_whatever_its_name_is() -> None:
    assert process_seconds(stat("a) S (b 1 2", 150, 50, 30), 100) == pytest.approx(2.3)
    assert process_seconds(stat("a) S (b 1 2", 150, 50, 30), 100, children=False) == pytest.approx(2.0)


def test_a_process_that_has_ended_is_billed_nothing(tmp_path: Path) -> None:
    (tmp_path / "7").mkdir()
    (tmp_path / "7" / "stat").write_text(stat("tincd", 100, 0))
    assert billed((7, 8), 100, tmp_path) == {7: 1.0}


def test_this_very_process_is_billed_what_the_kernel_says_of_it() -> None:
    tick = os.sysconf("SC_CLK_TCK")
    own = os.times()
    found = billed((os.getpid(),), tick)[os.getpid()]
    assert found >= own.user + own.system - 3 / tick


def test_what_the_group_used_beyond_daemons_and_agent_is_the_generators() -> None:
    first, last = NodeCpu({7: 1.0, 8: 2.0}, 0.5, 10.0), NodeCpu({7: 1.5, 8: 2.5}, 0.6, 13.0)
    assert shares(first, last, 2.0) == pytest.approx((500, 950))


def test_without_daemons_all_is_the_generators_and_theirs_is_unknown_and_not_zero() -> None:
    daemons, generator = shares(NodeCpu({}, 0.0, 1.0), NodeCpu({}, 0.0, 2.0), 2.0)
    assert daemons is None
    assert generator == pytest.approx(500)


def test_a_daemon_that_ended_leaves_both_unknown() -> None:
    assert shares(NodeCpu({7: 1.0}, 0.0, 1.0), NodeCpu({}, 0.0, 2.0), 2.0) == (None, None)
