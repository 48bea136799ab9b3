"""Sends packets through shipped profiles in virtual time, by the emulator's own decisions (`tunnelmark-emulator --rehearse`)."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tunnelmark.lab import emulator
from tunnelmark.lab.emulator_config import configuration
from tunnelmark.plan.files import PACKAGED, Files
from tunnelmark.plan.impairments import Bursts, Direction
from tunnelmark.plan.load import load_profile
from tunnelmark.plan.model import Profile

FRAME = 1514
RARE = 100  # packets a second
FULL = 1e9  # bit/s where a profile has no rate of its own
FILLED = 0.9  # of the rate, so that pieces with headers of their own fit too and no queue drops


@dataclass(frozen=True, slots=True)
class Sent:
    """A schedule: packets a second, pieces of each, how many seconds."""

    rate: float
    pieces: int
    seconds: float

    def text(self, event: float) -> str:
        """As the emulator takes it; `event` is the length of a loss event in seconds."""
        numbers = (1e9 / self.rate, FRAME, self.pieces, self.rate * self.seconds, 1e6 * event)
        return ",".join(str(round(number)) for number in numbers)


@dataclass(frozen=True, slots=True)
class Met:
    """What a schedule met: mean delay of the delay stage (ms), loss (share of pieces), loss events a second, packets held."""

    delay: float
    loss: float
    events: float
    held: float


def stated() -> Iterator[Profile]:
    """Every shipped profile that is stated and impairs more than the rate."""
    files = Files((PACKAGED,))
    for name in sorted(files.names("profile")):
        profile = load_profile(name, files)
        if profile.model == "stated" and not profile.only_shaped and profile.unit == "wire":
            yield profile


def in_time(way: Direction) -> bool:
    """Whether all that varies in a direction is a process in time."""
    return way.jitter is None or way.jitter.correlation_time is not None


def bursts(way: Direction) -> bool:
    """Whether the losses of a direction come in time."""
    return isinstance(way.loss, Bursts)


def full(way: Direction) -> float:
    """Packets a second at which a direction is full."""
    return FILLED * float(way.rate or FULL) / (8 * FRAME)


def rehearse(profile: Profile, schedules: Sequence[Sent], seed: int, place: int = 1) -> list[Met]:
    """What each schedule meets in one direction (1: forward, 0: back), from the link's zero on."""
    config = configuration(profile, {"a": "a.0", "b": "b.0"}, seed=seed, link=0)
    config["directions"] = [config["directions"][place]]
    way = (profile.back, profile.forward)[place]
    event = 2 * float(way.delay or 0.0)
    words = [word for sent in schedules for word in ("--rehearse", sent.text(event))]
    argv = [str(emulator.program()), "--config", "-", *words]
    said = subprocess.run(argv, input=json.dumps(config) + "\n", capture_output=True, text=True, check=True)
    return [_met(json.loads(line)) for line in said.stdout.splitlines()]


def _met(said: dict[str, Any]) -> Met:
    found = said["realised"]
    return Met(
        found["delay_us"]["mean"] / 1e3,
        (found["dropped"]["loss"] + found["dropped"]["blackout"]) / found["offered"],
        said["loss_events"] / said["seconds"],
        found["held"] / found["offered"],
    )
