"""What looks at links find: every shipped profile, true and wrong in each of its parts, looked at 100 times in simulation.

    .venv/bin/python bench/looks.py [--looks 100] [PROFILE ...]

A wrong link is to be found in at least 95 of 100 looks of a run, or by the counts of a run's own traffic, for which it
says how many packets it takes; a true link may be refused in at most 1 of 100. Ends with 1 where a bar is not met.
It judges as `analyse.link.power` does, with draws of its own.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from scipy.stats import poisson

from tunnelmark.analyse.link.counts import TOGETHER, Count, Draws, Wander
from tunnelmark.analyse.link.expected import expect, serial_of, simulated
from tunnelmark.analyse.link.path import LinkPath, telling_seed
from tunnelmark.analyse.link.power import FOUND, WrongLink, looks_at, moments, wrongs
from tunnelmark.analyse.link.processes import in_time
from tunnelmark.model.attempt import LinkCounts
from tunnelmark.model.probe_plan import Pace, enough, pace_of
from tunnelmark.plan.files import Files
from tunnelmark.plan.impairments import Direction
from tunnelmark.plan.load import load_profile
from tunnelmark.plan.model import Profile
from tunnelmark.plan.struck import drawn, shares, wandering

REFUSED = 0.01  # the share of looks at a true link that may be outside
BLOCKS, SECONDS = 8, 2.0  # of a run: the default, and what a trial lasts at least
TRAFFIC = 400_000
"""Packets that a run's own traffic has each way at least: eight blocks of a TCP stream of two seconds at 300 Mbit/s."""


@dataclass(frozen=True, slots=True)
class Found:
    """One row: a link, true or wrong in a part, and how it is told.

    `share` of looks were outside; counts tell it from so many `packets` on; `runs` is the share of runs in which the delays of the
    trials' own packets tell it.
    """

    profile: str
    way: str
    what: str
    share: float
    packets: int | None
    runs: float | None = None

    @property
    def met(self) -> bool:
        """Whether its bar is met."""
        if self.what == "true":
            return max(self.share, self.runs or 0.0) <= REFUSED
        return max(self.share, self.runs or 0.0) >= FOUND or (self.packets is not None and self.packets <= TRAFFIC)

    def __str__(self) -> str:
        counted = "" if self.packets is None else f"counts tell it from {self.packets:,} packets on"
        if self.runs is not None:
            counted = f"the delays of a run's own packets: outside in {100 * self.runs:.0f} %"
        verdict = "met" if self.met else "NOT MET"
        return f"{self.profile:<22} {self.way:<8} {self.what:<38} {100 * self.share:5.0f} %  {verdict:<8} {counted}"


def of_profile(profile: Profile, looks: int) -> Iterator[Found]:
    """The rows of a profile; a direction that is like the other stands once."""
    pace = pace_of(profile, enough(profile), 0.001)
    ways = {"forward": profile.forward, "back": profile.back}
    for name, way in ways.items() if profile.forward != profile.back else [("both", profile.forward)]:
        if way.rate_trace is not None:
            continue
        links = [WrongLink("", "true", way), *wrongs(way, profile.model)]
        alone = drawn(way, profile.model, profile.unit) is not None
        for wrong, seen in zip(links, outcomes(profile, way, links, pace, looks), strict=True):
            share = shares(way, profile.model, profile.unit).get(wrong.part)
            told = share is not None and wrong.words.startswith(("no ", "twice"))
            yield Found(
                profile.name,
                name,
                wrong.words,
                sum(map(bool, seen)) / looks,
                _packets(wrong.part, float(share or 0), alone and wrong.part == "loss") if told else None,
                _runs(profile, way, wrong, looks) if wrong.part in ("", "jitter") else None,
            )


def outcomes(
    profile: Profile, way: Direction, links: Sequence[WrongLink], pace: Pace, looks: int
) -> list[list[frozenset[str]]]:
    """For each link what each look has outside; a direction with processes in time has another path in each look, which is known."""
    serial, sent = serial_of(profile, way), moments(pace.count, pace.interval)
    if not in_time(way):
        expected = expect(profile.model, way, sent, serial=serial)
        return [
            list(looks_at(wrong.way, profile.model, way, serial, sent, expected, looks, seed))
            for seed, wrong in enumerate(links, 5000)
        ]
    found: list[list[frozenset[str]]] = [[] for _ in links]
    seed = 9000
    for look in range(looks):
        seed = telling_seed(profile, pace, 2, seed + 1)
        path = LinkPath(seed, 0, 1 if way is profile.forward else 0)
        expected = expect(profile.model, way, sent, serial=serial, path=path)
        for number, (wrong, seen) in enumerate(zip(links, found, strict=True)):
            draws = 5000 + look * len(links) + number
            seen += looks_at(wrong.way, profile.model, way, serial, sent, expected, 1, draws, path)
    return found


def _runs(profile: Profile, way: Direction, wrong: WrongLink, looks: int) -> float | None:
    """The share of runs whose packets had delays that another jitter makes: as many simulated runs as looks, of `BLOCKS` blocks."""
    if (known := wandering(way)) is None:
        return None
    sent = moments(round(SECONDS / 0.001), 0.001)
    alone = replace(wrong.way, loss=None, blackouts=())
    rows = simulated(profile.model, alone, alone, sent, runs=looks * BLOCKS, seed=77, serial=0.0)
    ones = [
        LinkCounts("a>b", len(sent), 0, 0, 0, 0, len(sent), 0, float(row.delay.mean()), float(row.delay.std()))
        for row in rows
    ]
    met = [Wander.of(ones[first : first + BLOCKS], *known) for first in range(0, len(ones), BLOCKS)]
    return sum(not one.inside for one in met) / looks


def _packets(part: str, share: float, alone: bool) -> int:
    """From how many packets on a count tells this share from none and from twice as much.

    Where a packet's seed and number decide (`alone`) it is known which are lost: enough of them must be, in 95 of 100 runs.
    """
    offered, spread = 1000, TOGETHER if part == "skips" else 1.0
    while alone and poisson.ppf(1 - FOUND, offered * share) <= Draws.room:
        offered = round(1.1 * offered)
    if alone:
        return offered
    while not Count("", offered, 0, share, spread).tells:
        offered = round(1.1 * offered)
    return offered


def main() -> int:
    """Print the rows and how many meet their bars."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("profiles", nargs="*")
    parser.add_argument("--looks", type=int, default=100)
    chosen = parser.parse_args()
    files, begun = Files.standard(), time.monotonic()
    rows: list[Found] = []
    for name in chosen.profiles or files.names("profile"):
        profile = load_profile(name, files)
        if profile.auto is None and not profile.only_shaped and profile.unit == "wire":
            for row in of_profile(profile, chosen.looks):
                print(row, flush=True)
                rows.append(row)
    missed = [row for row in rows if not row.met]
    print(f"{len(rows) - len(missed)} of {len(rows)} bars met, {time.monotonic() - begun:.0f} s")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
