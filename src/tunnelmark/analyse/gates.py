"""Checks the gates of a study: conditions that must hold before its numbers are believed."""

from __future__ import annotations

from tunnelmark.analyse import link_gate
from tunnelmark.analyse.ceilings import DIRECT_OVERFLOWS, is_throughput
from tunnelmark.analyse.failures import causes
from tunnelmark.analyse.model import Analysis, Gate
from tunnelmark.model.attempt import NOT_INSTALLED
from tunnelmark.units import Rate

AA = "A/A agrees"
"""The name of the gate that an arm does not differ from itself."""


def gates(analysis: Analysis) -> tuple[Gate, ...]:
    """Return all gates of a study. A command that ran the study ends with exit code 1 if one has not passed."""
    checked = link_gate.gate(analysis.results)
    return (_same(analysis), _succeeded(analysis), _link_filled(analysis), *([checked] if checked else []))


def titled(gate: Gate) -> str:
    """Return a gate's name, which says what must be; `not met: ` goes before it if it is not so."""
    return f"not met: {gate.name}" if gate.standing == "not passed" else gate.name


def _same(analysis: Analysis) -> Gate:
    if analysis.paths_only:
        return Gate(AA, True, "not applicable: which path is found is not a figure that is compared", applies=False)
    standing = analysis.same.standing
    return Gate(AA, standing == "agrees", analysis.same.explanation, judged=standing != "not judged")


def _succeeded(analysis: Analysis) -> Gate:
    """Return the gate that every trial has succeeded.

    A void trial does not count if replacement or added blocks make up for it.
    """
    trials, plan, said = len(analysis.trials), analysis.results.plan, []
    if analysis.failed:
        said.append(f"{len(analysis.failed)} of {trials} trials failed ({causes(analysis.failed)})")
    if analysis.missing:
        said.append(f"{len(analysis.missing)} of {len(plan.trials)} trials have not run yet")
    asked = plan.blocks if plan.enough is None else plan.enough.floor
    replaced = bool(analysis.void) and all(count >= asked for count in analysis.whole.values())
    if analysis.void and not replaced:
        said.append(
            f"{len(analysis.void)} of {trials} trials are void, by the laboratory's fault ({causes(analysis.void)})"
        )
    passed = not said
    if passed:
        said.append(f"all {trials - len(analysis.void)} trials have a result")
        if nowhere := len(analysis.failures) - len(analysis.void):
            said.append(f"in {nowhere} no path was found")
    if replaced:
        said.append(f"{len(analysis.void)} void trials in blocks that other blocks replace")
    if void := sum(row.outcome == "void" for row in analysis.repeated):
        said.append(f"{void} void attempts were made again")
    if lacked := sum(row.reason == NOT_INSTALLED for row in analysis.repeated):
        said.append(f"{lacked} attempts for which a program was not installed were made again")
    if part := len(analysis.repeated) - void - lacked:
        said.append(f"{part} attempts of which a part was void were made again")
    return Gate("every trial succeeded", passed, "; ".join(said))


def _link_filled(analysis: Analysis) -> Gate:
    name = "direct fills the link"
    plan = analysis.results.plan
    shaped = {profile.name for profile in plan.profiles if profile.rate is not None and not profile.impaired}
    if not shaped:
        return Gate(
            name, True, "not applicable: no profile is a plain rate limit that one stream could fill", applies=False
        )
    greedy = [
        use.name
        for use in plan.workloads
        if use.offered is None
        and not use.offered_by
        and any(metric.primary and is_throughput(metric) and metric.fills > 0 for metric in use.metrics)
    ]
    if not greedy:
        return Gate(name, True, "no workload asks for all that the link gives", applies=False)
    shares = [
        share for share in analysis.link_shares if share.setting.workload in greedy and share.setting.profile in shaped
    ]
    if not shares:
        return Gate(name, False, f"direct has no result by {', '.join(greedy)}, so the link's ceiling is not known")
    said = [
        f"{100 * share.share:.1f} % of {Rate(share.rate)}, the link's rate in full frames, by {share.setting.workload} "
        f"({share.setting.profile}; at least {100 * share.fills:.0f} % is asked)"
        for share in shares
    ]
    if any(share.share > DIRECT_OVERFLOWS for share in shares):
        return Gate(name, False, f"direct reaches {', '.join(said)}: more than the link can carry, so it is not shaped")
    passed = all(share.share >= share.fills for share in shares)
    return Gate(name, passed, f"direct reaches {', '.join(said)}")
