"""Translates a profile into the emulator's configuration (docs/emulator.md defines it). Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tunnelmark.lab.backends import by_target, shaper_of
from tunnelmark.plan.blackouts import begun_at
from tunnelmark.plan.impairments import (
    Blackout,
    Bursts,
    Chance,
    Direction,
    FourState,
    GilbertElliott,
    Loss,
    Pattern,
    Schedule,
)
from tunnelmark.plan.model import Profile

ALL = "all"
"""The sender in the name of a direction to which all other nodes of a link send, where these are several."""


def configuration(profile: Profile, ports: Mapping[str, str], *, seed: int, link: int) -> dict[str, Any]:
    """Return the emulator's configuration for link number `link`.

    `ports`: the middle node's interface to each node of the link, by node, in the link's order of nodes. There is one
    direction for each destination: all packets to one node share its queue, as on the line to it.
    """
    nodes = list(ports)
    directions = []
    for node, direction in by_target(profile, nodes).items():
        source = next(name for name in nodes if name != node) if len(nodes) == 2 else ALL
        made: dict[str, Any] = {"name": f"{source} to {node}", "to": ports[node], "stages": {}}
        made |= {"model": profile.model, "unit": profile.unit}
        if direction.limit is not None:
            made["limit_packets"] = direction.limit
        if direction.propagation is not None:
            made["propagation_us"] = us(direction.propagation)
        shaped_behind = shaper_of(profile, direction) is not None
        made["stages"] = _stages(direction, rate=not shaped_behind, netem=profile.model == "netem")
        if direction.blackouts:
            windows = (_blackout(each, seed, link, place) for place, each in enumerate(direction.blackouts))
            made["blackouts"] = [window for both in windows for window in both]
        if direction.schedule is not None:
            made["schedule"] = _schedule(direction.schedule, netem=profile.model == "netem")
        directions.append(made)
    return {"seed": seed, "link": link, "directions": directions}


def _stages(direction: Direction, *, rate: bool, netem: bool) -> dict[str, Any]:
    stages: dict[str, Any] = {}
    if direction.loss is not None:
        stages["loss"] = _loss(direction.loss)
    for name in ("duplication", "corruption"):
        chance: Chance | None = getattr(direction, name)
        if chance is not None:
            stages[name] = _chance(chance)
    if rate and (direction.rate is not None or direction.rate_trace is not None):
        stages["rate"] = _rate(direction)
    if direction.delay is not None:
        stages["delay_us"] = us(direction.delay)
    if (jitter := direction.jitter) is not None:
        stages["jitter"] = {"jitter_us": us(jitter.size), "distribution": jitter.distribution}
        if jitter.correlation_time is None:
            stages["jitter"]["correlation"] = float(jitter.correlation)
        else:
            stages["jitter"]["correlation_time_us"] = us(jitter.correlation_time)
        if not netem:
            stages["jitter"]["keep_order"] = jitter.keep_order
    if (reordering := direction.reordering) is not None:
        stages["reordering"] = {
            "probability": float(reordering.probability),
            "correlation": float(reordering.correlation),
            "gap": reordering.gap,
        }
    return stages


def _chance(chance: Chance) -> dict[str, Any]:
    return {"probability": float(chance.probability), "correlation": float(chance.correlation)}


def _loss(loss: Loss) -> dict[str, Any]:
    match loss:
        case Chance():
            return {"kind": "independent", **_chance(loss)}
        case GilbertElliott(p, r, h, k):
            return {"kind": "gilbert-elliott", "p": float(p), "r": float(r), "h": float(h), "k": float(k)}
        case Bursts(burst, every, probability, outside):
            times = {"burst_us": us(burst), "every_us": us(every)}
            return {"kind": "bursts", **times, "probability": float(probability), "outside": float(outside)}
        case FourState():
            names = ("p13", "p31", "p32", "p23", "p14")
            return {"kind": "four-state", **{name: float(getattr(loss, name)) for name in names}}
        case Pattern(pattern, repeat):
            return {"kind": "pattern", "pattern": pattern, "repeat": repeat}


def _rate(direction: Direction) -> dict[str, Any]:
    rate: dict[str, Any] = {}
    if direction.rate is not None:
        rate["rate_bps"] = int(direction.rate)
    if direction.rate_trace is not None:
        rate["trace"] = {"at_ms": list(direction.rate_trace.at_ms), "bytes": direction.rate_trace.bytes}
    if direction.queue is not None:
        rate["queue_bytes"] = int(direction.queue)
    if direction.queue_packets is not None:
        rate["queue_packets"] = direction.queue_packets
    if direction.codel is not None:
        target, interval = direction.codel.target, direction.codel.interval
        rate["codel"] = {"target_us": round(us(target)), "interval_us": round(us(interval))}
    if direction.overhead:
        rate["overhead_bytes"] = direction.overhead
    return rate


def _blackout(blackout: Blackout, seed: int, link: int, place: int) -> list[dict[str, Any]]:
    """Return a blackout as the emulator's windows, in microseconds.

    A periodic blackout without a start begins anywhere in its period. This phase is a hash of seed (which holds the
    block), link and place, so it is the same for all arms of a block and both directions of a link. A window that
    reaches into the next period has also begun before time zero: the end of that one is a window of its own.
    """
    length = round(us(blackout.length))
    if blackout.every is None or blackout.start is not None:
        made = {"start_us": round(us(blackout.start or 0.0)), "length_us": length}
        return [made | ({"every_us": round(us(blackout.every))} if blackout.every is not None else {})]
    every = round(us(blackout.every))
    start = round(us(begun_at(blackout, seed, link, place)))
    begun = [{"start_us": 0, "length_us": start + length - every}] if start + length > every else []
    return [*begun, {"start_us": start, "length_us": length, "every_us": every}]


_NAMES = {"delay": "delay_us"}


def _schedule(schedule: Schedule, *, netem: bool) -> dict[str, Any]:
    steps = []
    for step in schedule.steps:
        made: dict[str, Any] = {"at_us": round(us(step.at)), "set": _stages(step.set, rate=True, netem=netem)}
        if step.clear:
            made["clear"] = [_NAMES.get(name, name) for name in step.clear]
        if step.down is not None:
            made["down"] = step.down
        steps.append(made)
    return {"steps": steps} | ({"repeat_us": round(us(schedule.repeat))} if schedule.repeat is not None else {})


def us(seconds: float) -> float:
    """Convert seconds to microseconds, rounded to a nanosecond, because binary fractions of a second are not round."""
    return round(seconds * 1e6, 3)
