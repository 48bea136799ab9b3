"""Says what a profile states about a property of a link, and what is wrong with a line, in words. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tunnelmark.analyse.link.statistics import PROPERTIES
from tunnelmark.model.attempt import merged_messages, stem
from tunnelmark.plan.impairments import Bursts, Chance, Direction, FourState, GilbertElliott, Pattern
from tunnelmark.record.link_check import LinkCheck, LinkLine, LinkPart, PartVerdict
from tunnelmark.units import Rate, Size

TITLES = {each.name: each.title for each in PROPERTIES} | {
    "distribution": "delay, distribution",
    "misplaced": "losses at other moments than the bursts and cuts",
    "rate": "rate",
    "queue": "queue",
    "late": "emulator, lateness",
    "unplanned": "emulator, unplanned drops",
}
"""The title of each line of a check in reports."""


def stated(direction: Direction, name: str) -> str:
    """Return what the profile states about a property, as text; "" if it states nothing."""
    jitter, reordering = direction.jitter, direction.reordering
    match name:
        case "delay_mean":
            parts = [str(each) for each in (direction.delay, direction.propagation) if each]
            return " + ".join(parts)
        case "delay_sd":
            return f"{jitter.size} {jitter.distribution}" if jitter else ""
        case "delay_lag1":
            if jitter is None:
                return ""
            return (
                str(jitter.correlation) if jitter.correlation_time is None else f"1/e after {jitter.correlation_time}"
            )
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


def clock_error(seconds: float) -> str:
    """Return the note on why a delay's limits are wider by the clocks' error (seconds); "" if the error is 0."""
    return f"the ends' clocks are known to {1e3 * seconds:g} ms, and the limits are wider by that" if seconds else ""


def _loss(direction: Direction) -> str:
    match direction.loss:
        case Chance():
            return _chance(direction.loss)
        case GilbertElliott(p, r):
            return f"bursts, p {p}, r {r}"
        case Bursts(burst, every):
            return f"bursts of {burst} every {every}"
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
    """Return a figure of a line as text with its unit; "" if it is None."""
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
    """Return as text what is wrong with a line that is outside of its tolerance."""
    title = TITLES[line.name]
    if line.achieved is None:
        return f"{title} {line.way}: {line.note}"
    return f"{title} {line.way}: {value(line, line.achieved)}, not {value(line, line.low)} to {value(line, line.high)}"


def verdict(line: LinkLine) -> PartVerdict:
    """Return the verdict of a single line on the part of the profile that it is about."""
    return "not tested" if line.ok is None else "shown" if line.ok else "outside"


PartOfLink = tuple[str, str, str, str]
"""A part of a profile in one direction on a topology, by names: `profile, topology, target, part`.

A direction is known by the node to which it leads: on a link of several nodes a look's way is `a>c`, and that of counts
is `all>c`.
"""


def untested(checks: Iterable[LinkCheck], counted: Iterable[tuple[str, str, LinkPart]] = ()) -> str:
    """Return as text which parts of profiles were not tested by looks or counts; "" if all were tested.

    A part is in the text if some look or count could not test it and no other look or count has shown it; the text has
    the last reason for each such part, once for profiles whose reasons differ only in numbers. `counted`: what
    `counts.parts` yields: the names of profile and topology, and the judged part; it can be untested only in a
    direction that was looked at, if its link was. Looks of earlier versions have lines and no parts: each line that is
    judged, or for which the profile states something, counts as a part.
    """
    tested: set[PartOfLink] = set()
    reasons: dict[PartOfLink, tuple[str, str]] = {}
    looks = [(check.profile, check.topology, part) for check in checks for part in check.parts or _old(check)]
    looked = {_place(*look)[:3] for look in looks}
    links = {place[:2] for place in looked}
    known = [each for each in counted if _place(*each)[:3] in looked or each[:2] not in links]
    for profile, topology, part in [*looks, *known]:
        place = _place(profile, topology, part)
        if part.verdict == "not tested":
            reasons[place] = part.way, part.why.removeprefix("not judged: ")
        elif part.verdict == "shown":
            tested.add(place)
    said: dict[tuple[str, str], list[str]] = {}
    for place, (way, reason) in reasons.items():
        if place not in tested:
            profile, _, _, name = place
            said.setdefault((profile, reason), []).append(f"{name} {way}")
    alike: dict[tuple[str, str], tuple[list[str], list[str]]] = {}  # profiles and their reasons
    for (profile, reason), names in said.items():
        profiles, reasons_of = alike.setdefault((", ".join(names), stem(reason)), ([], []))
        profiles.append(profile)
        reasons_of.append(reason)
    return "; ".join(
        f"{names} of {', '.join(profiles)} ({merged_messages(why)[0][0]})"
        for (names, _), (profiles, why) in alike.items()
    )


def _place(profile: str, topology: str, part: LinkPart) -> PartOfLink:
    return profile, topology, part.way.partition(">")[2] or part.way, part.name


def _old(check: LinkCheck) -> Iterator[LinkPart]:
    for line in check.lines:
        if line.ok is not None or line.stated:
            yield LinkPart(line.way, TITLES[line.name], verdict(line), line.note)


def shown(checks: Iterable[LinkCheck], counted: Iterable[tuple[str, str, LinkPart]] = ()) -> int:
    """Return how many parts of profiles, in each direction, were shown by looks at their links or by counts."""
    told = [(check.profile, check.topology, part) for check in checks for part in check.parts]
    return len({_place(*each) for each in [*told, *counted] if each[2].verdict == "shown"})
