"""How accurate the link emulator is, in short: a tenth of the probes of link_accuracy.py."""

from __future__ import annotations

import pytest

from support.accuracy_run import run


@pytest.mark.root
@pytest.mark.timeout(900)
def test_a_hundred_thousand_probes_meet_what_was_asked() -> None:
    run(100_000, 2_500, 10)
