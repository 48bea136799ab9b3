"""How long a lab takes to be up and gone, by topology: `make bench` prints medians and the slowest of twenty."""

from __future__ import annotations

import asyncio
import statistics
import subprocess
import sys
from pathlib import Path

import pytest

from tunnelmark.lab.client import LabClient
from tunnelmark.plan.files import Files
from tunnelmark.plan.load import load_profile, load_topology

ROUNDS = 20
BOUND = 0.3  # seconds for a lab of three nodes, up as well as gone (median; other work makes single ones late)


async def _rounds(topology: str) -> tuple[list[float], list[float]]:
    files = Files.standard()
    up, gone = [], []
    async with LabClient() as labs:
        for _ in range(ROUNDS):
            lab = await labs.up(load_topology(topology, files), load_profile("gigabit", files))
            up.append(lab.timings.up)
            gone.append(await lab.down())
    return up, gone


@pytest.mark.root
@pytest.mark.parametrize("topology", ["pair", "lan-3"])
def test_a_lab_is_up_and_gone_in_time(topology: str) -> None:
    up, gone = asyncio.run(_rounds(topology))
    for what, times in (("up", up), ("gone", gone)):
        print(f"\n{topology} {what}: median {1e3 * statistics.median(times):.0f} ms, slowest {1e3 * max(times):.0f} ms")
    assert statistics.median(up) < BOUND
    assert statistics.median(gone) < BOUND


@pytest.mark.root
def test_the_kernel_has_taken_a_lab_apart_in_time() -> None:
    script = ["unshare", "--net", sys.executable, str(Path(__file__).parent / "gone.py"), str(ROUNDS)]
    done = subprocess.run(script, capture_output=True, text=True, check=True)
    times = [float(line) for line in done.stdout.split()]
    print(
        f"\nlan-3, last interface gone: median {1e3 * statistics.median(times):.0f} ms, slowest {1e3 * max(times):.0f} ms"
    )
    assert statistics.median(times) < BOUND
