"""Computes where the wall time of a study went, and lists the disturbed trials."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tunnelmark.analyse.attempts import causes_of, grade_of
from tunnelmark.model.attempt import PHASES
from tunnelmark.model.grades import others
from tunnelmark.record.results import Session, TrialRow


@dataclass(frozen=True, slots=True)
class WallTime:
    """The wall time of a study in seconds: `phases` are summed over trials; `outside` is the time without a trial.

    Trials may overlap at their edges; `overlap` is the time in `phases` that two of them shared, so that
    phases + outside - overlap = wall. `complete` is False if a session has no recorded end.
    """

    wall: float
    phases: Mapping[str, float]
    outside: float
    overlap: float
    complete: bool

    @property
    def measuring(self) -> float:
        """The share of the wall time inside measuring windows, 0 to 1."""
        return self.phases.get("measure", 0.0) / self.wall if self.wall > 0 else 0.0


@dataclass(frozen=True, slots=True)
class Disturbance:
    """A trial whose result is disturbed: the cores that other work took, and every reason."""

    trial: str
    cores: float
    causes: tuple[str, ...] = ()


def wall_time(sessions: Sequence[Session], trials: Sequence[TrialRow]) -> WallTime:
    """Return the sessions' wall time by phase; a session without a recorded end counts until its last trial ended."""
    spans = sorted((trial.started, trial.started + sum(trial.phases.values())) for trial in trials)
    phases = {phase: sum(trial.phases.get(phase, 0.0) for trial in trials) for phase in PHASES}
    for name in dict.fromkeys(name for trial in trials for name in trial.phases if name not in phases):
        phases[name] = sum(trial.phases.get(name, 0.0) for trial in trials)
    ordered = sorted(sessions, key=lambda session: session.started)
    wall = 0.0
    for session, following in zip(ordered, [*ordered[1:], None], strict=True):
        if session.wall is not None:
            wall += session.wall
        else:
            until = float("inf") if following is None else following.started
            ends = [end for start, end in spans if session.started <= start < until]
            wall += max(ends, default=session.started) - session.started
    covered = _covered(spans)
    return WallTime(
        wall=wall,
        phases=phases,
        outside=max(0.0, wall - covered),
        overlap=max(0.0, sum(phases.values()) - covered),
        complete=all(session.wall is not None for session in sessions),
    )


def disturbances(trials: Sequence[TrialRow]) -> tuple[Disturbance, ...]:
    """Return the trials whose result is disturbed, in the order of `trials`."""
    disturbed = [trial for trial in trials if grade_of(trial) == "disturbed"]
    return tuple(Disturbance(trial.trial, others(trial.host), causes_of(trial)) for trial in disturbed)


def _covered(spans: Sequence[tuple[float, float]]) -> float:
    covered, reached = 0.0, float("-inf")
    for start, end in spans:
        covered += max(0.0, end - max(start, reached))
        reached = max(reached, end)
    return covered
