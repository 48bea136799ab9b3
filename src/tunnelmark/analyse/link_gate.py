"""Applies the link checks to a study: trials on a link that did not do what its profile says are void. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import replace

from tunnelmark.analyse.link import counts, text
from tunnelmark.analyse.model import Gate
from tunnelmark.errors import TrialVoid
from tunnelmark.model.attempt import UNVERIFIED
from tunnelmark.model.retries import Retries
from tunnelmark.record.link_check import LinkCheck
from tunnelmark.record.results import Results, TrialRow

NAME = "the link does what its profile says"

CheckedLink = tuple[int, str, str, str, int]
"""A check of a link: its session (counted from 1), profile and topology, its `when`, and the index of its round."""


def reason(looks: Sequence[LinkCheck]) -> str:
    """Return why trials are void on a link that these link checks (looks) have not verified."""
    return f"the link {looks[-1].profile} was not what it says ({looks[-1].when} the trials): {standing(looks)}"


def standing(looks: Sequence[LinkCheck]) -> str | None:
    """Return in words the properties that were outside of tolerance in some look and inside in none; None if verified.

    `looks`: the looks at one link, in the order in which they were made; the link is verified if there is no such
    property. The machine can disturb a look. The emulator makes the same random decisions in every look, so what is
    wrong with a link is wrong in each look. If a property is inside of its tolerance once, it is right, and the machine
    disturbed the other look. A look that did not judge a property, or that failed, says nothing about it. If all looks
    failed, the reason of the last one is returned.
    """
    seen = [look for look in looks if look.lines or look.verdict == "verified"]
    if not seen:
        return looks[-1].reason if looks else None
    outside: dict[tuple[str, str], str] = {}
    for look in seen:
        outside |= _outside(look)
    inside = {(line.way, line.name) for look in seen for line in look.lines if line.ok}
    inside |= {_WHOLE for look in seen if look.verdict == "verified"}
    always = [words for key, words in outside.items() if key not in inside]
    last = _outside(seen[-1])
    return seen[-1].reason if always and list(last.values()) == always else "; ".join(always) or None


_WHOLE = ("", "")
"""The key of a look as a whole, for a look that has a verdict but no lines for single properties."""


def _outside(look: LinkCheck) -> Mapping[tuple[str, str], str]:
    """Return the lines of a look that are outside of tolerance, in words, by direction and name."""
    found = {(line.way, line.name): text.outside(line) for line in look.lines if line.ok is False}
    return found or ({_WHOLE: look.reason} if look.verdict == "outside" else {})


class _Sessions:
    """Finds the number of the session in which an attempt or a look was made.

    The journal records it, because sessions may overlap. Where it does not, the time of the start decides.
    """

    def __init__(self, results: Results) -> None:
        ordered = sorted(results.sessions, key=lambda session: session.started)
        self._starts = [session.started for session in ordered]
        numbered = [*enumerate(ordered, start=1)]
        self._attempts = {key: number for number, session in numbered for key in session.attempts}
        self._looks = {key: number for number, session in numbered for key in session.looks}

    def of_row(self, row: TrialRow) -> int:
        return self._attempts.get((row.trial, row.attempt)) or bisect_right(self._starts, row.started)

    def of_look(self, look: LinkCheck) -> int:
        known = self._looks.get((look.profile, look.topology, look.started))
        return known or bisect_right(self._starts, look.started)


def _looks(results: Results) -> Mapping[CheckedLink, list[LinkCheck]]:
    """Group the looks by session, link, time and round; each group is in the order in which they were made."""
    sessions = _Sessions(results)
    found: dict[CheckedLink, list[LinkCheck]] = {}
    for one in results.link_checks:
        place = (sessions.of_look(one), one.profile, one.topology, one.when, one.round)
        found.setdefault(place, []).append(one)
    return found


def _shown_by(results: Results) -> Mapping[str, str]:
    """Return for each topology the one whose link was checked: itself, or a checked one that has the same link.

    A run checks each link only once, even if several topologies have it.
    """
    looked = {one.topology for one in results.link_checks}
    links = {
        topology.name: next((ends for name, ends in topology.links.items() if name not in topology.own), ())
        for topology in results.plan.topologies
    }
    return {
        name: next((other for other, theirs in links.items() if other in looked and theirs == ends), name)
        if name not in looked
        else name
        for name, ends in links.items()
    }


def voided(results: Results) -> Results:
    """Return the results; successful trials on a link that its checks did not verify are made void (see `standing`).

    It does not matter if those checks were made before, between or after the trials of the same session.
    """
    sessions = _Sessions(results)
    bad = {place[:3]: reason(looks) for place, looks in _looks(results).items() if standing(looks) is not None}
    shown_by = _shown_by(results)

    def judged(row: TrialRow) -> TrialRow:
        topology = shown_by.get(row.topology, row.topology)
        found = bad.get((sessions.of_row(row), row.profile, topology))
        if found is None or row.outcome != "ok":
            return row
        kind = TrialVoid("", hint="").kind
        return replace(row, outcome="void", reason=kind, message=found, hint=UNVERIFIED)

    return replace(results, trials=tuple(judged(row) for row in results.trials)) if bad else results


def reopened(results: Results, tries: Mapping[str, Retries]) -> dict[str, Retries]:
    """Return `tries`, with `settled` set to False for each trial whose result a later look has made void.

    `tries`: by the trial's name, how often the trial was attempted and whether an attempt has settled it. A run that is
    resumed may then attempt such a trial again.
    """
    held = {(row.trial, row.attempt) for row in results.trials if row.outcome == "ok" and not row.wanting}
    left = {(row.trial, row.attempt): row.outcome for row in voided(results).trials}
    void = {trial for trial, attempt in held if left[trial, attempt] == "void"}
    void -= {trial for (trial, attempt), outcome in left.items() if (trial, attempt) in held and outcome == "ok"}
    return {name: replace(one, settled=one.settled and name not in void) for name, one in tries.items()}


def gate(results: Results) -> Gate | None:
    """Return the gate on the links: whether each part of each profile has been shown, by its first look or a later one.

    None if there was no look at all. The gate has neither passed nor failed (its `passed` is None) if some part was not
    tested: the look found it inside of its tolerance, but would have found the same on a wrong link (`link.power`).
    """
    if not results.link_checks:
        return None
    series = list(_looks(results).values())
    outside = [f"{looks[-1].profile} ({looks[-1].when}): {found}" for looks in series if (found := standing(looks))]
    shown_by = _shown_by(results)
    counted = [(profile, shown_by.get(topology, topology), part) for profile, topology, part in counts.parts(results)]
    outside += [
        f"{name} ({part.name} {part.way}): {part.why}" for name, _, part in counted if part.verdict == "outside"
    ]
    said = []
    if count := text.shown(results.link_checks, counted):
        said.append(f"{count} properties are shown by {len(results.link_checks)} looks and the trials' own traffic")
    elif lines := sum(line.ok is not None for looks in series for line in looks[-1].lines):
        said.append(f"{lines} lines of {len(series)} looks are inside of their tolerance")
    if untested := text.untested(results.link_checks, counted):
        said.append(f"not tested: {untested}")
    again = [looks[0] for looks in series if len(looks) > 1 and looks[0].verdict != "verified"]
    if again:
        said.append(f"{len(again)} of the links passed only when looked at again (at first: {again[0].reason})")
    if not said and not outside:
        return Gate(NAME, True, "nothing to verify: the profiles set no rate, delay or loss", applies=False)
    passed = False if outside else None if untested else True
    return Gate(NAME, passed, "; ".join(outside or said))
