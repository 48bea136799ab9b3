"""What watching itself costs: trials with the light collectors and without, turn by turn, on direct and on wireguard-go.

Run as a program for the figures (`python bench/bench_watch.py [ROUNDS]`), or by pytest with a bound.
"""

from __future__ import annotations

import asyncio
import json
import sys
from math import exp, log
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory

import pytest

from support.labs import PAIR, UNSHAPED
from tunnelmark import registry
from tunnelmark.analyse.intervals import interval
from tunnelmark.lab.client import LabClient
from tunnelmark.plan.model import Arm, Profile, Trial, WorkloadUse
from tunnelmark.record.environment import socket_buffer_limit
from tunnelmark.run.collectors import collectors, light
from tunnelmark.run.collectors.base import Collector
from tunnelmark.run.measurement import TrialSpec
from tunnelmark.run.trial import prepare

ROUNDS = 7
MOST = 0.97
"""At least this share of the goodput is kept, as far as the interval reaches."""

OPTIONS = {"duration": "2 s"}


async def rounds(arm: str, number: int, folder: Path, profile: Profile = UNSHAPED) -> list[tuple[float, float, float]]:
    """Goodput with and without (bit/s) of so many pairs of trials, the order changing; and the collectors' CPU seconds."""
    found = []
    chosen = tuple(collectors()[name] for name in light())
    async with LabClient() as labs:
        for pair in range(number):
            seen: dict[bool, tuple[float, float]] = {}
            for watched in (True, False) if pair % 2 else (False, True):
                seen[watched] = await _trial(
                    labs, arm, profile, chosen if watched else (), folder / f"{pair}.{watched}"
                )
            found.append((seen[True][0], seen[False][0], seen[True][1]))
    return found


async def _trial(
    labs: LabClient, arm: str, profile: Profile, chosen: tuple[Collector, ...], raw: Path
) -> tuple[float, float]:
    driver, options = registry.arm(arm)
    workload = registry.workload("tcp")
    parts = TrialSpec(
        driver, options, workload, workload.options.model_validate(OPTIONS), 20.0, socket_buffer_limit(), chosen
    )
    trial = Trial(0, 1, Arm(arm, driver.name), profile, PAIR, WorkloadUse("tcp", "tcp", OPTIONS))
    attempt = await (await prepare(labs, trial, parts, raw)).measure()
    assert attempt.outcome == "ok", attempt.failure
    values = {sample.metric: sample.value for sample in attempt.samples if sample.time is None}
    return values["goodput"], values.get("watch_cpu", 0.0)


def told(arm: str, found: list[tuple[float, float, float]]) -> tuple[str, float]:
    """The ratio with its interval in words, and the upper end of the interval."""
    effects = [log(watched / alone) for watched, alone, _ in found]
    between = interval(effects)
    cpu = fmean(spent for _, _, spent in found)
    said = f"{arm}: goodput with the light collectors {100 * exp(fmean(effects)):.1f} % of that without"
    if between is not None:
        said += f" [{100 * exp(between.low):.1f} to {100 * exp(between.high):.1f}]"
    return f"{said}, {len(found)} pairs; they take {1e3 * cpu:.0f} ms of CPU a trial", exp(
        between.high if between else fmean(effects)
    )


@pytest.mark.root
@pytest.mark.parametrize("arm", ["direct", "wireguard-go"])
def test_watching_takes_little(arm: str, tmp_path: Path) -> None:
    said, most = told(arm, asyncio.run(rounds(arm, ROUNDS, tmp_path)))
    print("\n" + said)
    assert most >= MOST


if __name__ == "__main__":
    with TemporaryDirectory() as temporary:
        for name in ("direct", "wireguard-go"):
            count = int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS
            place = Path(temporary, name)
            place.mkdir()
            pairs = asyncio.run(rounds(name, count, place))
            print(told(name, pairs)[0])
            print("  " + json.dumps([[round(x / 1e6), round(y / 1e6)] for x, y, _ in pairs]) + " Mbit/s")
