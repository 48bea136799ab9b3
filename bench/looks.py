"""What looks at links find: every shipped profile, true and wrong in each of its parts, looked at 100 times in simulation.

    .venv/bin/python bench/looks.py [--looks 100] [PROFILE ...]

A wrong link is to be found in at least 95 of 100 looks of a run, or by the counts of a run's own traffic, for which it
says how many packets it takes; a true link may be refused in at most 1 of 100. Ends with 1 where a bar is not met.
It judges as `analyse.linkpower` does, with draws of its own.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass

from tunnelmark.analyse.linkcounts import Count
from tunnelmark.analyse.linkexpect import expect, serial_of
from tunnelmark.analyse.linkpower import FOUND, Wrong, looks_at, moments, wrongs
from tunnelmark.plan.files import Files
from tunnelmark.plan.load import load_profile
from tunnelmark.plan.model import Profile
from tunnelmark.plan.struck import shares
from tunnelmark.run.probes import enough, pace_of

REFUSED = 0.01  # the share of looks at a true link that may be outside
TRAFFIC = 400_000
"""Packets that a run's own traffic has each way at least: eight blocks of a TCP stream of two seconds at 300 Mbit/s."""


@dataclass(frozen=True, slots=True)
class Found:
    """One row: a link, true or wrong in a part, the share of looks that were outside, and packets by which counts tell it."""

    profile: str
    way: str
    what: str
    share: float
    packets: int | None

    @property
    def met(self) -> bool:
        """Whether its bar is met."""
        if self.what == "true":
            return self.share <= REFUSED
        return self.share >= FOUND or (self.packets is not None and self.packets <= TRAFFIC)

    def __str__(self) -> str:
        counted = "" if self.packets is None else f"counts tell it from {self.packets:,} packets on"
        verdict = "met" if self.met else "NOT MET"
        return f"{self.profile:<22} {self.way:<8} {self.what:<38} {100 * self.share:5.0f} %  {verdict:<8} {counted}"


def of_profile(profile: Profile, looks: int) -> Iterator[Found]:
    """The rows of a profile; a direction that is like the other stands once."""
    pace = pace_of(profile, enough(profile), 0.001)
    sent = moments(pace.count, pace.interval)
    ways = {"forward": profile.forward, "back": profile.back}
    for name, way in ways.items() if profile.forward != profile.back else [("both", profile.forward)]:
        if way.rate_trace is not None:
            continue
        serial = serial_of(profile, way)
        expected = expect(profile.model, way, sent, serial=serial)

        for seed, wrong in enumerate([Wrong("", "true", way), *wrongs(way)], 5000):
            seen = looks_at(wrong.way, profile.model, way, serial, sent, expected, looks, seed)
            share = shares(way, profile.model).get(wrong.part)
            told = share is not None and wrong.words.startswith(("no ", "twice"))
            yield Found(
                profile.name,
                name,
                wrong.words,
                sum(map(bool, seen)) / looks,
                _packets(float(share or 0)) if told else None,
            )


def _packets(share: float) -> int:
    """From how many packets on a count tells this share from none and from twice as much."""
    offered = 1000
    while not Count("", offered, 0, share, 1.0).tells:
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
