"""Gives the verdicts of a run on the claims that its study repeats."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tunnelmark.analyse.intervals import level_of
from tunnelmark.analyse.model import Analysis
from tunnelmark.claims import reading
from tunnelmark.claims.differences import behind, deciding
from tunnelmark.claims.judging import judge
from tunnelmark.claims.measured import RunValues
from tunnelmark.claims.model import ClaimsFile, Judged
from tunnelmark.claims.originals import SourceDifference
from tunnelmark.claims.reach import measured


@dataclass(frozen=True, slots=True)
class Verdicts:
    """The claims of a source, each with its verdict, in the source's order.

    `differences`: what the run does otherwise than the source, if its record does not show that.
    """

    claims: ClaimsFile
    judged: tuple[Judged, ...]
    differences: tuple[SourceDifference, ...]


def of_run(analysis: Analysis, claims: ClaimsFile | None = None) -> Verdicts | None:
    """Return the verdicts of a run on `claims`, or by default on those of the source that its study repeats.

    None if `claims` is None and the study repeats no source.
    """
    claims = claims or reading.of_study(analysis.results.plan.study)
    return None if claims is None else on_claims(analysis, claims)


def on_claims(analysis: Analysis, claims: ClaimsFile) -> Verdicts:
    """Return the verdicts on these claims.

    If the study repeats only a part of the source (`ClaimsFile.also`), claims on what it does not measure are left out,
    and so are claims on features.
    """
    plan = analysis.results.plan
    claims = claims.as_in(plan.study)
    values, level = RunValues(claims, analysis), level_of(plan.enough)
    asked = claims.claims
    if plan.study in claims.also:
        asked = tuple(claim for claim in measured(claims, plan) if claim.statements)
    asked = tuple(each if plan.full else replace(each, untestable=each.untestable or each.usual) for each in asked)
    judged = (judge(claim, values, level) for claim in asked)
    found = tuple(_as_decided(each, claims, values) for each in judged)
    return Verdicts(claims, found, values.differences)


def _as_decided(judged: Judged, claims: ClaimsFile, values: RunValues) -> Judged:
    """Return a verdict with the differences from the source and the windows that were not stationary behind it.

    Of a claim that is not testable: with the differences that decide its figures.
    """
    if judged.outcome == "not testable":
        return replace(judged, differences=deciding(judged.reason, values.differences))
    cells = dict.fromkeys(cell for effect in judged.effects for cell in effect.statement.cells)
    moved = tuple(said for cell in cells if (said := values.unsteady(cell)))
    return replace(judged, differences=behind(judged, claims, values.differences), unsteady=moved)
