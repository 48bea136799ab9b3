"""Shows how an effect developed over the runs of a machine: the effect in each run, and where its level changed."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from math import inf, isnan

from tunnelmark.analyse.change_points import LEAST, ChangePoint, change_points
from tunnelmark.analyse.model import Analysis, Comparison, MetricCell, Scenario
from tunnelmark.analyse.pairing import additive
from tunnelmark.errors import UnknownName, UsageError
from tunnelmark.record import arm_programs, fingerprint_diff, plan_pieces
from tunnelmark.record.plan_pieces import Piece
from tunnelmark.record.results import MetricInfo


@dataclass(frozen=True, slots=True)
class HistoryPoint:
    """One run of a series, with its effect (`comparison`).

    `started`: in seconds since the Unix epoch; None if it is not recorded. `machine`: the letter of its machine.
    `version`: the arm's version. `change`: the change of level that begins with this run, or None.
    """

    run: str
    started: float | None
    machine: str
    version: str
    comparison: Comparison
    change: ChangePoint | None = None


@dataclass(frozen=True, slots=True)
class RunSeries:
    """One comparison over all runs that measured it alike; `points` are in the order of time.

    `machine`: the letter of the machine; "" if the runs of all machines were joined. `tested`: whether there are enough
    runs to show a change.
    """

    arm: str
    against: str
    setting: Scenario
    metric: MetricInfo
    machine: str
    points: tuple[HistoryPoint, ...]
    tested: bool


@dataclass(frozen=True, slots=True)
class History:
    """All series, the machines' names by letter, and cautions: sentences that a reader of the series must know."""

    series: tuple[RunSeries, ...]
    machines: Mapping[str, str]
    cautions: tuple[str, ...]


def history(
    analyses: Mapping[str, Analysis],
    metrics: Collection[str] = (),
    arms: Collection[str] = (),
    *,
    join_machines: bool = False,
) -> History:
    """Return the effects against direct of these runs over time.

    `analyses`: the analysis of each run, by the run's name. `metrics`: names of metrics without the workload, such as
    "goodput"; if it is empty, the primary metrics are shown. `arms`: names of arms; if it is empty, all arms are shown.
    Runs are in one series if they were asked for the same arm, link, topology and workload. Versions of programs may
    differ, because they are what changes. Each machine has its own series unless `join_machines` is set. UnknownName if
    a name in `metrics` or `arms` is in no run. UsageError if no run compares a chosen arm with direct by a chosen
    metric.
    """
    _known("metric", metrics, (cell.metric.name for each in analyses.values() for cell in each.cells))
    _known("arm", arms, (arm.name for each in analyses.values() for arm in each.results.plan.arms))
    letters = fingerprint_diff.machines({name: each.results.environment for name, each in analyses.items()})
    machines = {
        letter: fingerprint_diff.name(analyses[name].results.environment) for name, letter in reversed(letters.items())
    }
    pieces = {name: plan_pieces.pieces(each.results) for name, each in analyses.items()}
    grouped: dict[tuple[object, ...], list[tuple[MetricCell, HistoryPoint]]] = {}
    for name in sorted(analyses, key=lambda name: _started(analyses[name]) or -inf):
        for cell in analyses[name].cells:
            wanted = cell.metric.name in metrics if metrics else cell.metric.primary
            if wanted and cell.against_direct is not None and (not arms or cell.arm in arms):
                machine = "" if join_machines else letters[name]
                key = (cell.arm, cell.setting, cell.metric.name, machine, _asked(pieces[name], cell))
                grouped.setdefault(key, []).append(
                    (cell, _point(name, letters[name], analyses[name], cell, cell.against_direct))
                )
    if not grouped:
        raise UsageError(
            "no run compares any of this with direct", hint="choose other metrics with --metric, or other runs"
        )
    cautions = [*_cautions(analyses), *_several(pieces, letters, analyses, joined=join_machines)]
    return History(
        _with_changes(list(grouped.values()), join_machines), dict(sorted(machines.items())), tuple(cautions)
    )


def _known(what: str, asked: Iterable[str], there: Iterable[str]) -> None:
    known = set(there)
    for name in asked:
        if name not in known:
            raise UnknownName(what, name, known)


def _started(analysis: Analysis) -> float | None:
    return min((each.started for each in analysis.results.sessions), default=None)


def _point(name: str, machine: str, analysis: Analysis, cell: MetricCell, comparison: Comparison) -> HistoryPoint:
    arm = next(arm for arm in analysis.results.plan.arms if arm.name == cell.arm)
    version = arm_programs.version(analysis.results.environment, arm)
    return HistoryPoint(name, _started(analysis), machine, version, comparison)


def _asked(pieces: Mapping[Piece, Mapping[str, object]], cell: MetricCell) -> str:
    """Return what the run was asked to compare, without versions of programs, as JSON: a key for equal comparisons."""
    assert cell.against_direct is not None
    needed: tuple[Piece, ...] = (
        ("arm", cell.arm),
        ("arm", cell.against_direct.against),
        ("link", cell.setting.profile),
        ("topology", cell.setting.topology),
        ("workload", cell.setting.workload),
    )
    return json.dumps([_without_version(pieces[piece]) for piece in needed], sort_keys=True)


def _without_version(piece: Mapping[str, object]) -> Mapping[str, object]:
    return {key: value for key, value in piece.items() if key != "version"}


def _with_changes(grouped: list[list[tuple[MetricCell, HistoryPoint]]], joined: bool) -> tuple[RunSeries, ...]:
    """Make the series, all tested for changes as one family; a run without an effect is shown but not tested."""
    tested = [[_additive(cell, point) for cell, point in group] for group in grouped]
    kept = [[place for place, value in enumerate(values) if value is not None] for values in tested]
    family = [[value for value in values if value is not None] for values in tested]
    made = []
    for group, places, values, changes in zip(grouped, kept, family, change_points(family), strict=True):
        at = {places[change.place]: change for change in changes}
        cell, first = group[0]
        points = tuple(
            HistoryPoint(p.run, p.started, p.machine, p.version, p.comparison, at.get(place))
            for place, (_, p) in enumerate(group)
        )
        machine = "" if joined else first.machine
        against = first.comparison.against
        made.append(RunSeries(cell.arm, against, cell.setting, cell.metric, machine, points, len(values) >= LEAST))
    return tuple(made)


def _additive(cell: MetricCell, point: HistoryPoint) -> float | None:
    estimate = point.comparison.estimate
    if estimate is None or isnan(estimate):
        return None
    return additive(cell.metric, estimate)


def _cautions(analyses: Mapping[str, Analysis]) -> Iterable[str]:
    for name, each in analyses.items():
        if each.same.standing == "differs":
            yield f"In {name} the A/A pair differs: its effects are not to be believed."
        if not each.results.finished:
            yield f"{name} is unfinished."
        if _started(each) is None:
            yield f"{name} does not say when it was begun, and is listed first."


def _several(
    pieces: Mapping[str, Mapping[Piece, Mapping[str, object]]],
    letters: Mapping[str, str],
    analyses: Mapping[str, Analysis],
    *,
    joined: bool,
) -> Iterable[str]:
    """Say why one comparison has several series, or why one series holds runs of several machines."""
    first: dict[str, str] = {}
    for name, letter in letters.items():
        first.setdefault(letter, name)
    (origin, reference), *others = first.items()
    for letter, name in others:
        mine, theirs = (analyses[each].results.environment.get(fingerprint_diff.KEY, {}) for each in (reference, name))
        differs = "; ".join(map(str, fingerprint_diff.differences(mine, theirs))) or "what was recorded of it differs"
        yield f"Machine {letter} is not machine {origin} ({differs}): " + (
            "their runs are joined all the same, so that a change may be the machine's."
            if joined
            else "each has series of its own."
        )
    one = next(iter(pieces))
    known = {piece: _without_version(value) for piece, value in pieces[one].items()}
    said: dict[str, list[str]] = {}
    for name, theirs in pieces.items():
        plain = {piece: _without_version(value) for piece, value in theirs.items()}
        for (kind, of), how in plan_pieces.contrast(known, plain).items():
            if how not in ("is not there", "is there only"):
                said.setdefault(f"{kind} {of} {how}", []).append(name)
    for what, names in said.items():
        yield f"{', '.join(names)} asked another thing than {one} ({what}): a series of its own."
