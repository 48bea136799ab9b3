"""Handles `rate = "auto"`: how it is written, which rates it may become, and how the fixed rate is kept.

With a link that is faster than its machine, trials measure the machine. Only the machine itself shows which rate it
carries. Therefore this rate is measured once before a run and kept with the results. All trials of the run have this
rate, so that every arm and the A/A pair meet the same link.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from pydantic import Field

from tunnelmark.plan.fields import JoinedName, RateText
from tunnelmark.plan.impairments import Direction
from tunnelmark.plan.model import Profile
from tunnelmark.plan.problems import parse
from tunnelmark.plan.study_schema import TomlTable
from tunnelmark.units import Rate, Size

FILE = "fixed.toml"
"""The file with the rate that each `auto` has in a run's results; it is next to the folders of the study's inputs."""

MOST, LEAST = Rate(10_000_000_000), Rate(1_000_000)
"""The highest rate in bit/s of an `auto` without a bound, and the lowest rate that `steps` yields by default."""

SHARE = 0.5
"""The largest rate of an `auto`, as a share of what the link carries without a rate.

The other half is for other work: two ends that send and receive, a VPN on the same cores, and a machine that may be
slower in the next minute. docs/method.md has the measurement.
"""

_QUEUE = 0.01  # seconds at the rate, for a link that states no queue: as in the profile fast-ethernet
_AUTO, _BOUND = "auto", "at most"


@dataclass(frozen=True, slots=True)
class Auto:
    """The value `rate = "auto"`: a rate that this machine carries, of at most `at_most` bit/s."""

    at_most: Rate = MOST

    @classmethod
    def parse(cls, text: object) -> Auto | Rate:
        """Read `"auto"`, `"auto, at most 1 Gbit/s"` or a rate; ValueError says what would be right."""
        if not isinstance(text, str) or not text.strip().startswith(_AUTO):
            return Rate.parse(text)
        rest = text.strip().removeprefix(_AUTO).strip(" ,")
        if not rest:
            return cls()
        if not rest.startswith(_BOUND):
            raise ValueError("should be 'auto', or 'auto, at most 1 Gbit/s'")
        return cls(Rate.parse(rest.removeprefix(_BOUND)))

    def __str__(self) -> str:
        return _AUTO if self.at_most == MOST else f"{_AUTO}, {_BOUND} {self.at_most}"


@dataclass(frozen=True, slots=True)
class Fixed:
    """The rate that was fixed for `auto`, and a sentence that says why."""

    rate: Rate
    because: str


def steps(at_most: float, least: float = LEAST) -> Iterator[Rate]:
    """Yield the rates that are 1, 2 or 5 times a power of ten, the highest first.

    `at_most`, `least`: the bounds in bit/s; a bound that is such a rate is yielded, too.
    """
    power = 10 ** (len(str(int(at_most))) - 1)
    while power >= 1:
        for factor in (5, 2, 1):
            if least <= factor * power <= at_most:
                yield Rate(factor * power)
        power //= 10


class _FixedTable(TomlTable):
    profile: JoinedName = Field(description="the name of a profile")
    rate: RateText = Field(description="a rate such as '200 Mbit/s'")
    because: str = Field(description="a sentence")


class _FixedFile(TomlTable):
    rate: list[_FixedTable] = Field(description="a table [[rate]] for each profile with an `auto`")


def read(text: str, file: str) -> dict[str, Fixed]:
    """Return the rates that `write` has written, by profile; PlanError if the text cannot be used."""
    return {each.profile: Fixed(each.rate, each.because) for each in parse(text, file, _FixedFile).rate}


def write(fixed: Mapping[str, Fixed]) -> str:
    """Return the rates (by profile) as the text of a file that people can read."""
    lines = ['# The rate that `rate = "auto"` means here: measured before the run, and the same for all of it.\n']
    for name, each in fixed.items():
        lines.append(
            f'\n[[rate]]\nprofile = "{name}"\nrate = "{each.rate}"\nbecause = {json.dumps(each.because, ensure_ascii=False)}\n'
        )
    return "".join(lines)


def at(profile: Profile, rate: Rate) -> Profile:
    """Return the profile with no rate above `rate`; a direction without a rate gets `rate`, with a queue of 10 ms."""
    return replace(profile, forward=_way_at(profile.forward, rate), back=_way_at(profile.back, rate), auto=None)


def _way_at(way: Direction, rate: Rate) -> Direction:
    if way.rate is None:
        return replace(way, rate=rate, queue=Size(round(_QUEUE * rate / 8)))
    return replace(way, rate=min(way.rate, rate))
