"""Computes how long a trial must last on a path, to cover slow start, enough round trips, and all cuts. Pure.

A path is the profiles of the links that traffic crosses, in order (`routes.crossed`); packets cross each link forward.
A workload's options mark which of their durations follow from the path (`fields.OfPath`). Such a duration is computed
if a study does not state it. A stated duration is kept, and reported if it is too short.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from tunnelmark.plan.fields import OfPath
from tunnelmark.plan.impairments import FRAME, Blackout, Bursts, Chance
from tunnelmark.plan.problems import Problems
from tunnelmark.units import Duration

if TYPE_CHECKING:
    from tunnelmark.plan.model import Profile, WorkloadUse

ROUNDS = 20
"""A transfer is measured for at least so many round trips: with fewer, a single loss decides its result."""

LOSSES = 5
"""Where losses bound the window, a transfer is measured for at least so many, on average; a burst counts as one."""

LONG = 4
"""From so many times a workload's default duration on, users get the reason before a run begins."""

_LIMIT = 1000  # packets: netem's default (tc-netem(8))
_SEGMENT = 1448  # bytes of payload of a full TCP segment with timestamps
_INITIAL = 10  # segments of the initial window (RFC 6928)
_BUFFER = 4 * 2**20  # bytes: the kernel's default of tcp_wmem, which limits what is in flight if no rate does
_BETA, _CUBE = 0.7, 0.4  # CUBIC's decrease and its scaling in segments/s^3 (RFC 9438, 4.6 and 4.1.2)
_FRIENDLY = 3 * (1 - _BETA) / (1 + _BETA)  # segments a round trip by which CUBIC grows if Reno would be faster (4.3)
_BALANCED = 0.9  # a window is in balance with losses if the next one finds at least this share of it


@dataclass(frozen=True, slots=True)
class Needed:
    """What a transfer needs on a path, in seconds: warm-up, window, and the longest period of cuts (0 without cuts)."""

    warmup: float
    window: float
    period: float


def round_trip(path: Sequence[Profile]) -> float:
    """Return the path's round-trip time in seconds: the sum of the delays that its links state."""
    return sum(float(link.forward.delay or 0) + float(link.back.delay or 0) for link in path)


def needed(path: Sequence[Profile]) -> Needed:
    """Return the warm-up, window and period of cuts that a transfer on this path needs."""
    trip = round_trip(path)
    periods = [float(each.every) for link in path for each in _cuts(link) if each.every is not None]
    warmup, apart = _settled(path, trip)
    return Needed(warmup, max(ROUNDS * trip, LOSSES * apart), max(periods, default=0.0))


def _settled(path: Sequence[Profile], trip: float) -> tuple[float, float]:
    """Return the seconds until a stream's window is what the path leaves it in the long run, and those between losses.

    Slow start doubles the window each round trip (RFC 5681, 3.1) from ten segments (RFC 6928) up to rate x round trip,
    or until the first of the links' independent losses, of which one comes in 1 / p packets. The loss at a full queue
    leaves 0.7 of the window (RFC 9438, 4.6). If that is less than the path holds, it grows again. Rate and queue are
    those of the slowest link. The seconds between losses are 0 if losses do not keep the window below what the path
    holds. Where they do, slow start ends at a window far above the one that they leave, and each loss takes 0.3 of it.
    """
    slowest = min(path, key=lambda link: float(link.carried or math.inf))
    full = float(slowest.carried) / 8 * trip / _SEGMENT if slowest.carried else _BUFFER / _SEGMENT
    most = full + _queue(slowest) / _SEGMENT
    losses = _Losses.on(path, trip)
    reached = min(most, 1 / losses.share) if losses.share else most
    started = trip * (1 + math.ceil(math.log2(max(min(full, reached) / _INITIAL, 1))))
    down, window = losses.settle(reached, full)
    if down or reached < full:
        return started + down, losses.apart(window)
    if slowest.rate is None or _BETA * most >= full:
        return started, 0.0
    gone = (1 - _BETA) * most
    return started + min(math.cbrt(gone / _CUBE), gone / _FRIENDLY * trip), 0.0


@dataclass(frozen=True, slots=True)
class _Losses:
    """How often a stream loses packets: a `share` of them, and in bursts, one each `every` seconds (0: no bursts)."""

    trip: float  # seconds of a round trip
    share: float
    every: float

    @classmethod
    def on(cls, path: Sequence[Profile], trip: float) -> _Losses:
        losses = [link.forward.loss for link in path if trip]
        share = 1 - math.prod(1 - float(loss.probability) for loss in losses if isinstance(loss, Chance))
        bursts = [float(loss.every) for loss in losses if isinstance(loss, Bursts)]
        return cls(trip, share, min(bursts, default=0.0))

    def apart(self, window: float) -> float:
        """Return the mean seconds between two losses at a window of so many segments; 0 without losses."""
        often = (self.share * window / self.trip if self.share else 0.0) + (1 / self.every if self.every else 0.0)
        return 1 / often if often else 0.0

    def settle(self, window: float, full: float) -> tuple[float, float]:
        """Return the seconds until losses have brought a window down to where they leave it, and that window.

        It is there if the next loss finds at least `_BALANCED` of it again, or of the `full` segments of the path.
        """
        took = 0.0
        while apart := self.apart(window):
            after = _grown(window, self.trip, apart)
            if after >= _BALANCED * min(window, full):
                break
            window, took = after, took + apart
        return took, window


def _grown(window: float, trip: float, seconds: float) -> float:
    """Return the window, in segments, that CUBIC has so many seconds after a loss at `window` segments.

    It grows from 0.7 of it by 0.4 (t - K)^3 + W with K = cbrt(0.3 W / 0.4) (RFC 9438, 4.2), or as Reno would where that
    is faster (4.3).
    """
    cubic = _CUBE * (seconds - math.cbrt((1 - _BETA) * window / _CUBE)) ** 3 + window
    return max(cubic, _BETA * window + _FRIENDLY * seconds / trip)


def _queue(profile: Profile) -> float:
    """Return the bytes that may wait in front of the forward rate; a limit in packets counts as so many full frames."""
    way = profile.forward
    if way.queue is not None:
        return float(way.queue)
    packets = way.queue_packets or (way.limit or _LIMIT if profile.model == "netem" else 0)
    return float(packets * FRAME)


def _cuts(profile: Profile) -> Sequence[Blackout]:
    return (*profile.forward.blackouts, *profile.back.blackouts)


def open_lengths(options: BaseModel) -> dict[str, OfPath]:
    """Return the options of a workload that follow from the path and are not stated, with their defaults, by name."""
    marks = _marks(type(options))
    return {name: mark for name, mark in marks.items() if name not in options.model_fields_set}


def _marks(kind: type[BaseModel]) -> dict[str, OfPath]:
    found = {}
    for name, field in kind.model_fields.items():
        if (mark := next((each for each in field.metadata if isinstance(each, OfPath)), None)) is not None:
            found[name] = replace(mark, default=float(field.default))
    return found


def over(use: WorkloadUse, path: Sequence[Profile]) -> dict[str, Any]:
    """Return the options that must be longer on this path than by default, by name, written as in a study file."""
    if not use.lengths:
        return {}
    asked = needed(path)
    default = {name: mark.default for name, mark in use.lengths.items()}
    stated = {name: Duration.parse(use.options[name]) for name in ("duration", "warmup") if name in use.options}
    made: dict[str, float] = {}
    transfers = any(mark.of == "transfer" for mark in use.lengths.values())
    warmup = float(stated.get("warmup", default.get("warmup", 0.0)))
    if "warmup" in default:
        warmup = made["warmup"] = max(warmup, math.ceil(10 * asked.warmup) / 10)
    if "duration" in default:
        window = max(asked.window if transfers else 0.0, asked.period)
        made["duration"] = float(math.ceil(max(default["duration"], warmup + window, 2 * warmup) - 1e-9))
    elif "warmup" in made:  # at most half of the stated duration
        made["warmup"] = max(min(warmup, float(stated["duration"]) / 2), default["warmup"])
    return {name: f"{value:g} s" for name, value in made.items() if value > default[name]}


def reason(use: WorkloadUse, path: Sequence[Profile]) -> str:
    """Return in words why a trial lasts `LONG` times as long as the workload does by default, or longer; "" if not."""
    made, default = over(use, path), use.lengths.get("duration")
    if "duration" not in made or default is None or float(Duration.parse(made["duration"])) < LONG * default.default:
        return ""
    asked, apart = needed(path), _settled(path, round_trip(path))[1]
    causes = [f"a cut comes every {Duration(asked.period)}"] if asked.period else []
    if default.of == "transfer":
        if asked.warmup >= asked.window:
            causes.append(f"TCP's window takes {Duration(round(asked.warmup, 1))} to settle")
        elif apart:
            causes.append(f"a loss comes every {Duration(round(apart, 1))}")
    return f"{made['duration']}: {' and '.join(causes) or 'round trips are long'}"


def too_short(use: WorkloadUse, path: Sequence[Profile], kind: type[BaseModel]) -> str:
    """Return in words why a stated duration is too short on this path, or "". `kind`: the model of `use`'s options."""
    marks = _marks(kind)
    if "duration" not in marks or "duration" not in use.options:
        return ""
    transfers = marks["duration"].of == "transfer"
    options = {**use.options, **over(use, path)}
    asked, duration = needed(path), float(Duration.parse(options["duration"]))
    warmup = (
        float(Duration.parse(options["warmup"]))
        if "warmup" in options
        else marks["warmup"].default
        if transfers
        else 0.0
    )
    said = []
    if transfers and duration - warmup < asked.window - 1e-9:
        said += _measured(path, duration - warmup)
    if transfers and warmup < asked.warmup:
        until = (
            "slow start and the losses after it, which take"
            if _settled(path, round_trip(path))[1]
            else "slow start, which takes"
        )
        said.append(f"a warm-up of {Duration(warmup)} is within {until} {Duration(round(asked.warmup, 3))}")
    if asked.period > duration:
        share = min((duration + _longest(path)) / asked.period, 1)
        said.append(f"its cut every {Duration(asked.period)} is met in {100 * share:.0f} % of the blocks")
    return "; ".join(said)


def _measured(path: Sequence[Profile], window: float) -> list[str]:
    """Return how many round trips and losses a window of so many seconds holds, if that is too few."""
    trip = round_trip(path)
    apart = _settled(path, trip)[1]
    said = (
        [f"{window / trip:.1f} round trips are measured, {ROUNDS} are needed"] if window < ROUNDS * trip - 1e-9 else []
    )
    if window < LOSSES * apart - 1e-9:
        said.append(f"{window / apart:.1f} losses are met on average, {LOSSES} are needed")
    return said


def _longest(path: Sequence[Profile]) -> float:
    return max((float(each.length) for link in path for each in _cuts(link)), default=0.0)


def meet_cuts(uses: Iterable[WorkloadUse], profiles: Sequence[Profile], blocks: int, problems: Problems) -> None:
    """Note in `problems` each duration that is too short to meet a link's cuts; PlanError if any problem is noted.

    A trial without a cut would measure another link than the profile's. A cut with a stated start must begin before the
    trial ends. If the start is drawn for each block, at least one of all blocks must meet a cut on average.
    """
    for place, use in enumerate(uses):
        for profile in profiles:
            options = {**use.options, **over(use, (profile,))}
            if "duration" not in options:
                continue
            duration = float(Duration.parse(options["duration"]))
            for cut in _cuts(profile):
                if cut.start is not None:
                    met, needs = float(cut.start < duration), float(cut.start + cut.length)
                else:
                    assert cut.every is not None
                    met, needs = min((duration + cut.length) / cut.every, 1) * blocks, float(cut.every) / blocks
                if met < 1:
                    problems.add(
                        ("workload", place, "options", "duration"),
                        f"{Duration(duration)} will not meet the cut of {cut.length} that the profile {profile.name!r} has"
                        + ("" if cut.every is None else f" every {cut.every}")
                        + f" (in {use.name!r})",
                        f"state {math.ceil(needs)} s or more, leave it out, or ask for more blocks",
                    )
                    break
    problems.raise_if_any()
