"""What the first answer of a report rests on, and what its numbers do not show, in sentences."""

from __future__ import annotations

from tunnelmark.analyse.analysis import ANCHOR, DIRECT
from tunnelmark.analyse.model import Analysis
from tunnelmark.record import arm_programs
from tunnelmark.record.results import ArmInfo
from tunnelmark.report import formatting, graded, machine_facts, placed
from tunnelmark.units import clock

KERNEL_WIREGUARD, USER_SPACE_WIREGUARD = "wireguard", frozenset({"wireguard-go", "boringtun", "gotatun"})
"""VPNs that are WireGuard itself: the kernel's, and programs in user space, which encrypt elsewhere and at another cost."""


def described(analysis: Analysis, arm: ArmInfo) -> str:
    """What an arm's VPN is and its version, as far as that is recorded and its name does not say it: `WireGuard (wireguard-go) 0.0.20220316`."""
    if arm.vpn in (DIRECT, ANCHOR):
        return ""
    title = "" if arm.title.lower() == arm.name.lower() else arm.title
    return " ".join(filter(None, (title, arm_programs.version(analysis.results.environment, arm))))


def _version(analysis: Analysis, arm: ArmInfo) -> str:
    """A VPN and its version; empty for direct and the anchor, which are this project's, and where it was not recorded."""
    version = "" if arm.vpn in (DIRECT, ANCHOR) else arm_programs.version(analysis.results.environment, arm)
    return f"{arm.vpn} {version}" if version else ""


def ran(analysis: Analysis) -> str:
    """How many of the planned trials have run, and how many attempts that took where it is another number: `50 of 50 trials, 52 attempts`."""
    planned, attempts = len(analysis.results.plan.trials), len(analysis.results.trials)
    done = planned - len(analysis.missing)
    return f"{done} of {planned} trials" + (f", {attempts} attempts" if attempts != done else "")


def not_shown(analysis: Analysis) -> str:
    """What these numbers cannot say, in a sentence: other machines, other links, other traffic, longer times."""
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
    """What the effects against direct are made of, as the end of a sentence."""
    words = f"against {analysis.reference or 'direct'}, block by block, so not the ratio of the medians"
    if has_intervals(analysis):
        return f"{words}, with its 95 % interval"
    return f"{words}; without intervals, for which the blocks are too few"


def has_intervals(analysis: Analysis) -> bool:
    """Whether any effect against direct has an interval."""
    return any(cell.against_direct and cell.against_direct.interval for cell in analysis.cells)


def rests_on(analysis: Analysis) -> tuple[str, ...]:
    """In sentences: how many blocks and attempts, what the A/A pair says, and of what the intervals are."""
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
