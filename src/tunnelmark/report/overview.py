"""Says in sentences what the first answer of a report rests on, and what its numbers do not show."""

from __future__ import annotations

from tunnelmark.analyse.analysis import ANCHOR, DIRECT
from tunnelmark.analyse.model import Analysis
from tunnelmark.record import arm_programs
from tunnelmark.record.results import ArmInfo
from tunnelmark.report import formatting, graded, machine_facts, placed
from tunnelmark.units import clock

KERNEL_WIREGUARD, USER_SPACE_WIREGUARD = "wireguard", frozenset({"wireguard-go", "boringtun", "gotatun"})
"""VPNs that are WireGuard: the kernel's, and user-space programs, which encrypt elsewhere and at another cost."""


def described(analysis: Analysis, arm: ArmInfo) -> str:
    """The title of an arm's VPN and its version: `WireGuard (wireguard-go) 0.0.20220316`.

    The title is left out if it is the arm's name, the version if it was not recorded. "" for direct and the anchor.
    """
    if arm.vpn in (DIRECT, ANCHOR):
        return ""
    title = "" if arm.title.lower() == arm.name.lower() else arm.title
    return " ".join(filter(None, (title, arm_programs.version(analysis.results.environment, arm))))


def _version(analysis: Analysis, arm: ArmInfo) -> str:
    """A VPN and its version; "" for direct and the anchor (this project's own), and if it was not recorded."""
    version = "" if arm.vpn in (DIRECT, ANCHOR) else arm_programs.version(analysis.results.environment, arm)
    return f"{arm.vpn} {version}" if version else ""


def ran(analysis: Analysis) -> str:
    """How many planned trials have run, and the attempts if their number differs: `50 of 50 trials, 52 attempts`."""
    planned, attempts = len(analysis.results.plan.trials), len(analysis.results.trials)
    done = planned - len(analysis.missing)
    return f"{done} of {planned} trials" + (f", {attempts} attempts" if attempts != done else "")


def not_shown(analysis: Analysis) -> str:
    """What these numbers cannot show, in sentences: other machines, other links, other traffic, longer times."""
    plan = analysis.results.plan
    links = len({(setting.profile, setting.topology) for setting in analysis.settings()})
    longest = max((use.window for use in plan.workloads), default=0.0)
    traffic = formatting.listed([use.name for use in plan.workloads])
    versions = list(dict.fromkeys(filter(None, (_version(analysis, arm) for arm in plan.arms))))
    other = f"other versions than {formatting.listed(versions)}, " if versions else ""
    said = (
        f"What the numbers do not show: another machine, {other}links other than {'this one' if links == 1 else f'these {links}'}, traffic "
        f"other than {traffic}, and what comes after more than {clock(longest)}. What a core bounds moves with the machine."
    )
    said += "".join(f" {one}" for one in placed.single_cores(analysis))
    vpns = dict.fromkeys(arm.vpn for arm in plan.arms)
    programs = [vpn for vpn in vpns if vpn in USER_SPACE_WIREGUARD]
    if programs and KERNEL_WIREGUARD not in vpns:
        verb = "is" if len(programs) == 1 else "are"
        said += (
            f" The kernel's WireGuard was not measured: {formatting.listed(programs)} {verb} WireGuard in user space."
        )
    return said


def effects(analysis: Analysis) -> str:
    """How the effects against direct are computed, as the end of a sentence."""
    words = f"against {analysis.reference or 'direct'}, block by block, so not the ratio of the medians"
    if has_intervals(analysis):
        return f"{words}, with its 95 % interval"
    return f"{words}; without intervals, for which the blocks are too few"


def has_intervals(analysis: Analysis) -> bool:
    """Whether any effect against direct has an interval."""
    return any(cell.against_direct and cell.against_direct.interval for cell in analysis.cells)


def rests_on(analysis: Analysis) -> tuple[str, ...]:
    """The number of blocks and attempts, the result of the A/A pair, and what the intervals cover, in sentences."""
    plan = analysis.results.plan
    blocks = "one block" if plan.blocks == 1 else f"{plan.blocks} blocks, each with every arm in a new order"
    said = [f"{formatting.capital(blocks)}."]
    if worth := graded.summary(analysis):
        said.append(worth.rstrip(".") + ".")
    explanation = analysis.same.explanation
    if explanation:
        said.append(f"{formatting.capital(explanation)}.")
    if has_intervals(analysis):
        against = analysis.reference or "direct"
        said.append(
            f"Brackets are 95 % intervals of the effect against {against}; they cover {machine_facts.covers(analysis.results)}."
        )
    return tuple(said)
