"""Says what a profile states about a property of a link, and what is wrong with a line, in words. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from tunnelmark.analyse.linkstats import PROPERTIES
from tunnelmark.plan.impairments import Chance, Direction, FourState, GilbertElliott, Pattern
from tunnelmark.record.results import LinkLine, LinkProof
from tunnelmark.units import Rate, Size

TITLES = {each.name: each.title for each in PROPERTIES} | {
    "distribution": "delay, distribution",
    "rate": "rate",
    "queue": "queue",
    "late": "emulator, lateness",
    "unplanned": "emulator, unplanned drops",
}
"""What each line of a proof is called."""


def stated(direction: Direction, name: str) -> str:
    """What the profile states about a property, or nothing."""
    jitter, reordering = direction.jitter, direction.reordering
    match name:
        case "delay_mean":
            return str(direction.delay) if direction.delay else ""
        case "delay_sd":
            return f"{jitter.size} {jitter.distribution}" if jitter else ""
        case "delay_lag1":
            return str(jitter.correlation) if jitter else ""
        case "distribution":
            return jitter.distribution if jitter else ""
        case "loss":
            return _loss(direction)
        case "duplicated":
            return _chance(direction.duplication)
        case "corrupted":
            return _chance(direction.corruption)
        case "skipped":
            return str(reordering.probability) if reordering else ""
    return ""


def _loss(direction: Direction) -> str:
    match direction.loss:
        case Chance():
            return _chance(direction.loss)
        case GilbertElliott(p, r):
            return f"bursts, p {p}, r {r}"
        case FourState():
            return "bursts, four states"
        case Pattern(pattern):
            return f"pattern of {len(pattern)}"
    return ""


def _chance(chance: Chance | None) -> str:
    if chance is None:
        return ""
    return f"{chance.probability}, correlated {chance.correlation}" if chance.correlation else str(chance.probability)


def value(line: LinkLine, number: float | None) -> str:
    """A figure of a line with its unit."""
    if number is None:
        return ""
    if line.unit == "bit/s":
        return str(Rate(round(number)))
    if line.unit == "B":
        return str(Size(round(number)))
    if line.unit in ("ms", "%"):
        return f"{number:.3f} {line.unit}"
    return f"{number:.3f} {line.unit}".strip() if line.unit != "us" else f"{number:.0f} us"


def outside(line: LinkLine) -> str:
    """What is wrong with a line that is outside of its tolerance."""
    title = TITLES[line.name]
    if line.achieved is None:
        return f"{title} {line.way}: {line.note}"
    return f"{title} {line.way}: {value(line, line.achieved)}, not {value(line, line.low)} to {value(line, line.high)}"


def unseen(proofs: Iterable[LinkProof]) -> str:
    """What profiles state and no look at their links could judge, with the reason of the last look; nothing if all was seen."""
    shown: set[tuple[str, str, str, str]] = set()
    reasons: dict[tuple[str, str, str, str], str] = {}
    for proof in proofs:
        for line in proof.lines:
            key = proof.profile, proof.topology, line.way, line.name
            if line.ok is not None:
                shown.add(key)
            elif line.stated:
                reasons[key] = line.note.removeprefix("not judged: ")
    said: dict[tuple[str, str], list[str]] = {}
    for key, reason in reasons.items():
        if key not in shown:
            profile, _, way, name = key
            said.setdefault((profile, reason), []).append(f"{TITLES[name]} {way}")
    return "; ".join(f"{', '.join(names)} of {profile} ({reason})" for (profile, reason), names in said.items())
