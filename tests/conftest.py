"""What all tests share: tests that need root are skipped without it, and the run says how long it will take."""

from __future__ import annotations

import os

import pytest

from support.time_left import TimeLeft


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(TimeLeft(config), "tunnelmark-time-left")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if os.geteuid() == 0:
        return
    skip = pytest.mark.skip(reason="needs root: run it with sudo")
    for item in items:
        if "root" in item.keywords:
            item.add_marker(skip)
