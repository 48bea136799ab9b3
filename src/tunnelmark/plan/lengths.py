"""Computes how long a trial must last on a path, to cover slow start, enough round trips, and all cuts. Pure.

A path is the profiles of the links that traffic crosses, in order (`routes.crossed`); packets cross each link forward.
A workload's options mark which of their durations follow from the path (`fields.OfPath`). Such a duration is computed
if a study does not state it. A stated duration is kept, and reported if it is too short.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from tunnelmark.plan.fields import OfPath
from tunnelmark.plan.impairments import Blackout
from tunnelmark.plan.problems import Problems
from tunnelmark.plan.tcp_window import settled
from tunnelmark.units import Duration

if TYPE_CHECKING:
    from tunnelmark.plan.model import Profile, WorkloadUse

ROUNDS = 20
"""A transfer is measured for at least so many round trips: with fewer, a single loss decides its result."""

LOSSES = 5
"""Where losses bound the window, a transfer is measured for at least so many, on average; a burst counts as one."""

LONG = 4
"""From so many times a workload's default duration on, users get the reason before a run begins."""


@dataclass(frozen=True, slots=True)
class Needed:
    """What a transfer needs on a path, in seconds: warm-up, window, and the longest period of cuts (0 without cuts).

    `apart`: the mean seconds between losses if these bound TCP's congestion window, else 0.
    """

    warmup: float
    window: float
    period: float
    apart: float


def round_trip(path: Sequence[Profile]) -> float:
    """Return the path's round-trip time in seconds: the sum of the delays and propagations that its links state."""
    return sum(link.forward.transit + link.back.transit for link in path)


def needed(path: Sequence[Profile]) -> Needed:
    """Return the warm-up, window and period of cuts that a transfer on this path needs."""
    trip = round_trip(path)
    periods = [float(each.every) for link in path for each in _cuts(link) if each.every is not None]
    warmup, apart = settled(path, trip)
    return Needed(warmup, max(ROUNDS * trip, LOSSES * apart), max(periods, default=0.0), apart)


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
        elif asked.apart:
            causes.append(f"a loss comes every {Duration(round(asked.apart, 1))}")
    return f"{made['duration']}: {' and '.join(causes) or 'round trips are long'}"


def too_short(use: WorkloadUse, path: Sequence[Profile], kind: type[BaseModel]) -> str:
    """Return in words why a stated duration is too short on this path, or "". `kind`: the model of `use`'s options."""
    marks = _marks(kind)
    if "duration" not in marks or "duration" not in use.options:
        return ""
    transfers = marks["duration"].of == "transfer"
    options = {**use.options, **over(use, path)}
    asked, duration = needed(path), float(Duration.parse(options["duration"]))
    warmup = _warmup(options, marks)
    said = []
    if transfers and duration - warmup < asked.window - 1e-9:
        said += _measured(duration - warmup, round_trip(path), asked.apart)
    if transfers and warmup < asked.warmup:
        after = (
            "slow start and the losses after it" if asked.apart else "slow start, and CUBIC after the loss that ends it"
        )
        settles = Duration(round(asked.warmup, 1))
        said.append(
            f"a warm-up of {Duration(warmup)} is shorter than the {settles} until TCP's window settles ({after})"
        )
    drawn = [cut for link in path for cut in _cuts(link) if cut.start is None and cut.every is not None]
    rarest = min(drawn, key=lambda cut: _met(cut, warmup, duration), default=None)
    if rarest is not None and rarest.every is not None and rarest.every > duration - warmup:
        share = 100 * _met(rarest, warmup, duration)
        said.append(f"its cut every {Duration(rarest.every)} is met in {share:.0f} % of the blocks")
    return "; ".join(said)


def _warmup(options: Mapping[str, Any], marks: Mapping[str, OfPath]) -> float:
    """Return the seconds of warm-up that the options state, or the default of the workload's mark, or 0."""
    if "warmup" in options:
        return float(Duration.parse(options["warmup"]))
    return marks["warmup"].default if "warmup" in marks else 0.0


def _met(cut: Blackout, begin: float, end: float) -> float:
    """Return the share of the blocks (0 to 1) whose trials meet a cut from `begin` to `end` (seconds), which is measured."""
    if cut.start is not None:
        over = cut.start + cut.length
        sooner = math.ceil((begin - over) / cut.every) * cut.every if cut.every is not None and over < begin else 0.0
        return float(cut.start + sooner < end and over + sooner > begin)
    assert cut.every is not None
    return min((end - begin + cut.length) / cut.every, 1.0)


def _measured(window: float, trip: float, apart: float) -> list[str]:
    """Return how many round trips and losses a window holds, if that is too few; all in seconds."""
    said = []
    if window < ROUNDS * trip - 1e-9:
        said.append(f"{window / trip:.1f} round trips are measured, {ROUNDS} are needed")
    if window < LOSSES * apart - 1e-9:
        said.append(f"{window / apart:.1f} losses are met on average, {LOSSES} are needed")
    return said


def meet_cuts(measured: Iterable[tuple[int, WorkloadUse, Profile]], blocks: int, problems: Problems) -> None:
    """Note in `problems` each duration that is too short to meet a link's cuts; PlanError if any problem is noted.

    `measured`: each use with each profile over which it is measured, and the use's place in the file.
    A trial without a cut would measure another link than the profile's, and what happens in the warm-up is not measured.
    A cut with a stated start must be over no sooner than the warm-up, and begin before the trial ends. If the start is
    drawn for each block, at least one of all blocks must meet a cut on average.
    """
    for place, use, profile in measured:
        options = {**use.options, **over(use, (profile,))}
        if "duration" not in options:
            continue
        duration = float(Duration.parse(options["duration"]))
        warmup = _warmup(options, use.lengths)
        for cut in _cuts(profile):
            # A drawn start is another one in each block; a stated one is met in all blocks or in none.
            needs = warmup + (cut.every or 0) / blocks if cut.start is None else cut.start + cut.length
            if _met(cut, warmup, duration) * blocks < 1:
                problems.add(
                    ("workload", place, "options", "duration"),
                    f"{Duration(duration)} will not meet the cut of {cut.length} that the profile {profile.name!r} has"
                    + ("" if cut.every is None else f" every {cut.every}")
                    + f" (in {use.name!r})",
                    f"state {math.ceil(needs)} s or more, leave it out, or ask for more blocks",
                )
                break
    problems.raise_if_any()
