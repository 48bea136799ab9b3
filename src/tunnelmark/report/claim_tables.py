"""Shows claims as rows of text: what the source printed, what the measured values say, and the verdict."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from tunnelmark.claims.model import OUTCOMES, ClaimOutcome, ClaimsFile, Effect, Judged, Statement
from tunnelmark.report import claim_figures, formatting

SIGNS: dict[ClaimOutcome, str] = {"held": "✓", "did not hold": "✗", "undecided": "?", "not testable": "–"}

DECIDED: tuple[ClaimOutcome, ...] = ("held", "did not hold")

LEGEND = (
    "✓ held: the 95 % interval of each of its effects lies inside of what the claim allows. ✗ did not hold: an interval lies outside of it. "
    "? undecided: neither, at this precision. – not testable here. In the source: as printed there, or computed from what is. "
    "What is allowed is this project's choice, in the file of claims. "
    "“See difference 3” names what the run does otherwise than the source with the figures that decided a claim, by the number in that list: it "
    "may be why the claim held or did not, and was not tested; differences that concern all claims of a workload alike are not named. "
    "Not stationary: the second half of a window had so much more or less than its first, so that a longer trial would say something else. "
    "Of a claim of several comparisons: how many are shown, and of how many the contrary is; τ is Kendall's rank correlation of the order found with the one claimed. "
    "Each claim is judged by itself, so one may hold although the answers above, which take all of a study's comparisons together, leave the same open. "
    "Claims are of means over blocks, with Student's intervals, and of what a study measures twice, such as the bare link, of both trials of a block; tables show medians, or intervals by another method, so their figures may differ, and an interval of few blocks may be far narrower or wider."
)

FIGURES_HEAD = ("compared", "in the source", "allowed", "found here")
"""The columns of `ClaimLine.compared`, `printed`, `allowed` and `found`, for claims that were tested."""


@dataclass(frozen=True, slots=True)
class ClaimLine:
    """A claim as a row of a table.

    `found`: what the measured values say, or why they say nothing. `feature`: the claim is about a feature, which documents
    show. `compared`, `printed` and `allowed` are "" unless
    the claim is one statement on a single effect.
    """

    id: str
    place: str
    says: str
    compared: str
    printed: str
    allowed: str
    found: str
    outcome: ClaimOutcome
    feature: bool = False

    @property
    def sign(self) -> str:
        """The verdict as one character."""
        return SIGNS[self.outcome]


def lines(claims: ClaimsFile, judged: Sequence[Judged]) -> tuple[ClaimLine, ...]:
    """Return a row for each judged claim, in their order."""
    return tuple(_line(claims, each) for each in judged)


def _line(claims: ClaimsFile, judged: Judged) -> ClaimLine:
    claim = judged.claim
    stated = [each for each in claim.statements if isinstance(each, Statement)]
    compared = printed = allowed = ""
    if len(claim.statements) == len(stated) == 1:
        compared, printed, allowed = (
            of(stated[0], claims) for of in (claim_figures.compared, claim_figures.printed, claim_figures.allowed)
        )
    found, feature = _found(claims, judged), claim.feature is not None
    return ClaimLine(claim.id, claim.place, claim.says, compared, printed, allowed, found, judged.outcome, feature)


def summary(judged: Sequence[Judged]) -> str:
    """Count the claims by verdict: `30 claims: 12 held, 3 did not hold, 8 undecided, 7 not testable here`.

    Claims about features are counted apart from those about figures: documents of a VPN's makers show them, and no run
    measures them.
    """
    features = [each for each in judged if each.claim.feature is not None]
    figures = [each for each in judged if each.claim.feature is None]
    if not features or not figures:
        return f"{len(judged)} claims: {_came_out(judged)}"
    return (
        f"{len(judged)} claims: of {len(figures)} about figures, {_came_out(figures)}; of {len(features)} about features, which "
        f"documents show and no run measures, {_came_out(features)}"
    )


def _came_out(judged: Sequence[Judged]) -> str:
    counts = Counter(each.outcome for each in judged)
    parts = [f"{counts[outcome]} {outcome}" for outcome in OUTCOMES if counts[outcome]]
    return ", ".join(parts) + (" here" if counts["not testable"] else "")


@dataclass(frozen=True, slots=True)
class ConclusionLine:
    """A conclusion of the source as a row of a table: the `lines` of the claims that it rests on, and how they fared."""

    says: str
    place: str
    fared: str
    lines: tuple[ClaimLine, ...]


CONCLUSIONS_HEAD = ("what it concludes", "its claims here", "place")
"""The columns of a table of conclusions: `ConclusionLine.says`, `fared` and `place`."""


def conclusions(claims: ClaimsFile, judged: Sequence[Judged]) -> tuple[ConclusionLine, ...]:
    """Return a row for each conclusion of the source of which a claim was judged.

    A study that repeats a part of the source may lack some of the claims behind it; how many is said.
    """
    found = []
    for each in claims.conclusions:
        if own := [one for one in judged if each.has(one.claim)]:
            fared, lacking = _came_out(own), sum(each.has(claim) for claim in claims.claims) - len(own)
            fared += f"; this study has no test of {lacking} more" if lacking else ""
            named = [one for one in own if one.outcome in DECIDED] or own
            fared += _see({number for one in named for number in one.differences})
            found.append(ConclusionLine(each.says, each.place, fared, lines(claims, own)))
    return tuple(found)


def shared_figures(judged: Sequence[Judged]) -> str:
    """Say how many figures the tested claims share, and how often each difference is named; "" if none was tested.

    One odd figure decides several claims, and so may one difference.
    """
    tested = [each for each in judged if each.outcome != "not testable" and each.claim.statements]
    cells = {cell for each in tested for statement in each.claim.statements for cell in statement.cells}
    if not tested:
        return ""
    return (
        f"The {len(tested)} claims that were tested compare {len(cells)} figures of this run in several ways, "
        "so they are not independent of each other: one odd figure can decide several." + _named(judged)
    )


def _named(judged: Sequence[Judged]) -> str:
    """Count the claims that name each difference, to be added to a text; "" if none does."""
    counts = Counter(
        (number, each.outcome) for each in judged if each.outcome in DECIDED for number in each.differences
    )
    numbers = sorted({number for number, _ in counts})
    each = [f"{number} ({counts[number, 'held']}, {counts[number, 'did not hold']})" for number in numbers]
    return f" Differences named, with the claims that held and those that did not: {', '.join(each)}." if each else ""


def by_outcome(claims: ClaimsFile, judged: Sequence[Judged]) -> list[tuple[ClaimOutcome, list[ClaimLine]]]:
    """Return the rows of each verdict, in the order of `OUTCOMES`; a verdict that no claim has is left out."""
    rows = lines(claims, judged)
    return [(each, found) for each in OUTCOMES if (found := [row for row in rows if row.outcome == each])]


def counted(rows: Sequence[ClaimLine]) -> str:
    """Count the claims of one verdict, those about features apart: `118, 69 of them about features`."""
    features = sum(row.feature for row in rows)
    apart = f", {features} of them about features" if 0 < features < len(rows) else ""
    return f"{len(rows)}{apart}"


def reasons(judged: Sequence[Judged]) -> list[tuple[str, int]]:
    """Return each reason why claims could not be tested, with the number of such claims, the most frequent first."""
    return Counter(each.reason for each in judged if each.outcome == "not testable").most_common()


def as_data(claims: ClaimsFile, judged: Sequence[Judged]) -> dict[str, Any]:
    """Return the source, its claims and the verdicts, as data for JSON."""
    return {
        "claims": claims.name,
        "source": asdict(claims.source),
        "study": claims.study,
        "there": claims.there.model_dump(),
        "differences": [asdict(each) for each in claims.differences],
        "conclusions": [
            {"says": each.says, "place": each.place, "claims": [line.id for line in each.lines], "fared": each.fared}
            for each in conclusions(claims, judged)
        ],
        "verdicts": [
            {
                "id": each.claim.id,
                "place": each.claim.place,
                "says": each.claim.says,
                "outcome": each.outcome,
                "feature": each.claim.feature is not None,
                "reason": each.reason,
                "holds_despite": each.despite,
                "kendall_tau": each.tau,
                "source_contradicts_itself": each.claim.contradicted,
                "effects": [_effect(effect, claims) for effect in each.effects],
            }
            for each in judged
        ],
    }


def _effect(effect: Effect, claims: ClaimsFile) -> dict[str, Any]:
    statement = effect.statement
    return {
        "compared": claim_figures.compared(statement, claims),
        "unit": claim_figures.unit(statement, claims).strip(),
        "terms": [{**asdict(cell), "power": power} for cell, power in statement.terms],
        "scale": statement.scale,
        "printed": statement.printed,
        "allowed": [statement.low, statement.high],
        "estimate": effect.estimate,
        "interval": None if effect.low is None else [effect.low, effect.high],
        "count": effect.count,
        "outcome": effect.outcome,
        "blocks_to_decide": effect.blocks,
    }


def _found(claims: ClaimsFile, judged: Judged) -> str:
    contradicted = judged.claim.contradicted
    against = f"; the source itself says otherwise: {contradicted}" if contradicted else ""
    if judged.outcome == "not testable" or judged.claim.feature is not None:
        seen = "".join(f"{claim_figures.found(each, claims)}, not compared: " for each in judged.effects)
        return seen + judged.reason + _see(judged.differences) + against
    parts = []
    if len(judged.effects) == 1:
        parts.append(claim_figures.found(judged.effects[0], claims))
    elif judged.effects:
        counts = Counter(effect.outcome for effect in judged.effects)
        parts.append(f"{counts['held']} of {len(judged.effects)} shown, {counts['did not hold']} contrary")
    if judged.tau is not None:
        tau, low, high = judged.tau
        parts.append(f"τ {tau:.2f}" + (f" [{low:.2f}–{high:.2f}]" if (low, high) != (tau, tau) else ""))
    if judged.outcome == "undecided" and judged.effects:
        parts.append(_needed([effect for effect in judged.effects if effect.outcome == "undecided"]))
    said = ", ".join(parts)
    if judged.outcome == "held" and len(judged.effects) == 1 and _leaves_out_printed(judged.effects[0]):
        said += "; within what is allowed, but the interval leaves out the printed value"
    if judged.despite:
        said += f"; this can only have worked against it: {judged.despite}"
    said += f"; not stationary: {'; '.join(judged.unsteady)}" if judged.unsteady else ""
    return said + _see(judged.differences) + against


def _leaves_out_printed(effect: Effect) -> bool:
    """Return whether an effect's interval leaves out the value that the source printed, of a range with two ends."""
    printed, both = effect.statement.printed, effect.statement.low is not None and effect.statement.high is not None
    if printed is None or not both or effect.low is None or effect.high is None:
        return False
    return not effect.low <= printed <= effect.high


def _see(numbers: Collection[int]) -> str:
    """Name differences by their numbers, to be added to a text: `; see differences 4 and 6`; "" for none."""
    named = formatting.listed([str(number) for number in sorted(numbers)])
    return f"; see {'differences' if len(numbers) > 1 else 'difference'} {named}" if numbers else ""


def _needed(effects: Sequence[Effect]) -> str:
    """Say how many blocks would decide the undecided effects."""
    if any(effect.blocks is None and effect.low is None for effect in effects):
        return "too few values for an interval"
    if any(effect.blocks is None for effect in effects):
        return "so near to a bound that more blocks would hardly decide"
    return f"about {max(effect.blocks or 0 for effect in effects)} blocks would decide"
