"""Looks at links, made of simulated probes and trains: what an `Observation` holds when a link does what one chose."""

from __future__ import annotations

from collections import deque

import numpy as np

from tunnelmark.analyse.link.simulation import simulate
from tunnelmark.analyse.link.statistics import Floats
from tunnelmark.model.observation import RECORDS, Flow, Observation
from tunnelmark.model.probe_plan import HEADERS, Pace, Train
from tunnelmark.plan.impairments import Chance, Direction, GilbertElliott, Jitter, Reordering
from tunnelmark.plan.model import Profile
from tunnelmark.record.link_check import LinkCheck
from tunnelmark.units import Duration, Share

COUNT, INTERVAL = 2000, 0.001
ZERO = 1_790_000_000_000_000_000

WAY = Direction(
    delay=Duration(0.02),
    jitter=Jitter(Duration(0.001), "normal", Share(0.3), keep_order=False),
    loss=GilbertElliott(Share(0.01), Share(0.3)),
    duplication=Chance(Share(0.03)),
    reordering=Reordering(Share(0.02)),
)


def flow(way: Direction, source: str, seed: int, *, late: float = 0.0, records=None, path=None) -> Flow:
    """What probes would meet on a link that does exactly what the direction says, and `late` seconds more."""
    times: Floats = INTERVAL * np.arange(COUNT, dtype=np.float64) + 0.1
    fates = simulate(way, "stated", times, runs=1, seed=seed, path=path)
    rows = []
    for number in np.flatnonzero(~fates.lost[0]):
        sent = ZERO + round(1e9 * times[number])
        for _ in range(1 + fates.duplicated[0, number]):
            rows.append((number, 0, 0, sent, sent + round(1e9 * (fates.delay[0, number] + late)) + 5000))
    found = np.array(rows, RECORDS) if records is None else records
    target = "b" if source == "a" else "a"
    return Flow(source, target, ZERO + round(1e8), Pace(COUNT, INTERVAL), None, 0, 0.0, 0.0, 0.0, found)


def observation(forward: Flow, back: Flow, reports=()) -> Observation:
    return Observation("p", "pair", forward, back, ZERO, reports, 1.79e9, 3.0)


def profile(way: Direction) -> Profile:
    return Profile("p", "T", "S", way, way)


def report(p99: float = 50.0, **faults: int) -> dict:
    return {
        "directions": [
            {
                "name": "a to b",
                "lateness_us": {"count": 9, "p50": p99 / 10, "p99": p99, "max": p99},
                "dropped": {"memory": 0, "loss": 5},
            }
        ],
        "ports": [{"name": "a.0", **faults}],
    }


def lines(check: LinkCheck, way: str = "a>b") -> dict:
    return {line.name: line for line in check.lines if line.way == way}


def shifted(row: tuple[int, int, int, int, int], seconds: float) -> tuple[int, int, int, int, int]:
    """A packet that was received so much later."""
    return (*row[:4], row[4] + round(1e9 * seconds))


def train(rate: float, queue: int, sent_rate: float, count: int = 2000, pause: float = 0.0, stall: float = 0.0) -> Flow:
    """A train through a shaper of that rate and queue, tail drop.

    In its middle the sender pauses for some seconds, or the shaper stalls: what waits there leaves that much later.
    """
    frame = 1472 + HEADERS
    out, inside = 0.0, deque[float]()
    rows: list[tuple[int, int, int, int, int]] = []
    for number in range(count):
        now = number * 8 * frame / sent_rate + (pause if number > count // 2 else 0.0)
        if stall and number > count // 2:
            inside = deque(leaves + stall for leaves in inside)
            rows = [row if row[4] < ZERO + 1e9 * now else shifted(row, stall) for row in rows]
            out, stall = out + stall, 0.0
        while inside and inside[0] <= now:
            inside.popleft()
        if len(inside) * frame > queue:
            continue
        out = max(out, now) + 8 * frame / rate
        inside.append(out)
        rows.append((number, 1, 0, ZERO + round(1e9 * now), ZERO + round(1e9 * out)))
    plan = Train(count, 8 * frame / sent_rate, 1472, 1)
    return Flow("a", "b", ZERO, None, plan, ZERO, sent_rate, 0.0, 0.0, np.array(rows, RECORDS))
