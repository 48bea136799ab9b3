"""Says which arms a ranking puts in front, whether they tie, and which of them are shown to be ahead of the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tunnelmark.analyse.model import Analysis, MetricCell, Ranking
from tunnelmark.report import formatting, queries

NAMED = 3
"""If more arms than this share the first rank, so many are named, by their estimates, and the last; if all of them equal
direct, ranges of their estimates and intervals are given."""


@dataclass(frozen=True, slots=True)
class InFront:
    """The arms of a ranking in groups, each in the order of the ranking.

    `arms`: those in front, which no other arm is shown to beat. `behind`: all others. `ahead`: those in front that are
    shown to be ahead of each of `behind`; () if nothing is behind. `level`: those in front that are not shown to differ
    from any of `behind`. `tie`: `tie`, or `tie within 5 %`, if those in front are shown to be equal; "" if they are
    not, for that no difference is shown does not say that there is none.
    """

    arms: tuple[str, ...]
    behind: tuple[str, ...]
    ahead: tuple[str, ...]
    level: tuple[str, ...]
    tie: str


def of_ranking(analysis: Analysis, ranking: Ranking) -> InFront:
    """Return the groups of a ranking's arms."""
    front = [place.arm for place in ranking.places if place.first == 1]
    behind = [place.arm for place in ranking.places if place.first != 1]
    cells = [analysis.cell(arm, ranking.setting, ranking.metric) for arm in front]
    pairs = queries.pairs(analysis, ranking.setting, cells[0].metric)
    # An arm in front loses to none, so it is ahead of each arm from which it differs.
    apart = {arms for arms, one in pairs.items() if one.differs}
    ahead = [arm for arm in front if behind and all((arm, other) in apart for other in behind)]
    level = [arm for arm in front if not any((arm, other) in apart for other in behind)]
    tie = ""
    if all(cell.verdict == "equal" for cell in cells):
        tie = "tie"
    elif all(one.equal for arms, one in pairs.items() if set(arms) <= set(front)):
        tie = f"tie within {formatting.margin(cells[0].metric)}{of_means(cells)}"
    return InFront(tuple(front), tuple(behind), tuple(ahead), tuple(level), tie)


def of_means(cells: Sequence[MetricCell]) -> str:
    """Return ` in the mean`, where an effect of these cells is given as a median, whose interval may leave the margin; else ""."""
    return " in the mean" if any(cell.against_direct and cell.against_direct.doubt for cell in cells) else ""


def in_words(found: InFront, ranking: Ranking, best: str) -> tuple[str, str]:
    """Return the arms to be named first ("" for all of several), and how they compare, up to the colon before effects.

    `best`: the arm with the most favourable estimate.
    """
    front, behind, named = found.arms, found.behind, formatting.listed(found.arms)
    if len(ranking.places) == 1:
        return named, ": "
    if len(front) == 1:
        count = len(ranking.places) - ranking.places[0].last
        return named, f" is best, ahead of {behind[0] if len(behind) == 1 else _others(count, len(behind))}: "
    if not behind:
        if found.tie:
            return "", f"{both_or_all(len(front))} {found.tie}: "
        return "", f"{'neither' if len(front) == 2 else f'none of the {len(front)}'} is shown to be ahead: "
    beaten = f"the {len(behind)} others" if len(behind) > NAMED else formatting.listed(behind)
    ahead, level = found.ahead, found.level
    if parted(found) and best not in ahead:  # its blocks scatter too much to show what its mean says
        none = "neither of the two in front" if len(front) == 2 else f"none of the {len(front)} in front"
        other = "the other" if len(front) == 2 else "another"
        said = (
            f"{none} is shown to be ahead of {other}, and {formatting.listed(ahead)} {_are(ahead)} ahead of {beaten}: "
        )
        return "", said
    if parted(found):
        unlike = f"{formatting.listed(level)}, which {_are(level)} not shown to differ from any other"
        return formatting.listed(ahead), f" {_are(ahead)} ahead of {beaten}, and not shown to differ from {unlike}: "
    every = "both" if len(front) == 2 else "each of them"
    by = every if len(ahead) == len(front) else formatting.listed(ahead)
    verb = found.tie or "are not shown to differ"
    return named, f" {verb}, and {beaten} {_are(behind)} beaten{f' by {by}' if by else ''}: "


def at_a_glance(found: InFront, ranking: Ranking, best: str, effect: str) -> str:
    """Return in a few words which arm has the best estimate, its effect, and of how many arms it is shown to be ahead.

    `best`: the arm's name. That all arms are shown to be equal is all that is said, if they are.
    """
    ranked = len(ranking.places)
    if found.tie and not found.behind and ranked > 1:
        return f"{both_or_all(ranked)} tie"
    beaten = next(ranked - place.last for place in ranking.places if place.arm == best)
    if ranked == 1:
        return f"{best} {effect}"
    if not beaten:
        return f"{best} {effect}, not shown to be ahead"
    return f"{best} {effect}, ahead of {'the other' if ranked == 2 else _others(beaten, ranked - 1)}"


def parted(found: InFront) -> bool:
    """Return whether those in front are two groups: those ahead of all others, and those level with all others."""
    return bool(found.ahead and found.level and not found.tie) and len(found.ahead) + len(found.level) == len(
        found.arms
    )


def both_or_all(count: int) -> str:
    """Return the word for all of so many arms, of two or more: `both`, `all 5`."""
    return "both" if count == 2 else f"all {count}"


def _others(count: int, of: int) -> str:
    return f"all {of} others" if count == of else f"{count} of {of} others"


def _are(arms: Sequence[str]) -> str:
    return "is" if len(arms) == 1 else "are"
