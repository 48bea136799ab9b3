"""Compares one decision a super-packet with one a wire packet: runs the study `gso-or-wire` and prints the ratio of goodputs.

    python bench/gso_or_wire.py            run the study (root), then print
    python bench/gso_or_wire.py RESULTS    print from the results of a run

Blocks are the clusters, as everywhere (`analyse.intervals`). Within a block both profiles meet the same seed and the
same state of the machine. The value of a block is the geometric mean of its good trials: direct, and the A/A pair's second.
The effect is the logarithm of the ratio of two profiles in one block; its interval is the expanded bootstrap over blocks.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from math import exp, log
from pathlib import Path
from statistics import fmean, median
from typing import Any

from tunnelmark.analyse.attempts import chosen
from tunnelmark.analyse.intervals import interval
from tunnelmark.analyse.link_gate import voided
from tunnelmark.record.results import RAW, Results, TrialRow
from tunnelmark.record.store import load

STUDY = "gso-or-wire"
PAIRS = (
    ("thesis-low+gigabit", "thesis-low+gso+gigabit"),
    ("thesis-low-in-order+gigabit", "thesis-low-in-order+gso+gigabit"),
)
"""Per wire packet, and per super-packet."""


def value(trial: TrialRow, metric: str) -> float:
    """A metric over the whole window of a trial."""
    return next(sample.value for sample in trial.samples if sample.metric == metric and sample.time is None)


def by_block(trials: Iterable[TrialRow], profile: str) -> Mapping[int, float]:
    """The logarithm of the goodput of a profile, by block."""
    found: dict[int, list[float]] = {}
    for trial in trials:
        if trial.profile == profile:
            found.setdefault(trial.block, []).append(log(value(trial, "goodput")))
    return {block: fmean(values) for block, values in found.items()}


def estimate(values: Mapping[int, float], scale: float, form: str) -> str:
    """The geometric mean over blocks with its 95 % interval."""
    found = interval([values[block] for block in sorted(values)])
    said = form.format(exp(fmean(values.values())) / scale)
    if found is None:
        return f"{said} (too few blocks for an interval)"
    return f"{said} ({form.format(exp(found.low) / scale)} to {form.format(exp(found.high) / scale)})"


def forward(results: Path, trial: TrialRow) -> dict[str, Any]:
    """What the emulator said at its end of the way of the data: its last report of the direction to the second node."""
    lines = (results / RAW / trial.folder / "emulator.middle.out").read_text().splitlines()
    reports = [json.loads(line)["report"] for line in lines if line.startswith('{"report"')]
    way: dict[str, Any] = next(way for way in reports[-1]["directions"] if way["name"] == "a to b")
    return way


COLUMNS: tuple[tuple[str, Callable[[TrialRow, dict[str, Any]], float]], ...] = (
    ("wire packets a decision", lambda _, way: way["packets"] / way["units"]),
    ("wire packets lost, %", lambda _, way: 100 * way["dropped"]["loss"] / way["packets"]),
    ("runs of losses a 1000 wire packets", lambda _, way: 1000 * way["realised"]["loss_runs"] / way["packets"]),
    (
        "retransmitted segments, % of wire packets",
        lambda trial, way: 100 * value(trial, "retransmits") / way["packets"],
    ),
    ("congestion window, KiB", lambda trial, _: value(trial, "cwnd")),
    ("round-trip time, ms", lambda trial, _: value(trial, "rtt")),
    ("dropped by queue or limit, packets", lambda _, way: way["dropped"]["queue"]),
    ("late, 99 % of departures, us", lambda _, way: way["lateness_us"]["p99"]),
)
"""What explains the ratio: medians over trials. Warm-up is in the emulator's counts and not in the retransmits."""


def show(folder: Path) -> None:
    """Print goodputs, ratios and what explains them."""
    results: Results = voided(load(folder))
    good = [trial for trial in chosen(results.trials) if trial.outcome == "ok"]
    print(
        f"{len(good)} usable trials of {len(results.trials)} attempts, {results.plan.blocks} blocks; 95 % intervals over blocks\n"
    )
    for wire, gso in PAIRS:
        one, other = by_block(good, wire), by_block(good, gso)
        ratios = {block: other[block] - one[block] for block in one.keys() & other.keys()}
        if not ratios:
            continue
        print(f"{wire:<34} {estimate(one, 1e6, '{:.1f}')} Mbit/s, {len(one)} blocks")
        print(f"{gso:<34} {estimate(other, 1e6, '{:.1f}')} Mbit/s, {len(other)} blocks")
        print(f"{'ratio within the block':<34} {estimate(ratios, 1, '{:.2f}')}, {len(ratios)} blocks")
        print(f"{'ratio of each block':<34} {' '.join(f'{exp(ratios[block]):.2f}' for block in sorted(ratios))}\n")
    profiles = [profile for pair in PAIRS for profile in pair]
    print(f"{'medians over trials':<44}" + "".join(f"{profile:>34}" for profile in profiles))
    ways = [(trial, forward(folder, trial)) for trial in good]
    for title, column in COLUMNS:
        cells = [[column(trial, way) for trial, way in ways if trial.profile == profile] for profile in profiles]
        print(f"{title:<44}" + "".join(f"{median(cell):34.3g}" if cell else f"{'-':>34}" for cell in cells))


def main() -> None:
    """Run the study unless there is a result to read, then print."""
    if len(sys.argv) > 1:
        show(Path(sys.argv[1]))
        return
    folder = Path("results") / STUDY
    command = [sys.executable, "-c", "from tunnelmark.cli import main; main()", "run", STUDY, "--out", str(folder)]
    done = subprocess.run(command, check=False)
    # 1: a gate failed, for instance because a trial was void; what is left is still told, with its number.
    if done.returncode not in (0, 1):
        sys.exit(done.returncode)
    show(folder)


if __name__ == "__main__":
    main()
