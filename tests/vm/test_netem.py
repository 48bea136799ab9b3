"""The emulator's netem model does what netem does: both meet the same probes in many settings, figure by figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from vm.agreement import Measured, judge, measure, needs_cargo, needs_qemu, report
from vm.compare import Row
from vm.settings import SETTINGS

pytestmark = [pytest.mark.root, pytest.mark.slow, pytest.mark.timeout(1800), needs_qemu, needs_cargo]


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Measured:
    return measure(SETTINGS, tmp_path_factory.mktemp("netem"), timeout=1500)


@pytest.fixture(scope="module")
def rows(measured: Measured) -> Sequence[Row]:
    return judge(SETTINGS, measured)


@pytest.fixture(scope="module")
def by_setting(rows: Sequence[Row]) -> Mapping[str, Sequence[Row]]:
    return {setting.name: [row for row in rows if row.setting == setting.name] for setting in SETTINGS}


def test_the_guest_times_packets_to_microseconds(measured: Measured) -> None:
    """Else the delays below would say something of the guest and not of netem."""
    assert 0 <= measured.late_us < 100


def test_the_table_is_printed(measured: Measured, rows: Sequence[Row], capsys: pytest.CaptureFixture[str]) -> None:
    with capsys.disabled():
        print(report(SETTINGS, measured, rows))
    assert len(SETTINGS) >= 12


@pytest.mark.parametrize("name", [setting.name for setting in SETTINGS])
def test_netem_and_the_model_agree(name: str, by_setting: Mapping[str, Sequence[Row]]) -> None:
    assert [row for row in by_setting[name] if not row.agrees] == []
