"""Shares tests out among workers (pytest-xdist): those that must follow each other stay on one worker, the longest begin first.

What the command measures is measured by one caller at a time on a machine (`tunnelmark.cli.measurement_lock`), so tests of it would only
wait for one another; and a mesh is deployed once for all tests of its file. pytest-xdist's own groups (`--dist loadgroup`,
3.8.0) are without effect from pytest 9.2 on, silently.
"""

from __future__ import annotations

import pytest
from xdist.scheduler import LoadScopeScheduling

MEASURING = ("tests/e2e/", "tests/lab/test_matrix.py", "tests/lab/test_bounds.py")
"""Tests that take the lock of what measures: they are one chain, and that is the longest one. Elsewhere they would have a worker wait."""

_ONE_BY_ONE = "tests/lab/"
"""Tests that have nothing in common but their file."""


def group_of(test: str) -> str:
    """The group of a test by its id; all of a group are run by one worker, in their order."""
    if test.startswith(MEASURING):
        return "measuring"
    return test if test.startswith(_ONE_BY_ONE) else test.partition("::")[0]


def sort(items: list[pytest.Item]) -> None:
    """Put the longest chain first."""
    items.sort(key=lambda item: group_of(item.nodeid) != "measuring")


class Sharing(LoadScopeScheduling):  # type: ignore[misc]  # which has no types
    """Hands groups to workers as these get free, in the order of the tests."""

    def _split_scope(self, nodeid: str) -> str:
        return group_of(nodeid)
