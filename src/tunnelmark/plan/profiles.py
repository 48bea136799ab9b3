"""Makes profiles from their files: joins several into one, and refuses keys that conflict and impossible links.

`wifi-good+gigabit` has everything that the two files state. They may not state different values of one key.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tunnelmark.errors import PlanError
from tunnelmark.plan.auto import Auto, Fixed
from tunnelmark.plan.impairments import (
    NEVER,
    Blackout,
    Chance,
    Codel,
    Direction,
    Jitter,
    LinkModel,
    Reordering,
    Schedule,
    ScheduleStep,
    Trace,
)
from tunnelmark.plan.link_rules import LocationOf, check, loss_of
from tunnelmark.plan.link_schema import (
    DirectionTable,
    JitterTable,
    LossTable,
    ProfileFile,
    ProfileTable,
    ScheduleTable,
    StagesTable,
)
from tunnelmark.plan.model import CARD, Profile
from tunnelmark.plan.problems import Location, Problems, dotted, parse
from tunnelmark.units import Duration, Rate

JOIN = "+"
"""Joins the names of profiles into the name of one: `wifi-good+gigabit`."""

WANDERING = 20
"""The correlation time of a jitter that states none: its size times this, twice the least (`link_rules.SMOOTH`)."""

_WHOLE = ("model", "unit", "backend", "place", "card")
_WORDS = {"forward", "back", "title", "source", *_WHOLE}


@dataclass(frozen=True, slots=True)
class Source:
    """A profile file: the name of the profile, the name of the file in errors, and its text."""

    name: str
    file: str
    text: str


@dataclass(frozen=True, slots=True)
class _Stated:
    """A value, the file that states it, and the key in that file."""

    value: Any
    part: Source
    key: Location


def parse_profile(sources: Sequence[Source], fixed: Fixed | None = None) -> Profile:
    """Return the profile that the files state together.

    `fixed`: the rate for each `rate = "auto"`. None: the highest allowed rate is taken, and `Profile.auto` is set.
    PlanError names the keys with impossible values, or one that has different values in two places.
    """
    tables = [(source, parse(source.text, source.file, ProfileFile).profile) for source in sources]
    whole: dict[str, _Stated] = {}
    ways: dict[str, dict[str, _Stated]] = {"forward": {}, "back": {}}
    for source, table in tables:
        for name in _WHOLE:
            if (value := getattr(table, name)) is not None:
                _state(whole, name, _Stated(value, source, ("profile", name)))
        for way, stated in ways.items():
            for name, found in _stages(table, way, source).items():
                _state(stated, name, found)
    name = JOIN.join(source.name for source in sources)
    problems = Problems(sources[0].file if len(sources) == 1 else name)
    given = {key: stated.value for key, stated in whole.items()}
    given.setdefault("card", "none" if given.get("backend") == "netem" or given.get("unit") == "gso" else CARD)
    model: LinkModel = given.get("model", "stated")
    asked = _autos(ways)
    _fix(ways, fixed)
    cited = [table.source for _, table in tables]
    if asked and fixed is not None:
        cited.append(f"rate {fixed.rate}: {fixed.because}")
    profile = Profile(
        name,
        "; ".join(table.title for _, table in tables),
        "; ".join(cited),
        _direction(ways["forward"], model, problems),
        _direction(ways["back"], model, problems),
        auto=Rate(max(asked)) if asked and fixed is None else None,
        **given,
    )
    _backend(profile, problems)
    problems.raise_if_any()
    return profile


def _autos(ways: Mapping[str, dict[str, _Stated]]) -> list[Rate]:
    """Return the highest allowed rate of each direction whose rate is `auto`."""
    stated = [way["rate"].value for way in ways.values() if "rate" in way]
    return [value.at_most for value in stated if isinstance(value, Auto)]


def _fix(ways: Mapping[str, dict[str, _Stated]], fixed: Fixed | None) -> None:
    """Replace each `auto` by the fixed rate, at most its bound; if none is fixed, by the bound, to check the rest."""
    for way in ways.values():
        stated = way.get("rate")
        if stated is not None and isinstance(stated.value, Auto):
            bound = stated.value.at_most
            way["rate"] = replace(stated, value=Rate(bound if fixed is None else min(fixed.rate, bound)))


def _stages(table: ProfileTable, way: str, source: Source) -> dict[str, _Stated]:
    """Return what a file states for one direction: for both directions, or for this one alone."""
    found = {name: _Stated(value, source, ("profile", name)) for name, value in _given(table).items()}
    own: DirectionTable | None = getattr(table, way)
    for name, value in _given(own).items() if own else ():
        _state(found, name, _Stated(value, source, ("profile", way, name)))
    return found


def _given(table: StagesTable) -> dict[str, Any]:
    names = (name for name in type(table).model_fields if name not in _WORDS)
    return {name: getattr(table, name) for name in names if getattr(table, name) is not None}


def _state(stated: dict[str, _Stated], name: str, new: _Stated) -> None:
    """Add a stated value; PlanError if there is a different one already."""
    old = stated.setdefault(name, new)
    if old.value == new.value:
        return
    if old.part is new.part:
        raise PlanError(
            new.part.file,
            dotted(new.key),
            f"{dotted(old.key)} states it too, for both directions",
            hint="state it once for both, or once in each direction",
        )
    raise PlanError(
        new.part.file,
        dotted(new.key),
        f"{old.part.name!r} states another {name}",
        hint=f"join profiles that state different keys, or write one profile with the {name} that you want",
    )


def _direction(stated: Mapping[str, _Stated], model: LinkModel, problems: Problems) -> Direction:
    def where(*keys: int | str) -> Location:
        first = stated.get(str(keys[0]))
        return (*(first.key if first else ("profile", keys[0])), *keys[1:])

    values = {name: found.value for name, found in stated.items()}
    made = _converted(values, model, where, problems)
    if (schedule := values.get("schedule")) is not None:
        made["schedule"] = _schedule(schedule, model, where, problems)
    if (blackouts := values.get("blackouts")) is not None:
        made["blackouts"] = tuple(Blackout(each.start, each.length, each.every) for each in blackouts)
    direction = Direction(**made)
    check(direction, model, where, problems)
    return direction


def _converted(values: Mapping[str, Any], model: LinkModel, where: LocationOf, problems: Problems) -> dict[str, Any]:
    """Return the stages as frozen data. An impossible loss is None, with the problem noted."""
    made: dict[str, Any] = {}
    for name, value in values.items():
        match name:
            case "jitter":
                made[name] = _jitter(value, model, where, problems)
            case "loss":
                made[name] = _loss(value, where, problems)
            case "duplication" | "corruption":
                made[name] = Chance(value.probability, value.correlation)
            case "reordering":
                made[name] = Reordering(value.probability, value.correlation, value.gap)
            case "codel":
                stated = {key: getattr(value, key) for key in ("target", "interval") if getattr(value, key) is not None}
                made[name] = Codel(**stated)
            case "rate_trace":
                made[name] = Trace(tuple(value.at_ms), value.bytes)
            case "blackouts" | "schedule":
                continue
            case _:
                made[name] = value
    return made


def _jitter(table: JitterTable, model: LinkModel, where: LocationOf, problems: Problems) -> Jitter:
    """Return the jitter: a process in time, unless something makes it one of packets.

    That is `per = "packet"`, netem's model or a `correlation`; or `keep_order = false` if nothing makes it one in time.
    """
    kept = table.keep_order if table.keep_order is not None else model == "stated"
    of_packets = {"model = 'netem'": model == "netem", "correlation": table.correlation is not None}
    said = next(
        (word for word, stated in of_packets.items() if stated), "per = 'packet'" if table.per == "packet" else ""
    )
    in_time = table.per == "time" or table.correlation_time is not None
    if in_time and said:
        key = "per" if table.correlation_time is None else "correlation_time"
        hint = "state one of them: `correlation` is that with the packet before, `correlation_time` is in time"
        problems.add(where("jitter", key), f"makes the jitter a process in time, and {said} one of packets", hint)
    elif said or (not kept and not in_time):
        return Jitter(table.size, table.distribution, table.correlation or NEVER, kept)
    time = table.correlation_time or Duration(WANDERING * table.size)
    return Jitter(table.size, table.distribution, NEVER, kept, time)


def _loss(table: LossTable, where: LocationOf, problems: Problems) -> Any:
    given = {name: value for name in type(table).model_fields if (value := getattr(table, name)) is not None}
    del given["kind"]
    return loss_of(table.kind, given, where, problems)


def _schedule(table: ScheduleTable, model: LinkModel, where: LocationOf, problems: Problems) -> Schedule:
    steps = []
    for place, step in enumerate(table.steps):

        def inside(*keys: int | str, place: int = place) -> Location:
            return where("schedule", "steps", place, "set", *keys)

        given = _given(step.set) if step.set else {}
        changed = Direction(**_converted(given, model, inside, problems))
        steps.append(ScheduleStep(step.at, changed, tuple(step.clear), step.down))
    return Schedule(tuple(steps), table.repeat)


def _backend(profile: Profile, problems: Problems) -> None:
    """Note what the stated backend cannot do."""
    directions = (profile.forward, profile.back)
    if profile.backend == "shaper" and not profile.only_shaped:
        more = sorted({name for way in directions for name in way.stages()} - {"rate", "queue", "overhead"})
        what = ", ".join(more) or "unit = 'gso', or netem's own rate"
        problems.add(
            ("profile", "backend"), f"a kernel shaper has a rate and a queue in bytes, not {what}", "use 'auto'"
        )
    if profile.backend == "netem":
        if profile.model != "netem":
            problems.add(
                ("profile", "model"),
                "netem can deliver only its own model",
                "state model = 'netem', or backend = 'auto' for what is stated",
            )
        for name in ("blackouts", "schedule"):
            if any(getattr(way, name) for way in directions):
                problems.add(("profile", name), f"netem has no {name}", "use backend = 'auto'")
    if profile.card == "offloads" and profile.backend == "netem":
        problems.add(
            ("profile", "card"),
            "netem decides on what the node hands over, and behind a card with offloads that is up to 64 KiB",
            "state backend = 'auto', whose emulator decides on wire packets, or card = 'none'",
        )
    if profile.card == "offloads" and profile.unit == "gso":
        problems.add(
            ("profile", "card"),
            "with unit = 'gso' what the sender hands over arrives whole, so no card splits or merges it",
            "leave out one of them",
        )
    if profile.place == "sender" and profile.backend != "netem":
        problems.add(
            ("profile", "place"),
            "only netem can be placed on the sender",
            "state backend = 'netem', or unit = 'gso' for its decisions on the middle node",
        )
