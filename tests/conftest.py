"""What all tests share: those that need root are skipped without it, and the run says how long it will take.

With several workers (pytest-xdist, `-n`) some tests stay together: those of one mesh, which is deployed once for them,
and those in which the command measures, of which only one at a time does so on a machine.
"""

from __future__ import annotations

import os

import pytest

from support import host
from support.claims import Claims, report, tell_claim  # noqa: F401  # a fixture
from support.time_left import TimeLeft

MEASURING = "measuring"
"""The group of tests in which the command measures (tunnelmark.cli.alone)."""


def pytest_configure(config: pytest.Config) -> None:
    host.mark_processes()
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(TimeLeft(config), "tunnelmark-time-left")
        config.pluginmanager.register(Claims(), "tunnelmark-claims")


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist reads the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        tell_claim(item)
        if (group := _group(item)) is not None:
            item.add_marker(pytest.mark.xdist_group(group))
    if os.geteuid() == 0:
        return
    skip = pytest.mark.skip(reason="needs root: run it with sudo")
    for item in items:
        if "root" in item.keywords:
            item.add_marker(skip)


def _group(item: pytest.Item) -> str | None:
    """Which tests must be run by the same worker, by the name of their group; None: any worker may have it."""
    if item.path.parent.name == "e2e" or item.get_closest_marker("measures"):
        return MEASURING
    if item.path.parent.name != "contract":
        return None
    parameters = getattr(getattr(item, "callspec", None), "params", {})
    stands = parameters.get("arm") or parameters.get("mesh")
    return f"{item.path.stem}-{getattr(stands, 'name', stands)}" if stands is not None else None
