"""What the proofs of the links mean for a study: trials on a link that was not what it says are void. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import replace

from tunnelmark.analyse import linkwords
from tunnelmark.analyse.model import Gate
from tunnelmark.errors import TrialVoid
from tunnelmark.record.results import LinkProof, Results, TrialRow
from tunnelmark.run.outcome import UNPROVED


def reason(proof: LinkProof) -> str:
    """Why trials on this link are void."""
    return f"the link {proof.profile} was not what it says ({proof.when} the trials): {proof.reason}"


def unproved(proofs: tuple[LinkProof, ...]) -> Mapping[tuple[str, str], str]:
    """The profile and topology of each link that was found outside of its tolerance, and what is wrong with it."""
    return {(proof.profile, proof.topology): reason(proof) for proof in proofs if proof.verdict == "outside"}


def voided(results: Results) -> Results:
    """The results with those trials void whose link was outside of its tolerance, before or after, in their session."""
    starts = sorted(session.started for session in results.sessions)
    bad: dict[tuple[int, str, str], str] = {}
    for proof in results.proofs:
        if proof.verdict == "outside":
            bad[bisect_right(starts, proof.started), proof.profile, proof.topology] = reason(proof)

    def judged(row: TrialRow) -> TrialRow:
        found = bad.get((bisect_right(starts, row.started), row.profile, row.topology))
        if found is None or row.outcome != "ok":
            return row
        kind = TrialVoid("", hint="").kind
        return replace(row, outcome="void", reason=kind, message=found, hint=UNPROVED)

    return replace(results, trials=tuple(judged(row) for row in results.trials)) if bad else results


def gate(results: Results) -> Gate | None:
    """Whether every look at every link was inside of its tolerance; None where nobody looked."""
    if not results.proofs:
        return None
    outside = [
        f"{proof.profile} ({proof.when}): {proof.reason}" for proof in results.proofs if proof.verdict != "proved"
    ]
    lines = sum(line.ok is not None for proof in results.proofs for line in proof.lines)
    unseen = linkwords.unseen(results.proofs)
    said = f"{lines} properties in {len(results.proofs)} looks at the link are inside of their tolerance"
    if not lines:
        said = "its profiles state nothing that probes could meet: the link is as fast as the machine"
    if unseen:
        said = f"{said}; not seen: {unseen}" if lines else f"not seen: {unseen}"
    passed = False if outside else None if unseen and not lines else True
    return Gate("the link is what it says", passed, "; ".join(outside) or said)
