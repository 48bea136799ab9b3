"""What a flood of datagrams over netem's delay measures: the rate that arrives against the queue's limit over its delay.

    python bench/delay_rows.py RESULTS...   # runs with profiles such as edge-delay-250+gigabit, or a table of their values (CSV)

netem lets no more than `limit` packets wait, 1,000 unless it is told otherwise (tc-netem(8)). What is delayed waits in that queue, so that no more
than `limit` packets pass in the time of the delay, whatever sends them. Ratios are means of the logarithm over blocks with Student's interval of 95 %.
"""

from __future__ import annotations

import csv
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from math import exp, log
from pathlib import Path
from statistics import fmean, median

from tunnelmark.analyse.attempts import chosen
from tunnelmark.analyse.intervals import student
from tunnelmark.analyse.link_gate import voided
from tunnelmark.record.store import load

LENGTH = 1178  # bytes of payload of a datagram: the MTU of 1230 less the headers of IP and TCP, as iperf3 chooses it
LIMIT = 1000
PROFILE = re.compile(r"edge-delay-(\d+)(?:-limit-(\d+))?\+")
COLUMNS = ("block", "profile", "arm", "delivered_bit_s", "length_b")

Value = tuple[int, str, str, float, float]
"""Block, profile, arm, bit/s of payload that arrived, bytes of payload of a datagram."""


def main() -> None:
    """Print a table in Markdown for each run, or with `--csv` the values that they are made of."""
    places = [Path(word) for word in sys.argv[1:] if word != "--csv"]
    if "--csv" in sys.argv:
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(COLUMNS)
        for block, profile, arm, rate, length in chain.from_iterable(map(read, places)):
            writer.writerow((block, profile, arm, f"{rate:.0f}", f"{length:.0f}"))
        return
    print("\n\n".join(table(read(place)) for place in places))


def read(place: Path) -> Iterator[Value]:
    """The values of a results folder, or of a table of them."""
    if place.suffix == ".csv":
        with place.open() as file:
            for row in csv.DictReader(file):
                rate, length = float(row["delivered_bit_s"]), float(row["length_b"])
                yield int(row["block"]), row["profile"], row["arm"], rate, length
        return
    for trial in chosen(voided(load(place)).trials):
        found = {sample.metric: sample.value for sample in trial.samples if sample.time is None}
        if PROFILE.match(trial.profile) and trial.outcome == "ok" and "delivered" in found:
            yield trial.block, trial.profile, trial.arm, found["delivered"], found["length"]


def table(values: Iterable[Value]) -> str:
    """A line for each delay and limit, a column for each arm: the median in Mbit/s, and the ratio to what the queue lets pass."""
    cells: dict[str, dict[str, dict[int, tuple[float, float]]]] = {}
    for block, profile, arm, rate, length in values:
        cells.setdefault(profile, {}).setdefault(arm, {})[block] = rate, rate / expected(profile, length)
    arms = sorted({arm for by_arm in cells.values() for arm in by_arm})
    rows = [
        [_named(profile), f"{expected(profile, LENGTH) / 1e6:.1f}", *(_cell(by_arm.get(arm, {})) for arm in arms)]
        for profile, by_arm in sorted(cells.items(), key=lambda one: _facts(one[0]))
    ]
    head = ["delay, limit", "limit over delay, Mbit/s", *arms]
    return "\n".join("| " + " | ".join(row) + " |" for row in (head, ["---"] * len(head), *rows))


def expected(profile: str, length: float) -> float:
    """Bit/s of payload that a queue of so many packets lets pass in the time of the delay."""
    delay, limit = _facts(profile)
    return limit * 8 * length / (delay / 1000)


def _facts(profile: str) -> tuple[int, int]:
    found = PROFILE.match(profile)
    assert found is not None, f"{profile} has no delay in its name"
    return int(found[1]), int(found[2] or LIMIT)


def _named(profile: str) -> str:
    delay, limit = _facts(profile)
    return f"{delay} ms, {limit:,} packets"


def _cell(by_block: Mapping[int, tuple[float, float]]) -> str:
    if not by_block:
        return ""
    ratios = [log(ratio) for _, ratio in by_block.values()]
    middle, bounds = exp(fmean(ratios)), student(ratios)
    wide = f" ({exp(bounds[0]):.2f} to {exp(bounds[1]):.2f})" if bounds else ""
    return f"{median(rate for rate, _ in by_block.values()) / 1e6:.1f}: {middle:.2f}{wide}"


if __name__ == "__main__":
    main()
