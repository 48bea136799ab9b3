"""Decides whether a run has enough blocks, so that the intervals of its headline ratios are as narrow as asked. Pure.

The rule is a sequential one in batches, after Y. S. Chow and H. Robbins, "On the Asymptotic Theory of Fixed-Width
Sequential Confidence Intervals for the Mean", Annals of Mathematical Statistics 36(2), 1965, pp. 457-462, and F. J.
Anscombe, "Large-Sample Theory of Sequential Estimation", Proc. Cambridge Philosophical Society 48, 1952, pp. 600-607:
stop once the interval is narrow enough. With few blocks such a rule stops too early when the spread looks too small by
chance. Three things prevent that: a minimum number of blocks before the first decision, decisions only every
`plan.enough.BATCH` blocks, and a wider interval (`intervals.LEVEL_UNTIL_PRECISE`), whose coverage is simulated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, exp, inf, isfinite, log, sqrt
from typing import Literal

from tunnelmark.analyse import intervals
from tunnelmark.analyse.anchor_multiples import headlines
from tunnelmark.analyse.arms import contenders
from tunnelmark.analyse.model import RELIABLE, Analysis, Interval, MetricCell, Scenario
from tunnelmark.plan.enough import BATCH, Enough
from tunnelmark.record.results import BlockDecision, MetricInfo, Results

PrecisionState = Literal["precise", "open", "set aside"]

BEYOND = 0.05
"""The chance that a ratio is set aside as one that needs more blocks than allowed, although it does not need them."""


@dataclass(frozen=True, slots=True)
class RatioWidth:
    """The precision of a headline ratio after `blocks` blocks that have both arms.

    `half`: half of the interval's width as a share (0.05: 5 %); None if there is no interval. `needed`: the total
    number of blocks with which the ratio should be as precise as asked, estimated from its spread so far; None if
    unknown. `why`: why the run does not wait for this ratio, if its state is "set aside"; else "".
    """

    arm: str
    against: str
    setting: Scenario
    metric: MetricInfo
    blocks: int
    half: float | None
    state: PrecisionState
    needed: int | None = None
    why: str = ""


def width(effects: Sequence[float], found: Interval | None, level: float) -> float | None:
    """Return half the width of a ratio's interval on the log scale; None without an interval.

    It is the half-width of the reported interval (`found`), or of Student's interval if that is wider. `effects`: the
    log ratio of each block.
    """
    own = intervals.student(effects, level) if all(map(isfinite, effects)) else None
    if own is None or found is None or found.low <= 0:
        return None
    return max(own[1] - own[0], log(found.high) - log(found.low)) / 2


def needed(blocks: int, half: float, wanted: float, level: float) -> int:
    """Return how many blocks are needed until half of the interval's width is at most `wanted`.

    `half`: half of the interval's width with `blocks` blocks; `half` and `wanted` are on the log scale. `level`: the
    interval's chance of error. The spread is taken to stay as it is, while Student's factor falls.
    """
    spread = half * sqrt(blocks) / intervals.t_quantile(blocks - 1, level)
    count = max(ceil((intervals.t_quantile(inf, level) * spread / wanted) ** 2), 2)  # as if the spread were known
    while intervals.t_quantile(count - 1, level) * spread / sqrt(count) > wanted:
        count += 1
    return count


def least_needed(blocks: int, half: float, wanted: float, level: float) -> int:
    """Return the fewest blocks that may be enough, because the true spread may be smaller than the one seen so far.

    The smallest plausible spread is the end of a one-sided chi-square interval of a variance. The parameters are those
    of `needed`.
    """
    from scipy.special import gammaincinv

    freedom = blocks - 1
    largest = 2 * float(gammaincinv(freedom / 2, 1 - BEYOND))
    return needed(blocks, half * sqrt(freedom / largest), wanted, level)


def widths(analysis: Analysis, enough: Enough) -> tuple[RatioWidth, ...]:
    """Return the width of each arm's headline ratio by each primary metric compared by ratio, in the plan's order.

    The headline ratio is to the anchor if the processor bounds both, else to direct. Direct, the anchor and the second
    names of arms (A/A) are left out: they are references, for whose precision a run does not wait.
    """
    plan = analysis.results.plan
    asked = {arm.name for arm in contenders(plan, analysis.reference)}
    firsts = {(each.arm, each.setting, each.metric.name): each for each in headlines(analysis)}
    level = intervals.level_of(enough)
    found = []
    for cell in analysis.cells:
        if (
            cell.arm not in asked
            or not cell.metric.primary
            or cell.metric.compare != "ratio"
            or cell.verdict == "left out"
        ):
            continue
        first = firsts.get((cell.arm, cell.setting, cell.metric.name))
        if first is not None and first.first == "anchor" and first.multiple is not None:
            one = first.multiple
            against, effects, reported = one.against, one.effects, one.interval
        elif (pair := cell.against_direct) is not None:
            against, effects, reported = pair.against, pair.effects, pair.interval
        else:
            against, effects, reported = analysis.reference or "", (), None
        logs = [log(value) if value > 0 else -inf for value in effects]
        found.append(_judged(cell, against, logs, reported, enough, level))
    return tuple(found)


def _judged(
    cell: MetricCell, against: str, logs: Sequence[float], reported: Interval | None, enough: Enough, level: float
) -> RatioWidth:
    half = width(logs, reported, level)
    count = len(logs)

    def row(state: PrecisionState, wanted: int | None = None, why: str = "") -> RatioWidth:
        share = None if half is None else exp(half) - 1
        return RatioWidth(cell.arm, against, cell.setting, cell.metric, count, share, state, wanted, why)

    if not all(map(isfinite, logs)):
        return row("set aside", why="it is zero in some block, so that it has no ratio")
    if cell.success.total and cell.success.high < RELIABLE:  # shown, and not by one failure in a few trials
        return row("set aside", why=f"{cell.success.total - cell.success.count} of {cell.success.total} trials failed")
    if enough.precision is None:
        return row("open")
    if half is None:
        return row("open")
    wanted = log(1 + enough.precision)
    if half <= wanted and count >= enough.floor:
        return row("precise", count)
    if half <= wanted:  # narrow by luck, or by few: pairs lack that the laboratory has spoilt
        return row("open", enough.floor)
    own = intervals.student(logs, level)  # the reported interval may be that of signs, whose width is not a spread
    assert own is not None
    if least_needed(count, (own[1] - own[0]) / 2, wanted, level) > enough.most:
        likely = needed(count, half, wanted, level)
        return row("set aside", likely, f"it would need about {likely} blocks")
    return row("open", needed(count, half, wanted, level))


def decision(
    found: Sequence[RatioWidth], enough: Enough, blocks: int, *, spent: float, block_seconds: float
) -> BlockDecision:
    """Decide whether the run adds blocks after `blocks` blocks, or ends.

    `spent`: the seconds that the run took so far. `block_seconds`: the seconds that one block takes.
    """

    def ended(decided: Literal["precise", "nothing"], why: str) -> BlockDecision:
        return BlockDecision(blocks, decided, blocks, spent, why)

    waiting = [each for each in found if each.state == "open"]
    if enough.precision is not None and not waiting:
        precise = sum(each.state == "precise" for each in found)
        if not precise:
            none = f"no ratio can be within {100 * enough.precision:g} % with {enough.most} blocks"
            return ended("nothing", none if found else "nothing in this study is compared by a ratio")
        return ended("precise", f"{precise} of {len(found)} ratios are within {100 * enough.precision:g} %")
    why = (
        "there is time" if enough.precision is None else f"{len(waiting)} of {len(found)} ratios are not precise enough"
    )
    return more_or_ended(enough, blocks, why, spent=spent, block_seconds=block_seconds)


def more_or_ended(enough: Enough, blocks: int, why: str, *, spent: float, block_seconds: float) -> BlockDecision:
    """Return the decision on a run for which `blocks` blocks are too few: a batch more for the reason `why`, or the end.

    The run ends at its largest number of blocks, or if no further block would end within its time.
    """
    if blocks >= enough.most:
        return BlockDecision(blocks, "cap", blocks, spent, f"{enough.most} blocks are the most that were asked for")
    to = min(enough.most, blocks + BATCH)
    if enough.budget is not None and block_seconds > 0:
        to = min(to, blocks + int(max(enough.budget - spent, 0.0) / block_seconds))
    if enough.budget is not None and (to <= blocks or spent >= enough.budget):
        said = "another block would not end within the time that was given"
        return BlockDecision(blocks, "budget", blocks, spent, said)
    return BlockDecision(blocks, "more", to, spent, why)


def more_needed(found: Sequence[RatioWidth], blocks: int) -> int | None:
    """Return how many more blocks the least precise open ratio needs, rounded up to whole batches.

    None if that is unknown for all open ratios, or if none is open. The largest number of blocks and the time that the
    run may take are not considered.
    """
    counts = [each.needed for each in found if each.state == "open" and each.needed is not None]
    if not counts:
        return None
    # A block in which a trial failed has no pair, so a ratio needs some more blocks than pairs.
    lacking = max(blocks - each.blocks for each in found if each.state == "open")
    return BATCH * max(ceil((max(counts) + lacking - blocks) / BATCH), 1)


def spent(results: Results, now: float) -> float:
    """Return the seconds that all sessions took until `now` (seconds since the Unix epoch), without the gaps between.

    A session without a recorded end was killed, and counts until its last attempt ended; the last session until `now`.
    """
    total = 0.0
    starts = [*(session.started for session in results.sessions[1:]), inf]
    for session, following in zip(results.sessions, starts, strict=True):
        if session.wall is not None:
            total += session.wall
        elif following == inf:
            total += max(now - session.started, 0.0)
        else:
            ends = [row.started + sum(row.phases.values()) for row in results.trials]
            total += max([end - session.started for end in ends if session.started <= end <= following], default=0.0)
    return total


def block_seconds(results: Results) -> float:
    """Return the median duration of a block in seconds; 0 without any attempt.

    A block lasts from the start of its first attempt to the end of its last. Of an even number of blocks, the longer of
    the two in the middle counts.
    """
    spans: dict[int, tuple[float, float]] = {}
    for row in results.trials:
        begun, ended = spans.get(row.block, (inf, -inf))
        spans[row.block] = min(begun, row.started), max(ended, row.started + sum(row.phases.values()))
    lengths = sorted(ended - begun for begun, ended in spans.values())
    return lengths[len(lengths) // 2] if lengths else 0.0
