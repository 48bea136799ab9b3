"""Says which path each VPN found between each two kinds of routers (direct, relayed, none), and how long that took."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median
from typing import Literal

from tunnelmark.analyse.model import Analysis, Scenario
from tunnelmark.analyse.pairing import setting_of
from tunnelmark.plan.profiles import JOIN
from tunnelmark.report import formatting, queries

PathFound = Literal["direct", "relayed", "both", "none", "unknown"]

WORDS: Mapping[PathFound, str] = {
    "direct": "direct",
    "relayed": "relayed",
    "both": "direct and relayed",
    "none": "no path",
    "unknown": "–",
}
EXPLAINED = (
    "Direct: in every trial with a path everything came from the other end itself from some moment on; the seconds are from the VPN's start to "
    "that moment, the median of the trials. Relayed: it came through a third node to the end. No path: no ping was answered in time. A dash: it "
    "failed otherwise, or was not tried. What was seen on the underlay decides, "
    "not what a VPN says of itself."
)
_SOME = 10.0  # per cent: a path that carried more of the bytes counts as used
_HALF = 50.0
_DIRECT, _SOON, _TCP = "path_direct", "path_direct_after", "path_tcp"


@dataclass(frozen=True, slots=True)
class FoundPath:
    """The path that an arm found between two kinds of routers.

    `outcome`: `direct` if, in every trial that found a path, all traffic went directly in the end; else `both` if more
    than 10 % of the bytes came directly (median of the trials), and `relayed` if at most 10 % did. `none`: no ping was
    answered in any trial. `unknown`: trials failed for another reason, or there were no trials.
    `seconds`: from the start of the VPN until all traffic went directly, the median of the trials; None if `outcome` is
    not `direct`. `tcp`: whether most bytes went over TCP.
    `tried`: the number of trials that found a path, as `3 of 5`; "" if all trials or none found a path.
    `some`: of the trials that found a path, the number in which all traffic went directly in the end, as `1 of 3`; ""
    if it did in all or in none.
    """

    outcome: PathFound
    seconds: float | None = None
    tcp: bool = False
    tried: str = ""
    some: str = ""

    def __str__(self) -> str:
        said = WORDS[self.outcome] + (", TCP" if self.tcp else "")
        said += f", {formatting.scale('s', [self.seconds]).value(self.seconds)}" if self.seconds is not None else ""
        notes = [f"direct in {self.some}"] if self.some else []
        notes += [f"a path in {self.tried}"] if self.tried and self.some else [self.tried] if self.tried else []
        return f"{said} ({', '.join(notes)})" if notes else said


@dataclass(frozen=True, slots=True)
class Grid:
    """The paths that each arm found in one topology with several kinds of routers.

    `title`: names the topology and the profile. `arms`: the names of all arms. `rows`: for each row, its kinds of
    routers, for `named`. `cells`: the path by row and arm; each arm has one in each row.
    """

    title: str
    arms: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    cells: Mapping[tuple[tuple[str, ...], str], FoundPath]


def grids(analysis: Analysis) -> tuple[Grid, ...]:
    """Return a grid for each profile, topology and workload `traversal` that ran with several kinds of routers."""
    titles = {topology.name: topology.title for topology in analysis.results.plan.topologies}
    found: dict[tuple[str, str, str], list[Scenario]] = {}
    for setting in analysis.settings():
        if queries.in_grid(analysis, setting):
            own = setting.topology.partition(JOIN)[0]
            found.setdefault((setting.profile, own, setting.workload), []).append(setting)
    made = []
    for (profile, own, _), settings in found.items():
        arms = tuple(arm.name for arm in analysis.results.plan.arms)
        rows: dict[tuple[str, ...], Scenario] = {
            tuple(setting.topology.split(JOIN)[1:]): setting for setting in settings
        }
        cells = {(kinds, arm): _found(analysis, setting, arm) for kinds, setting in rows.items() for arm in arms}
        title = titles.get(own, titles[settings[0].topology].partition(":")[0])
        made.append(Grid(f"Paths: {title}, {profile}", arms, tuple(rows), cells))
    return tuple(made)


def named(kinds: tuple[str, ...]) -> str:
    """Return the name of a row of a grid: `symmetric × full-cone`; `as it is` for the topology's own kinds of routers.

    `kinds`: one kind if both routers are of that kind; () for the topology's own kinds.
    """
    return " × ".join(kinds * 2 if len(kinds) == 1 else kinds) or "as it is"


def _found(analysis: Analysis, setting: Scenario, arm: str) -> FoundPath:
    share = analysis.cell(arm, setting, _DIRECT)
    count = share.success
    tried = "" if count.count == count.total or not count.count else f"{count.count} of {count.total}"
    if share.spread is None:
        otherwise = any((row.arm, setting_of(row)) == (arm, setting) for row in analysis.failed)
        return FoundPath("none" if share.verdict == "failed" and not otherwise else "unknown")
    tcp = median(over) > _HALF if (over := _values(analysis, setting, arm, _TCP)) else False
    # Only a trial that went directly in the end has the seconds until then.
    soon, trials = _values(analysis, setting, arm, _SOON), len(_values(analysis, setting, arm, _DIRECT))
    if soon and len(soon) >= trials:
        return FoundPath("direct", median(soon), tcp, tried)
    some = f"{len(soon)} of {trials}" if soon else ""
    return FoundPath("both" if share.spread.median > _SOME else "relayed", None, tcp, tried, some)


def _values(analysis: Analysis, setting: Scenario, arm: str, metric: str) -> list[float]:
    """Return a metric's values of all trials with a result, whatever their grade, which does not affect the path."""
    return [
        sample.value
        for row in analysis.trials
        if row.arm == arm and row.outcome == "ok" and setting_of(row) == setting
        for sample in row.samples
        if sample.metric == metric and sample.time is None
    ]
