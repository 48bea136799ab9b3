"""Chooses what carries the packets of a profile's links (kernel shapers, the emulator or netem), and describes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from tunnelmark.lab.link_spec import Shaper
from tunnelmark.plan.impairments import Bursts, Chance, Direction, FourState, GilbertElliott, Jitter, Reordering
from tunnelmark.plan.model import Profile
from tunnelmark.units import Rate, Size

Backend = Literal["shaper", "emulator", "netem"]


def backend_of(profile: Profile) -> Backend:
    """Return the profile's `backend`; for `auto`, it is kernel shapers if they suffice, else the emulator."""
    if profile.backend != "auto":
        return profile.backend
    return "shaper" if profile.only_shaped else "emulator"


def by_target(profile: Profile, nodes: Sequence[str]) -> Mapping[str, Direction]:
    """Return, by node of a link, the direction of packets to it: `back` for the first node, `forward` for the
    others.
    """
    return {node: profile.forward if place else profile.back for place, node in enumerate(nodes)}


def shaper_of(profile: Profile, direction: Direction) -> Shaper | None:
    """Return the kernel shaper (`tbf`) of a direction; None if it has none.

    In netem's model a rate with a queue in bytes is a shaper behind netem, as a network card or a `tbf` would be;
    a rate without such a queue is applied by netem itself.
    """
    if direction.rate is None or direction.queue is None:
        return None
    if profile.model != "netem" and backend_of(profile) != "shaper":
        return None
    return Shaper(int(direction.rate), int(direction.queue), overhead=direction.overhead)


def describe(profile: Profile) -> str:
    """Describe in words, for the record, how a profile's link is made."""
    carrier = {
        "shaper": "",
        "emulator": f"tunnelmark-emulator, model {profile.model}, unit {profile.unit}: ",
        "netem": f"netem on the {profile.place}, unit {profile.unit}: ",
    }[backend_of(profile)]
    if profile.card == "offloads":
        carrier = f"cards that split and merge; {carrier}"
    forward, back = (_way(profile, way) for way in (profile.forward, profile.back))
    if profile.auto is not None:
        carrier = f"rate to be measured, at most {profile.auto}: {carrier}"
    if forward == back:
        return carrier + (f"{forward}, each direction" if forward else "veth pairs, no shaper")
    return f"{carrier}forward {forward or 'nothing'}; back {back or 'nothing'}"


def _way(profile: Profile, way: Direction) -> str:
    parts = []
    stages = way.stages()
    if (shaper := shaper_of(profile, way)) is not None:
        overhead = f", overhead {shaper.overhead} B" if shaper.overhead else ""
        parts.append(f"tbf rate {Rate(shaper.rate)}, burst {shaper.burst} B, limit {Size(shaper.queue)}{overhead}")
        stages = {name: value for name, value in stages.items() if name not in ("rate", "queue", "overhead")}
    return ", ".join(
        [*parts, *(f"{name.replace('_', ' ')} {_figure(value)}".strip() for name, value in stages.items())]
    )


def _figure(value: object) -> str:
    match value:
        case Jitter(size, distribution):
            in_time = f" in time, correlation time {time}" if (time := value.correlation_time) is not None else ""
            return f"{size} {distribution}{in_time}{_correlated(value)}"
        case Chance(probability) | Reordering(probability):
            return f"{probability}{_correlated(value)}"
        case GilbertElliott(p, r):
            return f"in bursts (Gilbert-Elliott, p {p}, r {r})"
        case Bursts(burst, every):
            return f"in bursts of {burst} every {every}"
        case FourState():
            return "in bursts (four states)"
        case int() | float():
            return str(value)
    return ""


def _correlated(value: Jitter | Chance | Reordering) -> str:
    return f" correlated {value.correlation}" if value.correlation else ""
