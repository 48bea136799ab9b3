"""Judges several rounds of a CPU account: not in `accounting`, which a guest without pytest runs, too."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from support.accounting import Account


def disagreements(rounds: Sequence[Account], tolerance: float = 0.05) -> dict[str, float]:
    """Those of the round in which others worked least; the test is skipped if they may be the others'."""
    account = min(rounds, key=lambda one: (one.disturbed, one.others))
    found = account.disagreements(tolerance)
    if found and account.disturbed:
        pytest.skip(
            f"other work takes {100 * account.others:.0f} % of what this machine does, and made {account.forks} tasks: it cannot be counted"
        )
    return found
