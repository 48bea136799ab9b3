"""What the unit tests share: none waits for a measurement that somebody makes on this machine meanwhile."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tunnelmark.cli import measurement_lock


@pytest.fixture(scope="module", autouse=True)
def own_lock(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The lock of who measures, in a folder of the tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(measurement_lock, "LOCK", tmp_path_factory.getbasetemp() / "lock" / "measuring.lock")
        yield
