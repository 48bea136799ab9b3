"""Do multiples of the anchor travel? Runs one study on settings of this machine that differ in speed, and judges the prediction.

    python bench/anchor.py run FOLDER [SETTING ...]     as root: measure these settings, a folder each (all that are missing)
    python bench/anchor.py FOLDER                       print from what was measured

A setting is `full`, `slower-0.5` (a thread of the highest priority on each core leaves half of it, in pieces of 0.2 ms), `quota-0.5` (a control
group's quota, as `tests/support/slow_machine.py` makes it) or `hog-1` (a loop on each core that weighs as much as the lab does). A quota
stops everything for tens of milliseconds, in which packets gather, and who hands over super-packets then has longer ones: a slower
machine does not stop. Ten VPNs, TCP for two seconds over a gigabit, five blocks. For each arm it prints the
multiple of the anchor in both settings of a pair, with the interval that the report predicts for another machine from the one
run, and whether the other is inside; how far multiples and shares of direct moved; and the variance of the logarithm of a block's value paired
with the anchor and paired with direct, within each setting and over both, where the machine is part of it (judged). What is between machines (`analyse.machines.BETWEEN`) is fitted on pairs that share no setting
with the pair that is judged.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from math import exp, log, sqrt
from pathlib import Path
from statistics import fmean, variance
from time import perf_counter, sleep

from tunnelmark.analyse.analysis import judge
from tunnelmark.analyse.anchor_multiples import against, anchor_of
from tunnelmark.analyse.bottleneck import bound_of
from tunnelmark.analyse.machines import BETWEEN, MachineComparison, fit
from tunnelmark.analyse.model import Analysis, MetricCell
from tunnelmark.linux import cgroup_cleanup, cgroups
from tunnelmark.record.store import load

ARMS = (
    *("wireguard-go", "wireguard-go-2026", "tinc", "openvpn", "nebula"),
    *("yggdrasil", "fastd", "n2n", "gvpe", "easytier"),
)
SETTINGS = ("full", "slower-0.5", "quota-0.5", "slower-0.35", "slower-0.7")
JUDGED = (("full", "slower-0.5"), ("full", "quota-0.5"))
"""Pairs that the constant of the code (`analyse.machines.BETWEEN`) was not made of."""

HOLDS, OF = 9, 10
"""The prediction must hold this many arms of so many."""

_PIECE = 0.0002
"""Seconds that are taken from a core at a time: at 300 Mbit/s five full packets arrive meanwhile."""

_PR_SET_PDEATHSIG = 1
_STUDY = """\
[study]
name = "anchor"
title = "Ten VPNs and the anchor"
blocks = {blocks}
seed = 11
ready_timeout = "60 s"
profiles = ["gigabit"]
topologies = ["pair"]

[[arm]]
name = "direct"

[[arm]]
name = "direct-again"
same_as = "direct"

[[arm]]
name = "anchor-chacha20"

{arms}
[[workload]]
workload = "tcp"
"""


@contextlib.contextmanager
def hogged(weight: float) -> Iterator[dict[str, str]]:
    """A loop on each core that weighs so much of what labs do, and the environment for commands whose labs are beside it.

    Both stand in one group that weighs as much as any other: beside a lab's own weight, at the top, a hog would starve all else.
    """
    top = cgroups.find().cpu
    if top is None:
        raise SystemExit("this machine has no CPU controller to put a hog into")
    folder = top / f"hog-{os.getpid()}"
    (folder / "loops").mkdir(parents=True)
    children = []
    try:
        if not (folder / "cpu.shares").exists():
            (folder / "cgroup.subtree_control").write_text("+cpu")
        file, most = ("cpu.shares", 262144) if (folder / "cpu.shares").exists() else ("cpu.weight", 10000)
        (folder / "loops" / file).write_text(str(max(round(weight * most), 2)))
        with contextlib.suppress(OSError):
            (folder / "cpu.rt_runtime_us").write_text("200000")
        for core in sorted(os.sched_getaffinity(0)):
            children.append(os.fork())
            if children[-1] == 0:
                ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
                (folder / "loops" / "cgroup.procs").write_text("0")
                os.sched_setaffinity(0, {core})
                while True:
                    pass
        yield {cgroups.VARIABLE: folder.name}
    finally:
        for child in children:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        cgroup_cleanup.remove(str(folder))


def _take(core: int, share: float) -> None:
    """Take that share of a core's time, piece by piece; never returns."""
    os.sched_setaffinity(0, {core})
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(98))  # the clock that watches for stalls goes first
    begun, taken = perf_counter(), 0.0
    while True:
        start = perf_counter()
        while (now := perf_counter()) < start + _PIECE:
            pass
        taken += now - start
        sleep(max(begun + taken / share - now, 0))  # late wake-ups are made good, so that the share is exact


@contextlib.contextmanager
def slower(left: float) -> Iterator[None]:
    """A machine that has only so much of each core's time left, as one that takes longer over each instruction."""
    children = []
    try:
        for core in sorted(os.sched_getaffinity(0)):
            children.append(os.fork())
            if children[-1] == 0:
                ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
                _take(core, 1 - left)
        yield
    finally:
        for child in children:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)


@contextlib.contextmanager
def at(setting: str) -> Iterator[dict[str, str]]:
    """This machine in a setting: the environment for commands whose labs are in it."""
    kind, _, amount = setting.partition("-")
    if kind == "full":
        yield {}
    elif kind == "hog":
        with hogged(float(amount)) as environment:
            yield environment
    elif kind == "slower":
        with slower(float(amount)):
            yield {}
    else:
        sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
        from support.slow_machine import slowed

        with slowed(float(amount)) as environment:
            # Else the lab's own weight would count among its equals only, and other work would decide how slow this is.
            top = cgroups.find().cpu
            for name, most in (("cpu.shares", "262144"), ("cpu.weight", "10000")):
                if top is not None and (file := top / environment[cgroups.VARIABLE] / name).exists():
                    file.write_text(most)
            yield environment


def measure(folder: Path, setting: str, blocks: int) -> None:
    """Run the study in a setting, unless it has been."""
    out = folder / setting
    if (out / "report.md").exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    study = folder / "anchor.toml"
    study.write_text(_STUDY.format(blocks=blocks, arms="".join(f'[[arm]]\nname = "{arm}"\n\n' for arm in ARMS)))
    code = "from tunnelmark.cli import main; main()"
    command = [sys.executable, "-c", code, "run", str(study), "--out", str(out), "--no-wait", "--no-repeat"]
    print(f"{setting} ...", flush=True)
    with at(setting) as environment:
        done = subprocess.run([*command, "--no-measure"], env=os.environ | environment, check=False)
    if done.returncode not in (0, 1):  # 1: a gate failed, as that direct fills the link
        raise SystemExit(f"the study ended with {done.returncode} in {setting}")


@dataclass(frozen=True, slots=True)
class Measured:
    """A setting's run: by arm, the logarithms of its multiples of the anchor, and of its shares of direct, block by block."""

    multiples: Mapping[str, tuple[float, ...]]
    shares: Mapping[str, tuple[float, ...]]
    bounds: Mapping[str, str]
    processor: frozenset[str]  # arms that the processor bound
    direct: float


def read(folder: Path) -> Measured:
    """What a setting's results say."""
    analysis = judge(load(folder))
    (setting,) = analysis.settings()
    anchor = anchor_of(analysis.results.plan.arms)
    assert anchor is not None and analysis.reference is not None
    cells = {arm: analysis.cell(arm, setting, "goodput") for arm in (*ARMS, anchor, analysis.reference)}
    direct = cells[analysis.reference].spread
    return Measured(
        {arm: logs(cells[arm], cells[anchor]) for arm in ARMS},
        {arm: logs(cells[arm], cells[analysis.reference]) for arm in ARMS},
        {arm: _bound(analysis, cells[arm]) for arm in ARMS},
        frozenset(arm for arm in ARMS if (bound := analysis.bound_by.get((arm, setting))) and bound.processor),
        direct.median if direct else 0.0,
    )


def logs(cell: MetricCell, other: MetricCell) -> tuple[float, ...]:
    """Logarithms of a cell's ratio to another, block by block."""
    return tuple(log(effect) for effect in against(cell, other).effects)


def _bound(analysis: Analysis, cell: MetricCell) -> str:
    bound = bound_of(analysis, cell.arm, cell.setting, cell.metric)
    return "?" if bound is None else bound.text


def between(found: Mapping[str, Measured], settings: tuple[str, ...]) -> MachineComparison:
    """What is between machines, by these settings, of the arms that all of them have."""
    arms = [arm for arm in ARMS if all(len(found[one].multiples[arm]) > 1 for one in settings)]
    values = [[fmean(found[one].multiples[arm]) for one in settings] for arm in arms]
    noise = [[variance(at := found[one].multiples[arm]) / len(at) for one in settings] for arm in arms]
    return fit(values, noise, " and ".join(settings))


def moved(one: Mapping[str, tuple[float, ...]], other: Mapping[str, tuple[float, ...]]) -> float:
    """By which factor arms moved, root mean square of the logarithm."""
    return exp(sqrt(fmean((fmean(one[arm]) - fmean(other[arm])) ** 2 for arm in ARMS if one[arm] and other[arm])))


def judged(found: Mapping[str, Measured], here: str, there: str, known: MachineComparison) -> tuple[int, int]:
    """Print each arm of a pair of settings; how many are inside of the prediction that `here` makes, of how many."""
    from tunnelmark.analyse.anchor_multiples import prediction

    print(
        f"\n{here} predicts {there}; between machines {known.deviation:.3f} ({known.freedom:.1f} degrees: {known.source})"
    )
    print(f"{'arm':<20}{here:>12}{'prediction':>20}{there:>14}   inside   bound by")
    inside = total = 0
    for arm in ARMS:
        mine, theirs = found[here].multiples[arm], found[there].multiples[arm]
        told = prediction(mine, known)
        if told is None or not theirs:
            print(f"{arm:<20}{'no multiple: too few blocks with a value':>46}")
            continue
        value, total = exp(fmean(theirs)), total + 1
        holds = told[0] <= value <= told[1]
        inside += holds
        bound = found[here].bounds[arm], found[there].bounds[arm]
        said = f"{told[0]:.2f} to {told[1]:.2f}"
        print(
            f"{arm:<20}{exp(fmean(mine)):>12.3f}{said:>20}{value:>14.3f}   {'yes' if holds else 'NO':<6}   {bound[0]} | {bound[1]}"
        )
    share = moved(found[here].shares, found[there].shares)
    print(
        f"moved by a factor of {moved(found[here].multiples, found[there].multiples):.2f} (multiples), {share:.2f} (shares of direct)"
    )
    print(f"inside: {inside} of {total}")
    return inside, total


def pairing(found: Mapping[str, Measured], settings: tuple[str, ...]) -> tuple[float, float]:
    """The variance of the logarithm of a block's value over all blocks of these settings, paired with the anchor and with direct.

    Means over the arms that the processor bound in each of them. Over several settings the machine is part of it.
    """
    arms = [arm for arm in ARMS if all(arm in found[one].processor and found[one].multiples[arm] for one in settings)]
    if not arms:
        raise SystemExit("no cell was bound by the processor, so there is nothing to pair")
    return (
        fmean(variance([value for one in settings for value in found[one].multiples[arm]]) for arm in arms),
        fmean(variance([value for one in settings for value in found[one].shares[arm]]) for arm in arms),
    )


def show(folder: Path) -> int:
    """Print everything; 1 if a judgement fails, 2 if a setting that it needs is missing."""
    found = {path.parent.name: read(path.parent) for path in sorted(folder.glob("*/report.md"))}
    for name, one in found.items():
        print(f"{name}: direct {one.direct / 1e6:.0f} Mbit/s")
    for pair in combinations(found, 2):
        rest = tuple(one for one in found if one not in pair)
        if len(rest) >= 2:
            judged(found, *pair, between(found, rest))
    if len(found) > 2:
        known = between(found, tuple(found))
        print(f"\nall settings: between machines {known.deviation:.3f}, {known.freedom:.1f} degrees of freedom")
    if missing := {setting for pair in JUDGED for setting in pair} - set(found):
        print(f"\nnot judged: {' and '.join(sorted(missing))} missing")
        return 2
    print("\n=== judged: the constant of the code, by settings that it was not made of ===")
    for name, one in found.items():
        print(f"{len(one.processor)} of {len(ARMS)} cells are bound by the processor in {name}")
        _varied(found, (name,))
    holds = True
    for pair in JUDGED:
        inside, total = judged(found, *pair, BETWEEN)
        with_anchor, with_direct = _varied(found, pair)
        held, lower = inside * OF >= HOLDS * total and total == len(ARMS), with_anchor < with_direct
        print(f"prediction holds {inside} of {total}: {'yes' if held else 'NO'}")
        print(f"pairing with the anchor lowers the variance over machines: {'yes' if lower else 'NO'}")
        holds = holds and held and lower
    return 0 if holds else 1


def _varied(found: Mapping[str, Measured], settings: tuple[str, ...]) -> tuple[float, float]:
    with_anchor, with_direct = pairing(found, settings)
    said = f"variance of log values, {' and '.join(settings)}"
    print(f"{said:<56}{with_anchor:.5f} paired with the anchor, {with_direct:.5f} with direct")
    return with_anchor, with_direct


def main() -> int:
    """Measure if asked, then print."""
    words = sys.argv[1:]
    if not words:
        raise SystemExit(__doc__)
    if words[0] != "run":
        return show(Path(words[0]))
    for setting in words[2:] or SETTINGS:
        measure(Path(words[1]), setting, int(os.environ.get("BLOCKS", "5")))
    return show(Path(words[1]))


if __name__ == "__main__":
    sys.exit(main())
