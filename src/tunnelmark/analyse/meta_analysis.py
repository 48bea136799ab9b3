"""Joins several runs: combines the comparisons that are the same in them over sessions and machines.

It also says what is left out, and why.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite, sqrt
from statistics import fmean, stdev

from tunnelmark.analyse.gates import AA, gates
from tunnelmark.analyse.intervals import MIN_BLOCKS, share
from tunnelmark.analyse.model import Analysis, Comparison, Scenario, SuccessShare
from tunnelmark.analyse.pairing import additive
from tunnelmark.analyse.session_effects import Combined, SessionEffect, combine
from tunnelmark.analyse.unit_twins import Twins, UnitTwins, judge_units
from tunnelmark.errors import UsageError
from tunnelmark.record import fingerprint_diff, plan_pieces
from tunnelmark.record.plan_pieces import Piece
from tunnelmark.record.results import MetricInfo


@dataclass(frozen=True, slots=True)
class Joined:
    """One of the joined runs.

    `machine`: a letter, the same for runs whose recorded machines do not differ. `described`: the machine in words.
    `started`: in seconds since the Unix epoch; None if it is not recorded. `boot`: the boot's identity; "" if unknown.
    `blocks`: how many blocks were planned. `plan`: the hash of all that the run was asked. `standing`: the run's A/A
    judgement ("agrees", "differs" or "not judged"). `failed_gates`: the names of the run's gates that have not passed.
    `numbers`: the numbers of the blocks that ran, from 1; a block's number and `seed` decide what emulated links do to
    packets. `short`: the run has too few blocks to judge its A/A pair alone.
    """

    name: str
    machine: str
    described: str
    boot: str
    started: float | None
    blocks: int
    seed: int
    plan: str
    finished: bool
    standing: str
    failed_gates: tuple[str, ...]
    numbers: tuple[int, ...]
    short: bool


@dataclass(frozen=True, slots=True)
class MergedRow:
    """One comparison over sessions: the effect in each session that is used, and the combined effect.

    `success`: how many trials of `arm` succeeded in the sessions that are used. `left_out`: the sessions that have this
    comparison and are not used: the reason by the session's name.
    """

    arm: str
    against: str
    setting: Scenario
    metric: MetricInfo
    effects: tuple[SessionEffect, ...]
    combined: Combined
    success: SuccessShare
    left_out: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Merged:
    """Several runs as one.

    `rows`: comparisons with direct. `pairs`: comparisons of other arms, by primary metrics. `not_joined`: what differs
    between the runs, and what was left out. `covers`: what the intervals are about, in words. `same`: the A/A judgement
    over all runs.
    """

    title: str
    study: str
    reference: str | None
    sessions: tuple[Joined, ...]
    rows: tuple[MergedRow, ...]
    pairs: tuple[MergedRow, ...]
    not_joined: tuple[str, ...]
    cautions: tuple[str, ...]
    covers: str
    same: UnitTwins


def merge(analyses: Mapping[str, Analysis]) -> Merged:
    """Join the analyses of several sessions, given by the session's name.

    UsageError if no two sessions compared the same thing. A comparison is joined over the sessions in which its two
    arms, link, topology and workload are the same as in the first session that has it.
    """
    machines = fingerprint_diff.machines({name: each.results.environment for name, each in analyses.items()})
    sessions = tuple(_joined(name, analysis, machines[name]) for name, analysis in analyses.items())
    pieces = {name: plan_pieces.pieces(analysis.results) for name, analysis in analyses.items()}
    found = tuple(_found(analyses, machines, pieces))
    if len(analyses) > 1 and not any(each.alike > 1 for each in found):
        raise UsageError(
            "no two of these results compared the same thing: " + "; ".join(_differences(pieces)),
            hint="rate 'auto' may mean another rate on each machine: state the rate in the profile",
        )
    rows = [row for each in found if (row := _row(each, analyses)) is not None]
    first = next(iter(analyses.values()))
    primary = [row for row in rows if row.metric.primary]
    return Merged(
        title=first.results.plan.title,
        study=first.results.plan.study,
        reference=first.reference,
        sessions=sessions,
        rows=tuple(row for row in rows if row.against == first.reference),
        pairs=tuple(row for row in primary if row.against != first.reference),
        not_joined=(*_differences(pieces), *_left_out(found)),
        cautions=tuple(_cautions(sessions)),
        covers=covers(sessions),
        same=judge_units(_twins(rows, analyses)),
    )


def covers(sessions: Sequence[Joined]) -> str:
    """Say what the intervals over these sessions are about, in words that complete "an interval covers ..."."""
    machines = list(dict.fromkeys(each.machine for each in sessions))
    if len(machines) > 2:
        return f"machines like the {len(machines)} measured"
    if len(machines) == 2:
        return "two machines, which are too few to say what a third would do"
    boots = len({each.boot for each in sessions if each.boot})
    if len(sessions) < 3:
        return "this machine in so few runs that there is no interval over them"
    in_boots = {0: "", 1: " in this boot"}.get(boots, f" in boots like the {boots} measured")
    return f"further runs like the {len(sessions)} measured, on this machine{in_boots}"


def _joined(name: str, analysis: Analysis, machine: str) -> Joined:
    results = analysis.results
    found = results.environment.get(fingerprint_diff.KEY) or {}
    short = bool(analysis.same.twins) and len({trial.block for trial in results.trials}) < MIN_BLOCKS
    return Joined(
        name=name,
        machine=machine,
        described=fingerprint_diff.name(results.environment),
        boot=found.get("boot", ""),
        started=min((each.started for each in results.sessions), default=None),
        blocks=results.plan.blocks,
        seed=results.plan.seed,
        plan=plan_pieces.plan_hash(results),
        finished=results.finished,
        standing=analysis.same.standing,
        failed_gates=tuple(
            gate.name
            for gate in gates(analysis)
            if gate.passed is False and not (gate.name == AA and short and analysis.same.standing == "not judged")
        ),
        short=short,
        numbers=tuple(sorted({trial.block for trial in results.trials})),
    )


@dataclass(frozen=True, slots=True)
class _Found:
    """One comparison in all runs that have it; the same in `alike` of them; `effects` is of those with values."""

    arm: str
    against: str
    setting: Scenario
    metric: MetricInfo
    alike: int
    effects: tuple[SessionEffect, ...]
    left_out: Mapping[str, str]


def _found(
    analyses: Mapping[str, Analysis],
    machines: Mapping[str, str],
    pieces: Mapping[str, Mapping[Piece, Mapping[str, object]]],
) -> Iterable[_Found]:
    found: dict[tuple[str, str, Scenario, str], dict[str, Comparison]] = {}
    for name, analysis in analyses.items():
        # By primary metrics, only a run's A/A judgement compares an arm with its twin; here it is a row like others.
        for pair in (*analysis.pairs, *(twins.comparison for twins in analysis.same.twins)):
            found.setdefault((pair.arm, pair.against, pair.setting, pair.metric), {})[name] = pair
    for (arm, against, setting, metric_name), pairs in found.items():
        needed: tuple[Piece, ...] = (
            ("arm", arm),
            ("arm", against),
            ("link", setting.profile),
            ("topology", setting.topology),
            ("workload", setting.workload),
        )
        first = next(iter(pairs))
        metric = _metric(analyses[first], setting, metric_name)
        effects, left_out, alike = [], {}, 0
        for name, pair in pairs.items():
            others = [f"{kind} {of}" for kind, of in needed if pieces[name][kind, of] != pieces[first][kind, of]]
            alike += not others
            if others:
                left_out[name] = f"another {' and '.join(dict.fromkeys(others))}"
            elif isinstance(effect := _effect(name, machines[name], pair, metric), str):
                left_out[name] = effect
            else:
                effects.append(effect)
        yield _Found(arm, against, setting, metric, alike, tuple(effects), left_out)


def _row(found: _Found, analyses: Mapping[str, Analysis]) -> MergedRow | None:
    """Return the comparison over all sessions together; None if no session has values."""
    combined = combine(found.effects)
    if combined is None:
        return None
    cells = [analyses[each.session].cell(found.arm, found.setting, found.metric.name) for each in found.effects]
    success = share(sum(cell.success.count for cell in cells), sum(cell.success.total for cell in cells))
    return MergedRow(
        found.arm, found.against, found.setting, found.metric, found.effects, combined, success, found.left_out
    )


def _effect(name: str, machine: str, pair: Comparison, metric: MetricInfo) -> SessionEffect | str:
    """Return the effect in a session, or the reason why there is none."""
    if metric.compare == "ratio" and any(each <= 0 or not isfinite(each) for each in pair.effects):
        return "a block with zero, of which a ratio has no logarithm"
    values = [additive(metric, each) for each in pair.effects]
    if not values:
        return "no block with both"
    error = stdev(values) / sqrt(len(values)) if len(values) > 1 else None
    return SessionEffect(name, machine, fmean(values), error, len(values), tuple(values))


def _twins(rows: Sequence[MergedRow], analyses: Mapping[str, Analysis]) -> list[Twins]:
    arms = [arm for analysis in analyses.values() for arm in analysis.results.plan.arms]
    same = {(arm.name, arm.same_as) for arm in arms if arm.same_as is not None}
    return [
        Twins(row.arm, row.against, row.metric, f"{row.setting.profile}, {row.setting.topology}", row.combined)
        for row in rows
        if row.metric.primary and (row.arm, row.against) in same
    ]


def _metric(analysis: Analysis, setting: Scenario, name: str) -> MetricInfo:
    use = next(use for use in analysis.results.plan.workloads if use.name == setting.workload)
    return next(metric for metric in use.metrics if metric.name == name)


def _differences(pieces: Mapping[str, Mapping[Piece, Mapping[str, object]]]) -> list[str]:
    """Say what each later session was asked differently from the first."""
    (first, mine), *others = pieces.items()
    said: dict[str, list[str]] = {}
    for name, theirs in others:
        for (kind, of), how in plan_pieces.contrast(mine, theirs).items():
            said.setdefault(f"{kind} {of} {how}", []).append(name)
    return [f"{', '.join(names)} against {first}: {what}" for what, names in said.items()]


def _left_out(found: Sequence[_Found]) -> list[str]:
    """Say which sessions were asked the same, but have values by a primary metric that could not be used, and why."""
    said: dict[tuple[str, str], list[str]] = {}
    for row in found:
        for name, why in row.left_out.items():
            if not why.startswith("another ") and row.metric.primary:
                said.setdefault((name, why), []).append(f"{row.arm} by {row.metric.title}")
    return [f"{name}: {', '.join(dict.fromkeys(what))}: {why}" for (name, why), what in said.items()]


def _cautions(sessions: Sequence[Joined]) -> Iterable[str]:
    for each in sessions:
        if each.standing == "differs":
            yield f"In {each.name} the A/A pair differs: nothing of it may be ranked."
        if not each.finished:
            yield f"{each.name} is unfinished."
        failed = [gate for gate in each.failed_gates if gate != AA]
        if failed:
            yield f"In {each.name} a gate has not passed: {', '.join(failed)}."
    if short := [each.name for each in sessions if each.short]:
        yield (
            f"{' and '.join(short)} {'has' if len(short) == 1 else 'have'} too few blocks to judge an A/A pair alone."
        )
    if alike := [" and ".join(names) for names in _same_links(sessions)]:
        yield (
            f"{'; '.join(alike)} have the same seed and blocks of the same numbers, so their emulated links made the same decisions"
            " there: the differences between sessions do not include what those decisions do to a result."
        )
    if any(each.described == "not recorded" for each in sessions):
        yield "Sessions without a recorded machine are taken to be of one machine."


def _same_links(sessions: Sequence[Joined]) -> list[list[str]]:
    """Group the sessions that have the same seed and share block numbers; single sessions are left out.

    Seed and block number decide what an emulated link does (`plan.order.link_seed`).
    """
    groups: list[tuple[set[tuple[int, int]], list[str]]] = []
    for each in sessions:
        decided, names = {(each.seed, number) for number in each.numbers}, [each.name]
        for met in [group for group in groups if group[0] & decided]:
            groups.remove(met)
            decided, names = decided | met[0], met[1] + names
        groups.append((decided, names))
    return [sorted(names) for _, names in groups if len(names) > 1]
