"""The emulator's netem model does what netem does: both meet the same probes in many settings, figure by figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from vm import compare, model
from vm.agreement import Measured, judge, judge_one, measure, needs_cargo, needs_qemu, report
from vm.compare import Row
from vm.settings import SETTINGS

pytestmark = [
    pytest.mark.root,
    pytest.mark.slow,
    pytest.mark.timeout(1800),
    needs_qemu,
    needs_cargo,
    pytest.mark.proof("the emulator's model `netem` does what the kernel's netem does"),
]


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


# About what 10,000 probes can tell apart: somewhat smaller errors in the model would pass.
WRONG = [
    ("delay", {"delay_us": 10_030}),
    ("loss", {"loss": {"kind": "independent", "probability": 0.03}}),
    ("loss-correlated-25", {"loss": {"kind": "independent", "probability": 0.1, "correlation": 0.2}}),
    ("loss-gilbert-elliott", {"loss": {"kind": "gilbert-elliott", "p": 0.01, "r": 0.22, "h": 0.3, "k": 0.999}}),
    ("duplicate-correlated", {"duplication": {"probability": 0.3, "correlation": 0.3}}),
    ("reorder-gap", {"reordering": {"probability": 0.5, "gap": 4}}),
    ("uniform", {"jitter": {"jitter_us": 3200}}),
    ("pareto", {"jitter": {"jitter_us": 4000, "distribution": "paretonormal"}}),
    ("rate-full-queue", {"rate": {"rate_bps": 20_000_000, "overhead_bytes": -14}}),
]


@pytest.mark.parametrize(("name", "stages"), WRONG, ids=[name for name, _ in WRONG])
def test_a_model_that_is_slightly_wrong_is_found(name: str, stages: dict[str, Any], measured: Measured) -> None:
    right = next(setting for setting in SETTINGS if setting.name == name)
    wrong = replace(right, stages=right.stages | stages)
    rows = judge_one(model.build(), wrong, measured, compare.FAMILY / compare.comparisons(SETTINGS))
    assert [row.figure for row in rows if not row.agrees] != []
