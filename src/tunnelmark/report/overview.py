"""Says in sentences what the first answer of a report rests on, and what its numbers do not show."""

from __future__ import annotations

from collections.abc import Collection
from statistics import median

from tunnelmark.analyse import remedy
from tunnelmark.analyse.arms import ANCHOR, DIRECT
from tunnelmark.analyse.ceilings import is_throughput
from tunnelmark.analyse.model import Analysis, Scenario
from tunnelmark.record import arm_programs
from tunnelmark.record.results import ArmInfo
from tunnelmark.report import formatting, graded, machine_facts, placed
from tunnelmark.report.host_tables import mapping
from tunnelmark.report.methods import CONTROLS
from tunnelmark.units import clock

KERNEL_WIREGUARD, USER_SPACE_WIREGUARD = "wireguard", frozenset({"wireguard-go", "boringtun", "gotatun"})
"""VPNs that are WireGuard: the kernel's, and user-space programs, which encrypt outside of the kernel."""

FLOODED = 20.0
"""From this share on, in per cent, direct's own loss says that datagrams were sent faster than they could be carried."""


def described(analysis: Analysis, arm: ArmInfo) -> str:
    """Return the title of an arm's VPN and its version: `WireGuard (wireguard-go) 0.0.20220316`.

    The title is left out if it equals the arm's name, and the version is left out if it was not recorded. "" for direct
    and the anchor.
    """
    if arm.vpn in (DIRECT, ANCHOR):
        return ""
    title = "" if arm.title.lower() == arm.name.lower() else arm.title
    return " ".join(filter(None, (title, arm_programs.version(analysis.results.environment, arm))))


def _version(analysis: Analysis, arm: ArmInfo) -> str:
    """Return a VPN's name and version; "" for direct and the anchor, or if no version was recorded."""
    version = "" if arm.vpn in (DIRECT, ANCHOR) else arm_programs.version(analysis.results.environment, arm)
    return f"{arm.vpn} {version}" if version else ""


def ran(analysis: Analysis) -> str:
    """Return how many planned trials have run, and the attempts if there are more: `50 of 50 trials, 52 attempts`."""
    planned, attempts = len(analysis.results.plan.trials), len(analysis.results.trials)
    done = planned - len(analysis.missing)
    return f"{done} of {planned} trials" + (f", {attempts} attempts" if attempts != done else "")


def not_shown(analysis: Analysis) -> tuple[str, ...]:
    """Return sentences on what these numbers cannot show: other machines, versions, links and traffic, longer times."""
    plan = analysis.results.plan
    links = len({(setting.profile, setting.topology) for setting in analysis.settings()})
    longest = max((use.windows[-1] for use in plan.workloads), default=0.0)
    traffic = formatting.listed([use.name for use in plan.workloads])
    versions = list(dict.fromkeys(filter(None, (_version(analysis, arm) for arm in plan.arms))))
    said = ["Another machine: what a core bounds moves with it."]
    said += [f"Other versions than {formatting.listed(versions)}."] if versions else []
    which = "this one" if links == 1 else f"these {links}"
    said.append(
        f"Other links than {which}, other traffic than {traffic}, and what comes after more than {clock(longest)}."
    )
    said += [*_without_loss(analysis), *_near_hosts(analysis), *_other_streams(analysis)]
    pings = [use.name for use in plan.workloads if use.workload == "ping"]
    if pings:
        said.append(f"What other traffic does to {formatting.listed(pings)}: meanwhile the path carried nothing else.")
    said += [*_without_rate(analysis), *_floods(analysis), *_units(analysis), *placed.single_cores(analysis)]
    vpns = dict.fromkeys(arm.vpn for arm in plan.arms)
    programs = [vpn for vpn in vpns if vpn in USER_SPACE_WIREGUARD]
    if programs and KERNEL_WIREGUARD not in vpns:
        verb = "is" if len(programs) == 1 else "are"
        said.append(f"The kernel's WireGuard: {formatting.listed(programs)} {verb} WireGuard in user space.")
    return tuple(said)


def arms(analysis: Analysis) -> str:
    """Return how many arms were measured, and of what kinds: `9 arms (5 with a VPN, the bare link, 1 anchor, 2 second names)`."""
    every = analysis.results.plan.arms
    again = [arm for arm in every if arm.same_as is not None]
    once = [arm.vpn for arm in every if arm.same_as is None]
    bare, anchors = once.count(DIRECT), once.count(ANCHOR)
    vpns = len(once) - bare - anchors
    kinds = [
        f"{vpns} with a VPN" if vpns else "",
        {0: "", 1: "the bare link"}.get(bare, f"{bare} bare links"),
        f"{anchors} {'anchor' if anchors == 1 else 'anchors'}" if anchors else "",
        f"{len(again)} {'second name' if len(again) == 1 else 'second names'}" if again else "",
    ]
    return f"{len(every)} {'arm' if len(every) == 1 else 'arms'} ({', '.join(filter(None, kinds))})"


def _without_loss(analysis: Analysis) -> list[str]:
    """Return a sentence on links that lose or delay packets, if this run has none; else []."""
    plan = analysis.results.plan
    if any(profile.impaired for profile in plan.profiles) or analysis.results.environment.get("hosts"):
        return []
    said = (
        "A link that loses or delays packets: none here was made to, and VPNs may come in another order on one that is"
    )
    vpns = " ".join(dict.fromkeys(arm.vpn for arm in plan.arms if arm.vpn not in (DIRECT, ANCHOR)))
    return [f"{said} (`tunnelmark compare {vpns} --profile {remedy.LOSSY}`)." if vpns else f"{said}."]


def _near_hosts(analysis: Analysis) -> list[str]:
    """Return a sentence on profiles by which packets overtake others without any delay between hosts of one machine; or []."""
    plan = analysis.results.plan
    near = [profile.name for profile in plan.profiles if profile.undelayed]
    if not near or analysis.results.environment.get("hosts"):
        return []
    verb = "lets" if len(near) == 1 else "let"
    said = f"Two machines: {formatting.listed(near)} {verb} some packets overtake others without any delay, and TCP allows for"
    said += " that in proportion to the hosts' own round trip, which is much shorter on one machine."
    return [f"{said} A `propagation` in the profile adds what is missing."]


def _other_streams(analysis: Analysis) -> list[str]:
    """Return a sentence on TCP in the direction, and with congestion controls, that were not run; [] without TCP."""
    uses = [use for use in analysis.results.plan.workloads if use.workload == "tcp"]
    if not uses:
        return []
    flows = {str(use.options.get("flows", "forward")) for use in uses}
    one_way = {"forward": "from the last node to the first", "back": "from the first node to the last"}
    missing = [one_way[next(iter(flows))]] if len(flows) == 1 and flows <= set(one_way) else []
    control = mapping(analysis.results.environment.get("lab")).get("congestion_control", "")
    controls = {str(use.options.get("congestion_control", control)) for use in uses} - {""}
    if controls:
        used = formatting.listed([CONTROLS.get(each, each) for each in sorted(controls)])
        missing.append(f"with another congestion control than {used}")
    return [f"TCP {' or '.join(missing)}."] if missing else []


def _without_rate(analysis: Analysis) -> list[str]:
    """Return a sentence on the impaired links that limit no rate; [] if throughput was measured over none of them."""
    shown = []
    for profile in analysis.results.plan.profiles:
        if profile.rate is None and profile.impaired:
            shown += [
                (profile.name, formatting.scale(cell.metric.unit, [cell.spread.median]).value(cell.spread.median))
                for cell in analysis.cells
                if (cell.arm, cell.setting.profile) == (analysis.reference, profile.name)
                and cell.metric.primary
                and is_throughput(cell.metric)
                and cell.spread is not None
            ]
    if not shown:
        return []
    names = list(dict.fromkeys(name for name, _ in shown))
    reached, verb = formatting.listed([value for _, value in shown]), "is" if len(shown) == 1 else "are"
    said = f"{formatting.listed(names)} {'limits' if len(names) == 1 else 'limit'} no rate: {analysis.reference}'s {reached} {verb} what this machine"
    said += " carries and not what such a link would, so shares of it say little about one."
    return [f"{said} `--profile {names[0]}+{remedy.SLOWER}` limits it."]


def _floods(analysis: Analysis) -> list[str]:
    """Return a sentence on the links of which direct itself loses much of a UDP flood; [] if there are none."""
    udp = {use.name for use in analysis.results.plan.workloads if use.workload == "udp"}
    lost = {
        cell.setting.profile: cell.spread.median
        for cell in analysis.cells
        if cell.arm == analysis.reference
        and cell.setting.workload in udp
        and cell.metric.primary
        and (cell.metric.unit, cell.metric.compare) == ("%", "difference")
        and cell.spread is not None
        and cell.spread.median >= FLOODED
    }
    if not lost:
        return []
    shares = formatting.listed([f"{share:.0f} % over {profile}" for profile, share in lost.items()])
    return [
        f"How much of a UDP flood a VPN loses: direct itself loses {shares}, since the sender hands over more than the link, the emulator or a core here carries."
    ]


def decided_once(analysis: Analysis) -> list[str]:
    """Return the names of the profiles whose links decided once for all that a sender hands over, and not by packet."""
    carried = mapping(mapping(analysis.results.environment.get("lab")).get("shaper"))
    return [profile.name for profile in analysis.results.plan.profiles if "unit gso" in str(carried.get(profile.name))]


def _units(analysis: Analysis) -> list[str]:
    """Return a sentence on the links whose impairment is not that of single packets; [] if there are none."""
    names = decided_once(analysis)
    if not names:
        return []
    verb = "decides" if len(names) == 1 else "decide"
    said = f"A line that loses and delays single packets: {formatting.listed(names)} {verb} once for what a sender hands over, "
    return [f"{said}up to 64 KiB, so direct, and VPNs that hand over many packets at once, are hit less often."]


def effects(analysis: Analysis) -> str:
    """Return words that say how effects against direct are computed: `against direct, block by block, so not ...`.

    They end a sentence that the caller begins, such as `Below each value is the effect `. They have no full stop.
    """
    words = f"against {analysis.reference or 'direct'}, block by block, so not the ratio of the medians"
    if has_intervals(analysis):
        return f"{words}, with its 95 % interval"
    return f"{words}; without intervals, for which the blocks are too few"


def has_intervals(analysis: Analysis) -> bool:
    """Return whether any effect against direct has a confidence interval."""
    return any(cell.against_direct and cell.against_direct.interval for cell in analysis.cells)


def rests_on(analysis: Analysis) -> tuple[str, ...]:
    """Return sentences on the number of blocks and attempts, the A/A pairs, and what the intervals cover."""
    plan = analysis.results.plan
    blocks = "one block" if plan.blocks == 1 else f"{plan.blocks} blocks, each with every arm in a new order"
    said = [f"{formatting.capital(blocks)}."]
    said += _open_answers(analysis)
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


def _open_answers(analysis: Analysis) -> list[str]:
    """Say that most answers leave open which VPN is ahead, and why; [] if they do not, or if nothing is ranked."""
    several = [ranking for ranking in analysis.rankings if len(ranking.places) > 1]
    left_open = [
        ranking
        for ranking in several
        if all(place.first == 1 for place in ranking.places)
        and any(
            analysis.cell(place.arm, ranking.setting, ranking.metric).verdict != "equal" for place in ranking.places
        )
    ]
    if 2 * len(left_open) <= len(several):
        return []
    blocks = analysis.results.plan.blocks
    said = f"In {len(left_open)} of {len(several)} answers no VPN is shown to be ahead of another: {blocks} blocks show only "
    return [
        f"{said}large differences{_how_large(analysis, {ranking.setting for ranking in left_open})}, and more of them would show smaller ones."
    ]


def _how_large(analysis: Analysis, left_open: Collection[Scenario]) -> str:
    """Say how large half of the differences of goodput from direct must be to show; "" if that is not known.

    `left_open`: the settings that count: those whose answers leave open which VPN is ahead.
    """
    twins = {arm.name for arm in analysis.results.plan.arms if arm.same_as is not None}
    found = [
        (cell.metric, cell.against_direct.detectable)
        for cell in analysis.cells
        if cell.setting in left_open and cell.arm not in twins
        if cell.metric.primary and cell.metric.compare == "ratio" and is_throughput(cell.metric)
        if cell.against_direct is not None and cell.against_direct.detectable is not None
    ]
    if not found:
        return ""
    metric = found[0][0]
    return f" (in half of the comparisons of a rate with direct, only one beyond {formatting.size(metric, median(size for _, size in found))} would show)"
