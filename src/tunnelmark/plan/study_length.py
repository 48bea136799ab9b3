"""The lengths of a study: usual, short and long.

A short run only shows whether the study works. A long run is as long as the published study that is repeated.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from tunnelmark.errors import UsageError
from tunnelmark.plan.model import Arm, WorkloadUse
from tunnelmark.plan.problems import Problems
from tunnelmark.plan.study_arms import DIRECT
from tunnelmark.plan.study_schema import StudyFile, UseTable

StudyLength = Literal["usual", "smoke", "full"]
LENGTHS: tuple[StudyLength, ...] = ("usual", "smoke", "full")


def length_of(content: StudyFile, *, smoke: bool, full: bool) -> StudyLength:
    """Return the length that was asked for; UsageError if the study does not have it, or both were asked for."""
    if smoke and full:
        raise UsageError("--smoke and --full exclude each other", hint="leave --smoke or --full out")
    if full and content.full is None:
        raise UsageError(
            f"the study {content.study.name} has no long length", hint="leave --full out, or give it a table [full]"
        )
    return "smoke" if smoke else "full" if full else "usual"


def blocks(content: StudyFile, length: StudyLength) -> int:
    """Return the number of blocks that the study has in that length."""
    if length == "smoke":
        return content.smoke.blocks
    more = content.full.blocks if content.full is not None and length == "full" else None
    return more or content.study.blocks


def profiles(content: StudyFile, length: StudyLength) -> list[str]:
    """Return the names of the profiles that the study has in that length."""
    more = content.full.profiles if content.full is not None and length == "full" else None
    return list(more or content.study.profiles)


def options(table: UseTable, length: StudyLength) -> Mapping[str, Any]:
    """Return the options that a workload has in that length."""
    return {**table.options, **{"usual": {}, "smoke": table.smoke, "full": table.full}[length]}


def taking_part(
    content: StudyFile,
    length: StudyLength,
    arms: tuple[Arm, ...],
    uses: tuple[WorkloadUse, ...],
    problems: Problems,
) -> tuple[tuple[Arm, ...], tuple[WorkloadUse, ...]]:
    """Return the arms and workloads of that length; note a problem if it lacks the bare link, a twin or a workload."""
    if length == "full":
        return arms, uses
    out = {each.name for each in content.arm if each.only}
    left = tuple(arm for arm in arms if arm.name not in out)
    for arm in left:
        if arm.same_as in out:
            problems.add(("arm",), f"{arm.name!r} is the same as an arm that only the long length has", "move `only`")
    if out and not (any(arm.vpn == DIRECT for arm in left) and any(arm.same_as for arm in left)):
        problems.add(("arm",), "only the long length has the bare link or the A/A pair", "leave `only` out of both")
    used = {each.name or each.workload for each in content.workload if not each.only}
    if not used:
        problems.add(("workload",), "only the long length has workloads", "leave `only` out of one at least")
    return left, tuple(use for use in uses if use.name in used)
