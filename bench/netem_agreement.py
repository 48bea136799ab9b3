"""netem beside the emulator's model of it with many probes, so that small differences show: `pytest -s` on this file.

Five times the probes of the test, which it is the same as in all else: about ten minutes of software emulation.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from vm.agreement import judge, measure, needs_cargo, needs_qemu, report
from vm.settings import SETTINGS

TIMES = 5


@pytest.mark.root
@pytest.mark.timeout(7200)
@needs_qemu
@needs_cargo
def test_many_probes_agree(tmp_path: Path) -> None:
    settings = [replace(setting, count=TIMES * setting.count) for setting in SETTINGS]
    measured = measure(settings, tmp_path, timeout=7000)
    rows = judge(settings, measured)
    print(report(settings, measured, rows))
    assert [row for row in rows if not row.agrees] == []
