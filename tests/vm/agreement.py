"""netem in a guest beside the emulator's model of it: measures all settings in one boot, then compares."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from tunnelmark.errors import MissingPart
from tunnelmark.lab.vm import Guest, Hardware
from tunnelmark.lab.vm.qemu import PROGRAM
from vm import compare, model
from vm.compare import Probes, Row
from vm.settings import CALIBRATION, Setting

SEEDS = 200  # of the model, for each setting
KERNEL = (
    "TUNNELMARK_VM_KERNEL"  # environment: release of the guest's kernel, where it is not the distribution's current
)
GUEST = Path(__file__).with_name("guest.py")

needs_qemu = pytest.mark.skipif(
    shutil.which(PROGRAM) is None, reason="needs QEMU: apt-get install qemu-system-x86 busybox-static"
)
needs_cargo = pytest.mark.skipif(shutil.which("cargo") is None, reason="needs cargo, to build the emulator's model")


@dataclass(frozen=True)
class Measured:
    """What netem did: the guest's kernel, the probes of each setting, how late its timers are (us)."""

    kernel: str
    probes: Mapping[str, Probes]
    late_us: float


def measure(settings: Sequence[Setting], folder: Path, timeout: float) -> Measured:
    """Send the probes of all settings through netem in one guest; skips when the guest cannot be had."""
    asked = folder / "settings.json"
    asked.write_text(json.dumps([setting.for_guest() for setting in settings]))

    async def run() -> str:
        # The guest's clock counts instructions: what else this machine does makes no packet late.
        hardware = Hardware(cores=1, virtual_clock=True)
        async with Guest(folder, hardware=hardware, release=os.environ.get(KERNEL, "")) as machine:
            done = await machine.run([sys.executable, str(GUEST), str(asked), str(folder)], timeout)
            assert done.code == 0, done.stderr
            return machine.release

    try:
        kernel = asyncio.run(run())
    except MissingPart as missing:
        pytest.skip(f"{missing.message} ({missing.hint})")
    probes = {}
    for setting in settings:
        found = json.loads((folder / f"{setting.name}.json").read_text())
        probes[setting.name] = Probes.read(found, found["arrived_ns"])
    return Measured(kernel, probes, late_us(probes[CALIBRATION.name]))


def late_us(calibration: Probes) -> float:
    """By how much packets of a constant delay are late: 999 of 1000 are less."""
    asked = float(CALIBRATION.stages["delay_us"])
    return float(np.quantile(calibration.delays_us(), 0.999)) - asked


def judge(settings: Sequence[Setting], measured: Measured) -> list[Row]:
    """Compare every setting with the model."""
    program = model.build()
    rows = []
    for setting in settings:
        rows += judge_one(program, setting, measured, compare.FAMILY / compare.comparisons(settings))
    return rows


def judge_one(program: Path, setting: Setting, measured: Measured, level: float) -> list[Row]:
    """Compare one setting with the model; `level`: probability of a false alarm in one comparison."""
    netem = measured.probes[setting.name]
    return compare.compare(setting, netem, model.decide(program, setting, netem, SEEDS), level, measured.late_us)


def report(settings: Sequence[Setting], measured: Measured, rows: Sequence[Row]) -> str:
    """The table, under what it rests on."""
    number = compare.comparisons(settings)
    return (
        f"\nnetem of Linux {measured.kernel} beside the model: {min(setting.count for setting in settings)} probes a setting or more, "
        f"{SEEDS} seeds of the model, {number} comparisons at {compare.FAMILY / number:.1e} each (together {compare.FAMILY:.0%}); "
        f"the guest's timers are late by less than {measured.late_us:.1f} us in 999 of 1000 packets\n\n{compare.table(rows)}"
    )
