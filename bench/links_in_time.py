"""Prints what shipped links are at 100 packets a second, at their full rate, and for an arm that sends each packet in two pieces.

`.venv/bin/python bench/links_in_time.py`, in virtual time and without root: it is right on a busy machine too. Exit status 1
where a mean delay moves by more than 2 %, or the loss events of bursts by more than 2 %.
`--least` prints how far packets of a jitter in time hold each other up, by its correlation time.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from support.rehearsal import RARE, Sent, bursts, full, in_time, rehearse, stated
from tunnelmark.analyse.link.jitter_distributions import quantile
from tunnelmark.analyse.link.processes import wandering
from tunnelmark.plan.impairments import Distribution

ALLOWED = 0.02
SEEDS = 4
MOST = 5_000_000  # packets of a schedule


def links() -> bool:
    """Print the table; whether every line is inside."""
    print("mean delay in ms (queue apart) and loss events a second (RFC 5348: one round trip of losses is one)")
    print(f"{'profile':22} {'way':8} {'states':>7} {'100/s':>8} {'full':>8} {'moved':>7} {'pieces':>7}   whole  parted")
    good = True
    for profile in stated():
        for place, way in ((1, profile.forward), (0, profile.back)):
            rate = full(way)
            seconds = MOST / rate
            sent = [Sent(RARE, 1, seconds), Sent(rate, 1, seconds), Sent(rate, 2, seconds)]
            met = [rehearse(profile, sent, seed, place) for seed in range(SEEDS)]
            rare, dense, parted = (np.mean([run[n].delay for run in met]) for n in range(3))
            whole, pieces = (np.mean([run[n].events for run in met]) for n in (1, 2))
            moved, split = dense / rare - 1, parted / rare - 1
            what = "" if in_time(way) else "jitter per packet, by name"
            if in_time(way) and max(abs(moved), abs(split)) > ALLOWED:
                good, what = False, "MOVES"
            if way.loss is not None and not bursts(way):
                what = f"{what}; loss per packet, by name".removeprefix("; ")
            if bursts(way) and abs(pieces / whole - 1) > ALLOWED:
                good, what = False, f"{what} EVENTS"
            print(
                f"{profile.name:22} {('back', 'forward')[place]:8} {1e3 * float(way.delay or 0):7.3f} {rare:8.3f} {dense:8.3f} "
                f"{100 * moved:6.2f}% {100 * split:6.2f}% {whole:7.3f} {pieces:7.3f} {what}"
            )
    return good


def least() -> None:
    """Print what packets at no distance add to the mean delay, in sizes of the jitter, by correlation time in sizes."""
    distributions: tuple[Distribution, ...] = ("uniform", "normal", "pareto", "paretonormal")
    print("correlation time", *distributions)
    for ratio in (3, 5, 8, 10, 15, 20, 30):
        times = np.arange(0, 20_000, 0.02)  # correlation times
        found = []
        for distribution in distributions:
            delay = quantile(distribution, wandering(times, 1, np.random.default_rng(1)))[0]
            leaves = ratio * times + delay
            found.append(float(np.mean(np.maximum.accumulate(leaves) - leaves)))
        print(f"{ratio:16}", *(f"{each:.4f}" for each in found))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--least", action="store_true")
    if parser.parse_args().least:
        least()
    else:
        sys.exit(0 if links() else 1)
