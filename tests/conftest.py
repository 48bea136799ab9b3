"""What all tests share: those that need root are skipped without it, and the run says how long it will take."""

from __future__ import annotations

import os
import signal
from typing import Any

import pytest

from support import host
from support.claims import Claims, report, tell_claim  # noqa: F401  # a fixture
from support.priority import step_ahead
from support.time_left import TimeLeft


def pytest_configure(config: pytest.Config) -> None:
    host.mark_processes()
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # a shell's background job; commands would ignore Ctrl-C, too
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if hasattr(config, "workerinput"):
        step_ahead()
    else:
        config.pluginmanager.register(TimeLeft(config), "tunnelmark-time-left")
        config.pluginmanager.register(Claims(), "tunnelmark-claims")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """One worker for each core, and one for the chain of tests that measure one after the other (`support.sharing`).

    Tests mostly wait, for rates, outages and timers of daemons: two workers kept less than one of two cores busy. With three, that
    chain is about as long as what the two others do meanwhile.
    """
    return len(os.sched_getaffinity(0)) + 1


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    from support.sharing import Sharing

    config.option.loadscopereorder = False
    return Sharing(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    from support.sharing import sort

    sort(items)
    for item in items:
        tell_claim(item)
    if os.geteuid() == 0:
        return
    skip = pytest.mark.skip(reason="needs root: run it with sudo")
    for item in items:
        if "root" in item.keywords:
            item.add_marker(skip)
