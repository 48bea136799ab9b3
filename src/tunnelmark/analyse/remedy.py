"""Says why most trials of a run are void, and what to change. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from tunnelmark.analyse.model import Analysis
from tunnelmark.model.attempt import alike
from tunnelmark.model.grades import QUIET, others
from tunnelmark.record.results import ProfileInfo, TrialRow

SLOWER = "fast-ethernet"
"""A profile with so low a rate that any machine that can run a lab at all can carry it."""

LOSSY = f"wifi-bad+{SLOWER}"
"""A link that loses packets and delays them, whose rate any machine carries."""

_SLOW = 100_000_000  # bit/s of that profile: a rate below it does not ask too much
_LONGEST = 300  # characters of a reason


def mostly_void(analysis: Analysis) -> bool:
    """Return whether more than half of the trials that ran are void."""
    return 2 * len(analysis.void) > len(analysis.trials)


def reasons(rows: Sequence[TrialRow]) -> list[str]:
    """Return each reason of these trials once, as text with the number of trials that have it; the most frequent first.

    Reasons that differ only in their figures count as one.
    """
    said = []
    for group in alike([row.message or row.outcome for row in rows]):
        words = group[0]
        said.append(f"{words if len(words) <= _LONGEST else words[: _LONGEST - 1] + '…'} ({len(group)} of {len(rows)})")
    return said


def remedies(analysis: Analysis) -> list[str]:
    """Say what to change, most promising first, with commands that can be copied; [] if no trial is void."""
    void = analysis.void
    if not void:
        return []
    plan = analysis.results.plan
    hit = [profile for profile in plan.profiles if any(row.profile == profile.name for row in void)]
    said = []
    taken = sum(others(row.host) for row in void) / len(void)
    if taken > QUIET:
        said.append(f"stop the other work on this machine, which took {taken:.1f} cores")
    if free := [profile for profile in hit if profile.rate is None and profile.impaired]:
        said.append("join a rate, because without one only the emulator limits a sender: " + _slower(analysis, free))
    elif fast := [profile for profile in hit if profile.rate is not None and profile.rate > _SLOW]:
        said.append(
            f"ask for a lower rate than that of {' and '.join(profile.name for profile in fast)}, such as that of {SLOWER}"
        )
    if not analysis.results.environment.get("guest"):
        command = _command(analysis)
        said.append(
            f"use a virtual machine, whose clock counts instructions, so that no pause disturbs it: {shlex.join([*command, '--backend', 'vm'])}"
        )
    return said


def _slower(analysis: Analysis, profiles: Sequence[ProfileInfo]) -> str:
    """Return the command with these profiles, which have no rate, at 100 Mbit/s; if it does not name them, the line for
    the study's file.
    """
    command = _command(analysis)
    names = {profile.name: f"{profile.name}+{SLOWER}" for profile in profiles}
    changed = [names.get(word, word) for word in command]
    if changed != command:
        return shlex.join(changed)
    listed = ", ".join(f'"{name}"' for name in names.values())
    return f"profiles = [{listed}] in the study"


def _command(analysis: Analysis) -> list[str]:
    """Return the command that was given, in a form that can be given again.

    It has no options for the results' folder, for resuming, for the backend or for the kernel.
    """
    words = list(analysis.results.environment.get("command") or ("tunnelmark", "run", analysis.results.plan.study))
    kept: list[str] = []
    skip = False
    for word in words:
        if skip or word in ("--out", "--resume", "--backend", "--kernel"):
            skip = not skip
        elif not word.startswith(("--out=", "--resume=", "--backend=", "--kernel=")):
            kept.append(word)
    return [*kept, analysis.results.plan.study] if kept[-1:] == ["run"] else kept
