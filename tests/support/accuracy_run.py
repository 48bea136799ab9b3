"""Runs the accuracy benchmark and prints it: settings in labs one after another, load on a link, one table, the verdict."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Mapping
from typing import Any

import numpy as np
from rich.console import Console

from support.accuracy import DENSE, SPARSE, Found, Loaded, Setting, loaded, look
from support.verdicts import LEVEL, Line, judge, summary
from tunnelmark.cli.measurement_lock import alone
from tunnelmark.lab.client import LabClient
from tunnelmark.model.probe_plan import Pace

SEED = 20261122
"""Chosen before the first run, and no other was tried; TUNNELMARK_SEED gives another."""

APART, FAR = 100e-6, 4e-3  # seconds from probe to probe
SHARE = 0.935  # of the probes of a setting with jitter that are judged, the rest show the path or are at an edge
RATE, LATE_P99 = 500e6, 100.0  # bit/s of UDP payload, and the microseconds of the bound


def run(count: int, sparse: int, seconds: int) -> None:
    """So many probes for each setting, so many for those far apart, so many seconds of load; AssertionError at the end."""
    seed, began = int(os.environ.get("TUNNELMARK_SEED", SEED)), time.monotonic()
    print(f"\nseed {seed}; {count} probes a setting, {1e6 * APART:.0f} us apart, both ways at once")
    with alone(Console(), "a measurement of the link's accuracy"):
        lines = asyncio.run(_all(count, sparse, seconds, seed))
    tests, outside, chance = summary(lines)
    failed = [line for line in lines if line.fails(tests)]
    print(
        f"\n{len(lines)} lines. {tests} are tests at 99 %: {outside} outside, {chance:.1f} expected by chance; the run fails on "
        f"one below p = {LEVEL / tests:.2g} (Bonferroni), and on any bound. {len(failed)} failed. {time.monotonic() - began:.0f} s"
    )
    assert not failed, "\n".join(f"{line.setting}: {line.what} {line.achieved}, not {line.allowed}" for line in failed)


async def _all(count: int, sparse: int, seconds: int, seed: int) -> list[Line]:
    """Every pair of settings in a lab of its own; one lab server for all, so that none loses the real-time budget to others."""
    lines = []
    async with LabClient() as labs:
        for number, pair in enumerate(DENSE):
            lines += _judged(await _look(labs, pair, count, APART, seed + number), count)
        lines += _judged(await _look(labs, SPARSE, sparse, FAR, seed + len(DENSE)), sparse)
        lines += _late(await loaded(labs, RATE, seconds, seed))
    return lines


async def _look(labs: LabClient, pair: tuple[Setting, Setting], count: int, apart: float, seed: int) -> Found:
    still = max(setting.still for setting in pair)
    judged = 1.0 if still == 0.0 else SHARE if still < 0.2 else 0.7
    found = await look(labs, pair, Pace(round(1.003 * count / judged), apart), seed)
    ready = {name: value for name, value in found.ready.items() if name not in ("ports", "directions")}
    print(
        f"\n{found.seconds:.0f} s; emulator {ready}, {100 * found.cpu:.0f} % of a core; "
        f"stolen {found.stolen:.2f} cores, load average {found.load:.1f}"
    )
    return found


def _judged(found: Found, count: int) -> list[Line]:
    lines = [_realtime("link", found.ready)]
    for each in found.looks:
        late, path = each.said["lateness_us"], 1e6 * each.path
        print(
            f"\n{each.setting.title}\n  {each.sent} probes, sent at most {1e3 * each.late:.1f} ms late; "
            f"emulator late p50 {late['p50']:.0f} p99 {late['p99']:.0f} max {late['max']:.0f} us; "
            f"path beyond the delay mean {path.mean():.0f} p50 {np.median(path):.0f} p99 {np.quantile(path, 0.99):.0f} us"
        )
        judged = int(np.count_nonzero(each.stated))
        enough = Line(each.setting.title, "probes judged", f"{count}", f"{judged}", "no fewer", judged >= count)
        for line in (enough, *judge(each)):
            _print(line)
            lines.append(line)
    return lines


def _late(under: Loaded) -> list[Line]:
    late = under.late
    title = f"load of {RATE / 1e6:.0f} Mbit/s"
    print(
        f"\n{title}: UDP, 1400 bytes each, {under.offered:.0f} Mbit/s of payload for {under.seconds:.0f} s, constant 5 ms; "
        f"emulator {dict(under.ready)}, {100 * under.cpu:.0f} % of a core; stolen {under.stolen:.2f} cores\n"
        f"  emulator late p50 {late['p50']:.1f} p99 {late['p99']:.1f} p99.9 {late['p999']:.1f} max {late['max']:.1f} us "
        f"of {late['count']:.0f} packets"
    )
    offered = under.offered * 1e6
    lines = [
        Line(
            title, "offered", f"{RATE / 1e6:.0f} Mbit/s", f"{under.offered:.0f} Mbit/s", "95 %", offered >= 0.95 * RATE
        ),
        Line(title, "late, p99", "0 us", f"{late['p99']:.1f} us", f"to {LATE_P99:.0f} us", late["p99"] <= LATE_P99),
        Line(title, "dropped unasked", "0", f"{under.unplanned}", "0", under.unplanned == 0),
    ]
    for line in lines:
        _print(line)
    return lines


def _realtime(setting: str, ready: Mapping[str, Any]) -> Line:
    """Without real-time priority (another lab has the machine's budget of it) the emulator is late, and nothing is proved."""
    scheduler = str(ready["scheduler"])
    return Line(setting, "emulator's scheduler", "fifo", scheduler, "fifo", scheduler.startswith("fifo"))


def _print(line: Line) -> None:
    verdict = "ok" if line.inside else "OUTSIDE"
    p = "" if line.p is None else f"p {line.p:.3f}"
    print(f"  {line.what:<24} {line.asked:>13} {line.achieved:>15}  {line.allowed:<28} {verdict:<8} {p:<8} {line.note}")
