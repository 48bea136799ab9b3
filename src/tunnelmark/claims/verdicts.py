"""The verdicts of a run on the claims that its study repeats."""

from __future__ import annotations

from dataclasses import dataclass

from tunnelmark.analyse.intervals import level_of
from tunnelmark.analyse.model import Analysis
from tunnelmark.claims import reading
from tunnelmark.claims.judging import judge
from tunnelmark.claims.measured import RunValues
from tunnelmark.claims.model import ClaimsFile, Judged
from tunnelmark.claims.reach import within_reach


@dataclass(frozen=True, slots=True)
class Verdicts:
    """The claims of a source, each with what came of it, in the source's order."""

    claims: ClaimsFile
    judged: tuple[Judged, ...]


def of_run(analysis: Analysis, claims: ClaimsFile | None = None) -> Verdicts | None:
    """The verdicts on `claims`; without them, on those of the source that the run's study repeats. None where it repeats no source."""
    claims = claims or reading.of_study(analysis.results.plan.study)
    return None if claims is None else on_claims(analysis, claims)


def on_claims(analysis: Analysis, claims: ClaimsFile) -> Verdicts:
    """The verdicts on these claims; of a study that repeats a part of a source, on those that the run has the cells of."""
    plan = analysis.results.plan
    values, level = RunValues(claims, analysis), level_of(plan.enough)
    asked = claims.claims
    if plan.study in claims.also:
        asked = tuple(claim for claim in within_reach(claims, plan) if claim.statements)
    return Verdicts(claims, tuple(judge(claim, values, level) for claim in asked))
