"""Counts what `analyse.change_points` finds in made-up histories: false changes where there is none, true ones by their size and place.

    PYTHONPATH=src .venv/bin/python bench/change_points.py

Runs are independent, with normal or heavy-tailed (Student's t of 3 degrees) deviations of 1; a change is a step of that many deviations.
"""

from __future__ import annotations

import numpy as np

from tunnelmark.analyse.change_points import change_points

HISTORIES = 1000
RUNS = (8, 12, 20, 40)
STEPS = (2.0, 3.0)


def draw(random: np.random.Generator, kind: str, n: int) -> list[float]:
    """Deviations of n runs, with a standard deviation of 1."""
    drawn = random.normal(size=n) if kind == "normal" else random.standard_t(3, n) / np.sqrt(3)
    return [float(each) for each in drawn]


def false_changes(kind: str, n: int, series: int = 1) -> float:
    """The share of families of that many histories without a change in which any is found."""
    random = np.random.default_rng([n, series])
    times = HISTORIES // series
    return sum(any(change_points([draw(random, kind, n) for _ in range(series)], k)) for k in range(times)) / times


def found(kind: str, n: int, step: float, at: int) -> tuple[float, float]:
    """The share of histories in which a step before run `at` (from 0) is found, and of those the share that place it within one run."""
    random = np.random.default_rng([n, int(10 * step), at])
    hits = near = 0
    for k in range(HISTORIES // 2):
        values = [value + (step if place >= at else 0) for place, value in enumerate(draw(random, kind, n))]
        (changes,) = change_points([values], k)
        hits += bool(changes)
        near += any(abs(change.place - at) <= 1 for change in changes)
    return hits / (HISTORIES // 2), near / max(hits, 1)


def main() -> None:
    for kind in ("normal", "heavy"):
        for n in RUNS:
            print(f"{kind:6} {n:3} runs, no change: found in {100 * false_changes(kind, n):.1f} %", flush=True)
    print(f"normal  20 runs, 10 series, no change: found in {100 * false_changes('normal', 20, 10):.1f} % of families")
    for kind in ("normal", "heavy"):
        for n in RUNS:
            for at in (n // 2, n - 3):
                cells = [found(kind, n, step, at) for step in STEPS]
                text = ", ".join(
                    f"{s:g}: {100 * hit:.0f} % ({100 * near:.0f} %)"
                    for s, (hit, near) in zip(STEPS, cells, strict=True)
                )
                print(f"{kind:6} {n:3} runs, step before run {at + 1}: {text}", flush=True)


if __name__ == "__main__":
    main()
