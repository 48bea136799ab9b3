"""Judges claims on results of several machines: on each machine, and for machines like these together.

On each machine a claim is judged as in a run of that machine alone, over the blocks of its sessions. For all machines
together, the mean effect of each machine is one value. The interval over these values is Student's, and needs at least
three machines. It says what holds on machines like these, however few blocks each machine had. Two kinds of claims are
judged on each machine only, because they do not rest on a mean effect: those about a share of trials, and those that
repeat the source's own test between runs.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from tunnelmark import analyse
from tunnelmark.analyse.intervals import level_of
from tunnelmark.analyse.model import Analysis
from tunnelmark.claims import reading
from tunnelmark.claims.judging import judge
from tunnelmark.claims.measured import RunValues
from tunnelmark.claims.model import Apart, Cell, CellValues, Claim, ClaimOutcome, ClaimsFile, Judged
from tunnelmark.claims.verdicts import Verdicts, on_claims
from tunnelmark.record import fingerprint_diff, plan_pieces
from tunnelmark.record.results import Results


@dataclass(frozen=True, slots=True)
class OnMachines:
    """A claim with its verdict on each machine, by the machine's letter, and on machines like these together."""

    claim: Claim
    by_machine: Mapping[str, Judged]
    together: Judged

    def on(self, outcome: ClaimOutcome) -> tuple[str, ...]:
        """Return the letters of the machines on which the claim has this verdict; () if there are none."""
        return tuple(name for name, each in self.by_machine.items() if each.outcome == outcome)


@dataclass(frozen=True, slots=True)
class MachineVerdicts:
    """The verdicts on a source's claims over several machines; machines are named by letters.

    `described`: each machine in words. `found`: each claim with its verdicts. `left_out`: the names of sessions that
    did not ask the same as the first. `runs`: each machine's sessions, analysed as one run, with that machine's
    verdicts.
    """

    claims: ClaimsFile
    described: Mapping[str, str]
    found: tuple[OnMachines, ...]
    left_out: tuple[str, ...]
    runs: Mapping[str, tuple[Analysis, Verdicts]]


def of_machines(
    runs: Mapping[str, Results],
    claims: ClaimsFile | None = None,
    *,
    analyses: Mapping[str, Analysis] | None = None,
) -> MachineVerdicts | None:
    """Return the verdicts of sessions on `claims`, or by default on those of the source that their study repeats.

    `runs`: the sessions by name. They are judged together if they asked the same as the first, whatever their seeds and
    numbers of blocks. `analyses`: analyses that exist already, by session; they are used for machines with one session.
    None if `claims` is None and the study repeats no source.
    """
    first = next(iter(runs.values()))
    claims = claims or reading.of_study(first.plan.study)
    if claims is None:
        return None
    claims = claims.as_in(first.plan.study)
    same = plan_pieces.plan_hash(first)
    alike = {name: each for name, each in runs.items() if plan_pieces.plan_hash(each) == same}
    machines = fingerprint_diff.machines({name: each.environment for name, each in alike.items()})
    sessions: dict[str, dict[str, Results]] = {}
    for name, each in alike.items():
        sessions.setdefault(machines[name], {})[name] = each
    on_each = {machine: _analysis(mine, analyses or {}) for machine, mine in sessions.items()}
    verdicts = {machine: on_claims(each, claims) for machine, each in on_each.items()}
    judged = {machine: {each.claim.id: each for each in found.judged} for machine, found in verdicts.items()}
    values, level = _OverMachines(claims, on_each), level_of(first.plan.enough)
    return MachineVerdicts(
        claims=claims,
        described={machine: fingerprint_diff.name(each.results.environment) for machine, each in on_each.items()},
        found=tuple(
            OnMachines(
                each.claim,
                {machine: mine[each.claim.id] for machine, mine in judged.items()},
                _together(each, values, level),
            )
            for each in next(iter(verdicts.values())).judged
        ),
        left_out=tuple(name for name in runs if name not in alike),
        runs={name: (on_each[name], each) for name, each in verdicts.items()},
    )


def _together(on_first: Judged, values: _OverMachines, level: float) -> Judged:
    claim = on_first.claim
    if claim.feature is not None:  # held against the matrix, which is the same on every machine
        return on_first
    if any(isinstance(each, Apart) for each in claim.statements):
        return Judged(claim, "not testable", reason="the source's test is one between runs, made on each machine")
    return judge(replace(claim, order=()), values, level)


class _OverMachines:
    """The values of all machines; intervals are over machines."""

    paired = True
    single = False
    measured_here = True

    def __init__(self, claims: ClaimsFile, analyses: Mapping[str, Analysis]) -> None:
        self._values = {machine: RunValues(claims, each) for machine, each in analyses.items()}
        blocks = [
            (place, block)
            for place, each in enumerate(analyses.values())
            for block in sorted({trial.block for trial in each.results.trials})
        ]
        self._number = {of: number for number, of in enumerate(blocks, start=1)}
        self.units: Mapping[int, int] = {number: place for (place, _), number in self._number.items()}

    def of(self, cell: Cell) -> CellValues | None:
        """Return a cell's values by block, in the source's unit; None if no machine has any.

        The blocks of all machines are numbered in turn.
        """
        found: dict[int, float] = {}
        for place, values in enumerate(self._values.values()):
            mine = values.of(cell)
            found |= {self._number[place, block]: value for block, value in mine.values.items()} if mine else {}
        return CellValues(found) if found else None

    def obstacle(self, cells: Mapping[Cell, int], scale: str, conservative: Collection[Cell] = ()) -> str:
        """Return why these cells cannot be compared on some machine; "" if they can be compared on all machines.

        `scale`: "ratio" or "difference". `conservative`: the cells whose values may be too low, because a lower value
        only speaks against the claim (see `model.Values.obstacle`).
        """
        for machine, values in self._values.items():
            if reason := values.obstacle(cells, scale, conservative):
                return f"machine {machine}: {reason}"
            if any((mine := values.of(cell)) and mine.counted for cell in cells):
                return "a share of trials is judged on each machine"
        return ""


def _analysis(sessions: Mapping[str, Results], known: Mapping[str, Analysis]) -> Analysis:
    """Return the analysis of one machine's sessions (by name) as one run."""
    first, *others = sessions
    if not others and first in known:
        return known[first]
    return analyse.judge(_as_one(tuple(sessions.values())))


def _as_one(sessions: Sequence[Results]) -> Results:
    """Join the sessions of one machine to one run: the plan of the first, and all trials and link checks.

    All blocks get new numbers, and the names of trials get the session's number in front, so that none occurs twice.
    """
    if len(sessions) == 1:
        return sessions[0]
    trials, names, last = [], [], 0
    for place, each in enumerate(sessions, start=1):
        numbers = {
            block: last + number for number, block in enumerate(sorted({trial.block for trial in each.trials}), start=1)
        }
        last += len(numbers)
        trials += [replace(trial, block=numbers[trial.block], trial=f"{place}/{trial.trial}") for trial in each.trials]
        names += [f"{place}/{trial}" for trial in each.plan.trials]
    first = sessions[0]
    plan = replace(first.plan, trials=tuple(names), blocks=sum(each.plan.blocks for each in sessions))
    return replace(
        first,
        plan=plan,
        trials=tuple(trials),
        sessions=tuple(
            replace(session, attempts=frozenset((f"{place}/{trial}", number) for trial, number in session.attempts))
            for place, each in enumerate(sessions, start=1)
            for session in each.sessions
        ),
        link_checks=tuple(check for each in sessions for check in each.link_checks),
    )
