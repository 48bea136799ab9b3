"""Shows which differences a number of blocks can detect, how long the blocks take, and how long trials should be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.table import Table

from tunnelmark.analyse.block_power import COUNTS, Seen, Split, as_percent
from tunnelmark.report import formatting
from tunnelmark.units import Duration, clock

EXPLAINED = (
    "Each cell: the true difference from direct that so many blocks show in four of five studies, at the level that all of the study's "
    "questions leave to one. Before it: the deviation of the arm's effects from block to block."
)


def table(found: Sequence[Seen], block_seconds: float) -> Table:
    """Return a table of the smallest differences that would be found in 80 % of studies.

    There is a row for each arm, scenario and metric (or one row, if all are alike), and a column for each number of
    blocks. A block takes `block_seconds`; the last row says how long all of the blocks take.
    """
    made = Table(box=None, pad_edge=False)
    for head in ("metric", "arm", "deviation", *(f"{count} blocks" for count in COUNTS)):
        made.add_column(head, justify="left" if head in ("metric", "arm") else "right")
    alike = len({(each.spread.sd, tuple(each.by_blocks.values())) for each in found}) == 1 < len(found)
    for each in found[:1] if alike else found:
        metric, setting = each.spread.metric, each.spread.setting
        own = (
            f"{as_percent(each.spread.sd):.1f} %"
            if metric.compare == "ratio"
            else f"{each.spread.sd:.3g} {metric.unit}"
        )
        sizes = [formatting.size(metric, each.by_blocks[count]) for count in COUNTS]
        named = f"{setting.workload} {metric.name}, {setting.profile}", each.spread.arm
        made.add_row(*(("every ratio", "every arm") if alike else named), own, *sizes)
    made.add_row("time", "", "", *(clock(count * block_seconds) for count in COUNTS), style="dim")
    return made


def sentences(splits: Sequence[Split]) -> list[str]:
    """Return a sentence for each split, which is one metric in one setting: how long its trials should be.

    If another length is better than the present one, the sentence also says in what share of the present study's time
    a study with the best length gives an interval of the same width.
    """
    return [_sentence(each) for each in splits]


def _sentence(each: Split) -> str:
    what = f"{each.setting.workload} {each.metric.name}, {each.setting.profile}"
    own = f"{100 * each.own:.0f} % of the variance are the trials' own, which longer ones take away"
    now = f"a trial measures {Duration(round(each.window, 1))} and costs {Duration(round(each.overhead, 1))} besides"
    if each.best is None:
        return f"{what}: {own}; {now}: longer trials are always better, and more blocks the same time"
    if abs(each.time - 1) < 0.05:
        return f"{what}: {own}; {now}: this is as good as any other split"
    best = "as short as they may be" if each.best < 1 else f"{each.best:.0f} s long"
    return f"{what}: {own}; {now}: trials {best}, and blocks to match, give the same interval in {100 * each.time:.0f} % of the time"


def plain(found: Sequence[Seen], splits: Sequence[Split], block_seconds: float) -> dict[str, Any]:
    """Return the differences that each number of blocks can detect, and the best lengths of trials, as data for JSON.

    `differences`: for each arm, setting and metric, its differences by number of blocks: ratios, or in its unit.
    `splits`: for each metric, the fields of `Split`, in seconds: `window` is a trial's present length, `best_window`
    the best length (None if longer is always better). `time` is the time that trials of the best length need for the
    same interval, as a share of the time that trials of the present length need.
    """
    rows: list[Mapping[str, Any]] = [
        {
            "arm": each.spread.arm,
            "profile": each.spread.setting.profile,
            "topology": each.spread.setting.topology,
            "workload": each.spread.setting.workload,
            "metric": each.spread.metric.name,
            "deviation": each.spread.sd,
            "differences": {str(count): size for count, size in each.by_blocks.items()},
        }
        for each in found
    ]
    parts = [
        {
            "workload": each.setting.workload,
            "profile": each.setting.profile,
            "metric": each.metric.name,
            "own_share": each.own,
            "window": each.window,
            "overhead": each.overhead,
            "best_window": each.best,
            "time": each.time,
        }
        for each in splits
    ]
    return {"block_seconds": block_seconds, "differences": rows, "splits": parts}
