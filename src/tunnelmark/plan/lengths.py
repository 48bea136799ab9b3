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

BURSTS = 5
"""It is measured for at least so many bursts of loss, on average: with fewer, a single burst decides its result."""

LONG = 4
"""From so many times a workload's default duration on, users get the reason before a run begins."""

_LIMIT = 1000  # packets: netem's default (tc-netem(8))
_SEGMENT = 1448  # bytes of payload of a full TCP segment with timestamps
_INITIAL = 10  # segments of the initial window (RFC 6928)
_BUFFER = 4 * 2**20  # bytes: the kernel's default of tcp_wmem, which limits what is in flight if no rate does
_BETA, _CUBE = 0.7, 0.4  # CUBIC's decrease and its scaling in segments/s^3 (RFC 9438, 4.6 and 4.1.2)
_FRIENDLY = 3 * (1 - _BETA) / (1 + _BETA)  # segments a round trip by which CUBIC grows if Reno would be faster (4.3)
_BALANCED = 0.9  # a window is in balance with bursts if the next one finds at least this share of it


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
    return Needed(_filled(path, trip), max(ROUNDS * trip, BURSTS * _bursts(path)), max(periods, default=0.0))


def _bursts(path: Sequence[Profile]) -> float:
    """Return the mean seconds between bursts of loss on the path, of the link that has most of them; 0 without bursts."""
    return min((float(each.forward.loss.every) for each in path if isinstance(each.forward.loss, Bursts)), default=0.0)


def _filled(path: Sequence[Profile], trip: float) -> float:
    """Return the seconds until a stream's window is what the path leaves it in the long run.

    Slow start doubles the window each round trip (RFC 5681, 3.1) from ten segments (RFC 6928) up to rate x round trip,
    or to what the links' independent loss p allows: 1.054 (trip / p)^(3/4) segments (RFC 9438, 5.1), or Reno's
    sqrt(1.5 / p) if that is more (Mathis et al., CCR 27(3), 1997). The loss at a full queue leaves 0.7 of the window
    (RFC 9438, 4.6). If that is less than the path holds, it grows again. Rate and queue are those of the slowest link.
    Bursts of loss come by time, so slow start may pass them by and end at a window far above the one that they leave
    in the long run: then it takes several bursts to come down (`_until_balanced`).
    """
    slowest = min(path, key=lambda link: float(link.carried or math.inf))
    full = float(slowest.carried) / 8 * trip / _SEGMENT if slowest.carried else _BUFFER / _SEGMENT
    losses = [link.forward.loss for link in path]
    lost = 1 - math.prod(1 - float(loss.probability) for loss in losses if isinstance(loss, Chance))
    bounded = max(1.054 * (trip / lost) ** 0.75, math.sqrt(1.5 / lost)) if lost else math.inf
    started = trip * (1 + math.ceil(math.log2(max(min(full, bounded) / _INITIAL, 1))))
    most = full + _queue(slowest) / _SEGMENT
    if (bursts := _bursts(path)) and (down := _until_balanced(min(most, bounded), full, trip, bursts)):
        return started + down
    if slowest.rate is None or bounded < full or _BETA * most >= full:
        return started
    gone = (1 - _BETA) * most
    return started + min(math.cbrt(gone / _CUBE), gone / _FRIENDLY * trip)


def _until_balanced(window: float, full: float, trip: float, every: float) -> float:
    """Return the seconds until a window of so many segments is in balance with bursts of loss; 0 if it is already.

    A burst leaves 0.7 of the window. Up to the next one, `every` seconds later, it grows as CUBIC does: by
    0.4 (t - K)^3 + W with K = cbrt(0.3 W / 0.4) (RFC 9438, 4.2), or as Reno would where that is faster (4.3), and to
    not more than `full` segments. It is in balance if that brings it back to nearly what it was.
    """
    took = 0.0
    while (after := _grown(window, trip, every)) < _BALANCED * min(window, full):
        window, took = after, took + every
    return took


def _grown(window: float, trip: float, seconds: float) -> float:
    """Return the window, in segments, that CUBIC has so many seconds after a loss at `window` segments."""
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
    asked = needed(path)
    causes = [f"a cut comes every {Duration(asked.period)}"] if asked.period else []
    if default.of == "transfer":
        if asked.warmup >= asked.window:
            causes.append(f"TCP's window takes {Duration(round(asked.warmup, 1))} to settle")
        elif bursts := _bursts(path):
            causes.append(f"a burst of loss comes every {Duration(bursts)}")
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
        until = "slow start and the bursts of loss after it, which take" if _bursts(path) else "slow start, which takes"
        said.append(f"a warm-up of {Duration(warmup)} is within {until} {Duration(round(asked.warmup, 3))}")
    if asked.period > duration:
        share = min((duration + _longest(path)) / asked.period, 1)
        said.append(f"its cut every {Duration(asked.period)} is met in {100 * share:.0f} % of the blocks")
    return "; ".join(said)


def _measured(path: Sequence[Profile], window: float) -> list[str]:
    """Return how many round trips and bursts of loss a window of so many seconds holds, if that is too few."""
    trip, bursts = round_trip(path), _bursts(path)
    said = (
        [f"{window / trip:.1f} round trips are measured, {ROUNDS} are needed"] if window < ROUNDS * trip - 1e-9 else []
    )
    if window < BURSTS * bursts - 1e-9:
        said.append(f"{window / bursts:.1f} bursts of loss are met on average, {BURSTS} are needed")
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
