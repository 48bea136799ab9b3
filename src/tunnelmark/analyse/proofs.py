"""What the proofs of the links mean for a study: trials on a link that was not what it says are void. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import replace

from tunnelmark.analyse.model import Gate
from tunnelmark.errors import TrialVoid
from tunnelmark.record.results import LinkProof, Results, TrialRow
from tunnelmark.run.outcome import UNPROVED

Place = tuple[int, str, str, str]
"""A session by number, a link by profile and topology, and when it was looked at."""


def reason(proof: LinkProof) -> str:
    """Why trials on this link are void."""
    return f"the link {proof.profile} was not what it says ({proof.when} the trials): {proof.reason}"


def last(results: Results) -> Mapping[Place, LinkProof]:
    """The last look at each link before and after the trials of each session: it decides, for those before it were repeated.

    A look is an instrument that the machine disturbs. Every look meets the same draws of the same seed, so a link that is
    wrong is wrong in each; one that is inside once is what it says, and the other looks were disturbed.
    """
    starts = sorted(session.started for session in results.sessions)
    return {(bisect_right(starts, one.started), one.profile, one.topology, one.when): one for one in results.proofs}


def voided(results: Results) -> Results:
    """The results with those trials void whose link was outside of its tolerance, before or after, in their session."""
    starts = sorted(session.started for session in results.sessions)
    bad = {place[:3]: reason(proof) for place, proof in last(results).items() if proof.verdict == "outside"}

    def judged(row: TrialRow) -> TrialRow:
        found = bad.get((bisect_right(starts, row.started), row.profile, row.topology))
        if found is None or row.outcome != "ok":
            return row
        kind = TrialVoid("", hint="").kind
        return replace(row, outcome="void", reason=kind, message=found, hint=UNPROVED)

    return replace(results, trials=tuple(judged(row) for row in results.trials)) if bad else results


def gate(results: Results) -> Gate | None:
    """Whether the last look at every link was inside of its tolerance; None where nobody looked."""
    if not results.proofs:
        return None
    decisive = list(last(results).values())
    outside = [f"{proof.profile} ({proof.when}): {proof.reason}" for proof in decisive if proof.verdict != "proved"]
    lines = sum(line.ok is not None for proof in decisive for line in proof.lines)
    said = f"{lines} properties in {len(decisive)} looks at the link are inside of their tolerance"
    again = [one for one in results.proofs if one.verdict != "proved" and one not in decisive]
    if not lines:
        said = "its profiles state nothing that probes could meet: the link is as fast as the machine"
    if again:
        said += f", {len(again)} of them only when looked at again (at first: {again[0].reason})"
    return Gate("the link is what it says", not outside, "; ".join(outside) or said)
