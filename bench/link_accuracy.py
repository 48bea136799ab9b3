"""How accurate the link emulator is, by a million real probes for each setting: `pytest -s` on this file, as root.

About twelve minutes on a machine that does nothing else. `make bench` has a short form (bench_link_accuracy.py).
docs/method.md says what is compared with what; TUNNELMARK_SEED gives another seed.
"""

from __future__ import annotations

import pytest

from support.accuracy_run import run


@pytest.mark.root
@pytest.mark.timeout(3600)
def test_a_million_probes_meet_what_was_asked() -> None:
    run(1_000_000, 10_000, 12)
