"""Refuses impossible link settings, with key and allowed values. The emulator has the same rules (docs/emulator.md)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any

from tunnelmark.plan.impairments import (
    Bursts,
    Chance,
    Direction,
    FourState,
    GilbertElliott,
    Jitter,
    LinkModel,
    Loss,
    Pattern,
    Reordering,
    Schedule,
    ScheduleStep,
)
from tunnelmark.plan.problems import Location, Problems
from tunnelmark.units import Duration, Share

LocationOf = Callable[..., Location]
"""Returns where a key of a direction is in the file, for errors: `where("jitter", "size")`."""

STAGES = ("loss", "duplication", "corruption", "rate", "delay", "jitter", "reordering")
"""The stages that a step of a schedule may clear. `rate` clears all keys of rate and queue (`_RATE_KEYS`)."""

_LEAST = {"uniform": -1.0, "pareto": -0.71}
"""The least value of a jitter, as a multiple of its size. With other distributions a delay below zero becomes zero."""

SMOOTH = 10
"""The least correlation time of a jitter that keeps the order, as a multiple of its size.

The delay then nearly always falls by less than the time that passes, so packets hardly ever wait for those before
them. At any packet rate the mean delay is at most 0.004 sizes above the stated one (pareto, the worst;
`bench/links_in_time.py --least`).
"""

_SHORTEST = Duration(100e-6)  # the shortest mean time in or between bursts that the emulator accepts (docs/emulator.md)

_RATE_KEYS = ("rate", "rate_trace", "queue", "queue_packets", "codel", "overhead")


def check(direction: Direction, model: LinkModel, where: LocationOf, problems: Problems) -> None:
    """Note in `problems` every setting of the direction that a link of that `model` cannot have.

    `where`: returns the place of a key in the file, for the problem.
    """
    _stages(direction, model, where, problems)
    if direction.limit is not None and model != "netem":
        problems.add(where("limit"), "belongs to the netem model", "bound the queue with queue or queue_packets")
    for place, blackout in enumerate(direction.blackouts):
        if blackout.every is not None and blackout.every <= blackout.length:
            problems.add(
                where("blackouts", place, "every"),
                f"{blackout.every} leaves no time between blackouts of {blackout.length}",
                "should be longer than length",
            )
        if blackout.start is None and blackout.every is None:
            hint = "state when it starts; without that it needs `every`, and its start is drawn for each block"
            problems.add(where("blackouts", place, "start"), "is missing", hint)
    if direction.schedule is not None:
        _schedule(direction, direction.schedule, model, where, problems)


def _stages(direction: Direction, model: LinkModel, where: LocationOf, problems: Problems) -> None:
    for name, stage in _correlated(direction):
        if stage.correlation >= 1:
            problems.add(
                where(name, "correlation"),
                f"{stage.correlation} cannot be delivered: the first decision would be every decision",
                "should be below 100 %",
            )
    if direction.loss is not None:
        _loss(direction.loss, model, where, problems)
    if direction.jitter is not None:
        _jitter(direction, direction.jitter, model, where, problems)
    if direction.reordering is not None and not direction.delay:
        problems.add(
            where("reordering"),
            "a reordered packet overtakes those that are delayed, and without a delay there are none",
            "state a delay, or leave reordering out",
        )
    _rate(direction, model, where, problems)


def _correlated(direction: Direction) -> Iterator[tuple[str, Chance | Jitter | Reordering]]:
    for name in ("loss", "duplication", "corruption", "jitter", "reordering"):
        stage = getattr(direction, name)
        if isinstance(stage, Chance | Jitter | Reordering):
            yield name, stage


def _loss(loss: Loss, model: LinkModel, where: LocationOf, problems: Problems) -> None:
    if isinstance(loss, FourState):
        for one, other, state in (("p13", "p14", 1), ("p31", "p32", 3)):
            total = getattr(loss, one) + getattr(loss, other)
            if total > 1 + 1e-9:
                problems.add(
                    where("loss", other),
                    f"{one} and {other} both leave state {state} and are {100 * total:g} % together",
                    "should be at most 100 % together",
                )
    if isinstance(loss, Pattern) and model == "netem":
        problems.add(where("loss", "kind"), "netem has no pattern", "use model = 'stated'")
    if isinstance(loss, Bursts):
        if model == "netem":
            problems.add(where("loss", "kind"), "netem has no bursts in time", "use model = 'stated'")
        if loss.burst < _SHORTEST:
            problems.add(
                where("loss", "burst"), f"{loss.burst} is shorter than a burst can be", f"at least {_SHORTEST}"
            )
        if loss.every < loss.burst + _SHORTEST:
            hint = f"`every` is from the start of a burst to the next: {_SHORTEST} longer than `burst` or more"
            problems.add(where("loss", "every"), f"{loss.every} leaves no time between bursts of {loss.burst}", hint)


def _jitter(direction: Direction, jitter: Jitter, model: LinkModel, where: LocationOf, problems: Problems) -> None:
    if model == "netem":
        if jitter.keep_order:
            problems.add(
                where("jitter", "keep_order"),
                "netem's jitter reorders and cannot keep the order",
                "leave keep_order out, or use model = 'stated'",
            )
        return
    if jitter.correlation_time is not None and jitter.keep_order:
        least = Duration(SMOOTH * jitter.size)
        if jitter.correlation_time < least - 1e-12:
            problems.add(
                where("jitter", "correlation_time"),
                f"{jitter.correlation_time} is so short that packets would wait for each other, the more the more there are",
                f"should be {least} or more, {SMOOTH} times the size; per = 'packet' gives each packet its own delay",
            )
    needed = -_LEAST.get(jitter.distribution, 0.0) * jitter.size
    if needed > (direction.delay or 0.0) + 1e-12:
        problems.add(
            where("jitter", "size"),
            f"a jitter of {jitter.size} would need delays below zero",
            f"should come with a delay of {1e3 * needed:g} ms or more; netem's model takes a negative delay for none",
        )


def _rate(direction: Direction, model: LinkModel, where: LocationOf, problems: Problems) -> None:
    if direction.rate is not None and direction.rate_trace is not None:
        problems.add(where("rate_trace"), "a link has one rate, and `rate` is stated too", "state one of them")
    if direction.rate is None and direction.rate_trace is None:
        for key in ("queue", "queue_packets", "codel", "overhead"):
            if getattr(direction, key):
                missing = f"is missing: {key} without a rate does nothing"
                problems.add(where("rate"), missing, f"state a rate or no {key}")
        return
    unbounded = direction.queue is None and direction.queue_packets is None
    if model == "stated" and unbounded:
        problems.add(
            where("queue"),
            "is missing: the queue in front of a rate decides delay and loss, so it must be stated",
            "state the queue of each direction, such as queue = '512 KiB'",
        )
    if model == "netem":
        for key in ("rate_trace", "queue_packets", "codel"):
            if getattr(direction, key) is not None:
                problems.add(where(key), f"netem has no {key}", "use model = 'stated'")
        if direction.rate is not None and direction.rate % 8:
            problems.add(where("rate"), "netem counts whole bytes", "should be a multiple of 8 bit/s")
    if direction.rate_trace is not None:
        at = direction.rate_trace.at_ms
        if any(later < earlier for earlier, later in pairwise(at)) or at[0] < 0 or at[-1] == 0:
            problems.add(
                where("rate_trace", "at_ms"),
                "is not ascending from 0 on to a time above 0",
                "a Mahimahi trace is; it begins again after its last entry",
            )
    if direction.codel is not None and direction.codel.target >= direction.codel.interval:
        problems.add(where("codel", "target"), "is not below interval", "RFC 8289 has 5 ms and 100 ms")


def _schedule(
    direction: Direction, schedule: Schedule, model: LinkModel, where: LocationOf, problems: Problems
) -> None:
    now, before = direction, -1.0
    for place, step in enumerate(schedule.steps):
        at = ("schedule", "steps", place)
        if step.at <= before:
            problems.add(where(*at, "at"), "is not later than the step before", "put the steps in order of time")
        if schedule.repeat is not None and step.at >= schedule.repeat:
            problems.add(where(*at, "at"), "is not before `repeat`, so it never comes", "should be earlier than repeat")
        for number, name in enumerate(step.clear):
            if name not in STAGES:
                known = "known: " + ", ".join(STAGES)
                problems.add(where(*at, "clear", number), f"there is no stage called {name!r}", known)
        before = float(step.at)
        now = after(now, step)

        def inside(*keys: int | str, at: Location = at) -> Location:
            return where(*at, "set", *keys)

        _stages(now, model, inside, problems)


def after(direction: Direction, step: ScheduleStep) -> Direction:
    """Return the direction after one step of its schedule: `set` replaces whole stages, and `clear` removes stages."""
    changes = dict(step.set.stages())
    if any(key in changes for key in _RATE_KEYS):  # all keys of rate and queue are one stage, which is replaced whole
        changes = {key: getattr(step.set, key) for key in _RATE_KEYS} | changes
    for name in step.clear:
        for key in _RATE_KEYS if name == "rate" else (name,):
            if key in STAGES or key in _RATE_KEYS:
                changes[key] = 0 if key == "overhead" else None
    return replace(direction, **changes)


_KINDS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "independent": (("probability",), ("correlation",)),
    "bursts": (("burst", "every"), ("probability", "outside")),
    "gilbert-elliott": (("p",), ("r", "h", "k")),
    "four-state": (("p13",), ("p31", "p32", "p23", "p14")),
    "pattern": (("pattern",), ("repeat",)),
}
"""For each kind of loss: the keys that it needs, and those that it may have."""


def loss_of(kind: str, given: dict[str, Any], where: LocationOf, problems: Problems) -> Loss | None:
    """Return the loss that the keys and values in `given` state.

    `kind`: `independent`, `bursts`, `gilbert-elliott`, `four-state` or `pattern`. If a key does not belong to that
    kind, or a key is missing, the problem is noted, and None is returned. `where`: as in `check`.
    """
    needed, optional = _KINDS[kind]
    for key in given:
        if key not in (*needed, *optional):
            owner = next(name for name, keys in _KINDS.items() if key in (*keys[0], *keys[1]))
            problems.add(where("loss", key), f"belongs to kind = {owner!r}, not {kind!r}", "state the right kind")
            return None
    for key in needed:
        if key not in given:
            problems.add(where("loss", key), "is missing", f"kind = {kind!r} needs it")
            return None
    kinds = {"bursts": Bursts, "gilbert-elliott": GilbertElliott, "four-state": FourState, "pattern": Pattern}
    made: Any = kinds.get(kind, Chance)
    # netem's defaults: r is 1 - p, and p31 is 1 - p13.
    for wanted, known in (("r", "p"), ("p31", "p13")):
        if known in given:
            given = {wanted: Share(1 - given[known])} | given
    loss: Loss = made(**given)
    return loss
