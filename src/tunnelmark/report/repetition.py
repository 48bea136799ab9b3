"""Says how a run repeats a published source and how it differs, from the source's file and the run's own record."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import median
from typing import Any

from tunnelmark.analyse.arms import DIRECT
from tunnelmark.analyse.model import Analysis
from tunnelmark.claims.differences import conditions_of
from tunnelmark.claims.measured import RunValues
from tunnelmark.claims.model import OUTCOMES, Cell, ClaimOutcome, ClaimsFile
from tunnelmark.claims.originals import NOT_STATED, TOPICS, Topic
from tunnelmark.claims.verdicts import Verdicts
from tunnelmark.record import arm_programs
from tunnelmark.record.results import WorkloadInfo
from tunnelmark.report import formatting, host_tables, placed
from tunnelmark.report.host_tables import mapping
from tunnelmark.units import clock

HEAD = ("what", "there", "here")
"""The columns of `Repetition.rows`."""

TITLES: dict[Topic, str] = {
    "hosts": "Hosts",
    "links": "Links",
    "programs": "Programs",
    "traffic": "Traffic",
    "figures": "Figures",
}

NOT_RECORDED = "not recorded"
_NOT_RUN = "not in this run"


@dataclass(frozen=True, slots=True)
class Repetition:
    """A run compared with the source that it repeats.

    `short` and `source` name the source: in short, and in full as a reader would search for it. `part`: a sentence on
    the part of the source that the study repeats; "" if it is the whole. `counts`: how many claims have each verdict.
    `rows`: each row has three texts, in the columns of `HEAD`: a subject such as the kernel, what the source states
    about it, and what the run recorded. `otherwise`: the differences that no row shows, in pairs of a topic and its
    differences, each with its number in `Judged.differences`.
    """

    short: str
    source: str
    part: str
    counts: tuple[tuple[ClaimOutcome, int], ...]
    rows: tuple[tuple[str, str, str], ...]
    otherwise: tuple[tuple[str, tuple[tuple[int, str], ...]], ...]

    @property
    def sentences(self) -> int:
        """The number of differences that no row shows."""
        return sum(len(said) for _, said in self.otherwise)


def repetition(analysis: Analysis, verdicts: Verdicts) -> Repetition:
    """Compare a run with its source, given the verdicts on the source's claims."""
    claims, plan = verdicts.claims, analysis.results.plan
    counts = Counter(each.outcome for each in verdicts.judged)
    part = ""
    if plan.study != claims.study:
        part = f"This study repeats a part of it: {len(verdicts.judged)} of its {len(claims.claims)} claims."
    said: dict[Topic, tuple[tuple[int, str], ...]] = {
        topic: tuple(
            (number, each.says) for number, each in enumerate(verdicts.differences, start=1) if each.topic == topic
        )
        for topic in TOPICS
    }
    return Repetition(
        claims.source.short,
        formatting.capital(claims.source.full),
        part,
        tuple((outcome, counts[outcome]) for outcome in OUTCOMES if counts[outcome]),
        tuple(_rows(analysis, verdicts)),
        tuple((TITLES[topic], found) for topic, found in said.items() if found),
    )


def _rows(analysis: Analysis, verdicts: Verdicts) -> Iterable[tuple[str, str, str]]:
    there, record = verdicts.claims.there, analysis.results.environment
    yield "hosts", there.hosts or NOT_STATED, _hosts(analysis)
    several = {each.kernel for each in host_tables.hosts(record) if each.kernel}
    kernels = several or {str(mapping(record.get("machine")).get("kernel") or "")} - {""}
    if guest := mapping(record.get("guest")):
        kernels = {str(guest.get("kernel", ""))} - {""}
    here = formatting.listed([f"Linux {each}" for each in sorted(kernels)])
    yield "kernel", there.kernel or NOT_STATED, here or NOT_RECORDED
    yield "links", there.links or NOT_STATED, _links(analysis, verdicts.claims)
    yield from _names(analysis, verdicts)
    yield from _bare_link(analysis, verdicts)
    yield from _versions(analysis, verdicts)
    for tool, version in there.tools.items():
        used = str(mapping(mapping(record.get("tools")).get(tool)).get("version") or NOT_RECORDED)
        yield tool, version, used
    yield from _lengths(analysis, verdicts)
    yield "repeats", there.runs or NOT_STATED, _repeats(analysis)
    if missing := _missing(analysis, verdicts):
        yield "not run", "", missing


def _hosts(analysis: Analysis) -> str:
    """Say where the nodes of this run were, and how many cores a node had at most, if that was limited."""
    results = analysis.results
    where = host_tables.where(results.environment, kernel=False) or NOT_RECORDED
    if results.plan.cores is not None and not results.environment.get("hosts"):
        most = placed.most_cores(analysis) or results.plan.cores
        where += f"; {most} {'core' if most == 1 else 'cores'} at most for a node"
    return where


def _names(analysis: Analysis, verdicts: Verdicts) -> Iterable[tuple[str, str, str]]:
    """Yield rows with the names that the source and this run have for the same arms and conditions, if they differ."""
    claims, plan = verdicts.claims, analysis.results.plan
    ran, measured = {arm.name for arm in plan.arms}, conditions_of(claims, plan)
    conditions = {name: each for name, each in claims.conditions.items() if name in measured}
    for what, names in (
        ("names of arms", {there: here for there, here in claims.arms.items() if here in ran}),
        (
            "names of conditions",
            {each.title: " ".join([each.profile, each.topology]).strip() for each in conditions.values()},
        ),
    ):
        unlike = [(there, here) for there, here in names.items() if there.lower() != here.lower()]
        if unlike:
            yield what, "; ".join(there for there, _ in unlike), "; ".join(here for _, here in unlike)


def _bare_link(analysis: Analysis, verdicts: Verdicts) -> Iterable[tuple[str, str, str]]:
    """Yield a row with the bare link's rate in each condition, by the first rate that the source prints of it.

    It shows whether the repeated link is that of the source. The study's values are medians over blocks, as in the tables of a report.
    """
    claims, values = verdicts.claims, RunValues(verdicts.claims, analysis)
    direct = next((name for name, arm in claims.arms.items() if arm == analysis.reference), None)
    bare = {arm.name for arm in analysis.results.plan.arms if arm.vpn == DIRECT} & set(claims.arms.values())
    label = f"bare link, {direct}" if len(bare) > 1 else "bare link"
    for quantity in (each for each in claims.quantities.values() if each.kind == "rate"):
        cells = [Cell(quantity.name, condition, str(direct)) for condition in claims.conditions]
        known = [cell for cell in cells if cell in claims.printed and claims.conditions[cell.condition].profile]
        measured = {cell: sample.values for cell in known if (sample := values.of(cell)) is not None and sample.values}
        if not measured:
            continue
        titles = {cell: claims.conditions[cell.condition].title for cell in known}
        printed = [claims.printed[cell].value for cell in measured]
        there = ", ".join(f"{titles[cell]} {claims.printed[cell].value:g}" for cell in measured)
        if len(set(printed)) == 1:  # a source may print one value and not say which of these conditions it is of
            there = f"{printed[0]:g}"
        here = ", ".join(f"{titles[cell]} {median(found.values()):.3g}" for cell, found in measured.items())
        yield label, f"{there} {quantity.unit}", f"{here} {quantity.unit}"
        return


_CARRIERS = (
    ("tunnelmark-emulator", "tunnelmark's emulator"),
    ("netem on the", "the kernel's netem"),
    ("tbf", "a shaper of the kernel"),
    ("veth pairs", "virtual links without a shaper"),
)


def _links(analysis: Analysis, claims: ClaimsFile) -> str:
    """Say what carried the links that claims are about and on which hosts, according to the run's record."""
    judged = {claims.conditions[name].profile for name in conditions_of(claims, analysis.results.plan)}
    recorded = mapping(mapping(analysis.results.environment.get("lab")).get("shaper"))
    described = [str(each) for profile, each in recorded.items() if profile in judged]
    if not described:
        return NOT_RECORDED
    carriers = [words for mark, words in _CARRIERS if any(mark in each for each in described)]
    place = "on the sending hosts" if all("netem on the sender" in each for each in described) else "on a middle node"
    said = f"{formatting.listed(carriers)} {place}"
    units = [name for name in ("wire", "gso") if any(f"unit {name}" in each for each in described)]
    decides = {"wire": "each packet on the wire", "gso": "what the sender hands over"}
    return said + (f"; decides for {formatting.listed([decides[unit] for unit in units])}" if units else "")


def _versions(analysis: Analysis, verdicts: Verdicts) -> Iterable[tuple[str, str, str]]:
    """Yield a row for each program under test whose version the source names, and one row for all others."""
    claims, known = verdicts.claims, {arm.name: arm for arm in analysis.results.plan.arms}
    named: dict[tuple[str, str], list[str]] = {}
    others: dict[str, None] = {}
    nothing = _silent(analysis)
    for arm, mine in claims.arms.items():
        if (ran := known.get(mine)) is None or ran.vpn == "direct":
            continue
        record = arm_programs.recorded(analysis.results.environment, ran)
        here = "no result" if mine in nothing else _ran(ran.vpn, record)
        if arm in claims.there.versions:
            named.setdefault((claims.there.versions[arm], here), []).append(arm)
        elif mine not in nothing:
            others[here] = None
    for (there, here), arms in named.items():
        yield formatting.listed(arms), there, here
    stated = {here for _, here in named}
    if left := [each for each in others if each not in stated]:
        yield "other VPNs" if named else "VPNs", NOT_STATED, formatting.listed(left)


def _silent(analysis: Analysis) -> list[str]:
    """Return the arms of the plan without any result."""
    return [each.arm for each in analysis.arms if not each.success.count]


def _ran(driver: str, vpn: Mapping[str, Any]) -> str:
    """Return a VPN with its version, and its programs of other versions: `tailscale 1.98.0 with headscale 0.26.1`.

    If a recipe pins the program that has the VPN's name, its version counts: wireguard-go prints one for many commits.
    """
    programs = {name: mapping(details).get("version") for name, details in mapping(vpn.get("programs")).items()}
    version = str(programs.get(driver) or vpn.get("version") or "")
    others = [f"{name} {own}" for name, own in programs.items() if own and own != version]
    return f"{driver} {version}".strip() + (f" with {formatting.listed(others)}" if others else "")


def _lengths(analysis: Analysis, verdicts: Verdicts) -> Iterable[tuple[str, str, str]]:
    """Yield a row for each workload whose length the source states: that length, and the one of this run."""
    plan, claims = analysis.results.plan, verdicts.claims
    uses = {use.name: use for use in plan.workloads}
    for name, there in claims.there.lengths.items():
        if name in uses:
            yield f"length of {name}", there, _length(uses[name])
        elif plan.study == claims.study and name in _measured(verdicts):
            yield f"length of {name}", there, _NOT_RUN


def _measured(verdicts: Verdicts) -> set[str]:
    """Return the workloads that the judged claims are about, without those that only another study has."""
    quantities = verdicts.claims.quantities
    statements = [statement for each in verdicts.judged for statement in each.claim.statements]
    used = {cell.quantity for statement in statements for cell in statement.cells}
    return {quantities[name].workload for name in used if not quantities[name].study}


def _length(use: WorkloadInfo) -> str:
    """Return a workload's length: its number of requests or the size that it copies, if it has one, else its window."""
    counted = {"requests": "{} requests", "size": "{} once"}
    named = (words.format(use.options[name]) for name, words in counted.items() if use.options.get(name))
    said = next(named, " to ".join(dict.fromkeys(map(_seconds, (use.windows[0], use.windows[-1])))))
    return said + (f", after {formatting.span(use.warmups)} s that are left out" if use.warmups[-1] else "")


def _seconds(seconds: float) -> str:
    return f"{seconds:g} s" if seconds < 60 else clock(seconds).replace(" 00 s", "")


def _repeats(analysis: Analysis) -> str:
    """Say how many blocks were measured, and, if not all trials have a result, how many have."""
    plan, rows = analysis.results.plan, analysis.results.trials
    blocks = {row.block for row in rows if row.outcome == "ok"}
    done = len({row.trial for row in rows if row.outcome == "ok"})
    whole = len({row.trial for row in rows} | set(plan.trials))
    own = sum(block <= plan.blocks for block in blocks)
    planned = "" if own == plan.blocks else f" of {plan.blocks}"
    more = f" and {len(blocks) - own} added for void trials" if len(blocks) > own else ""
    said = (
        f"{own}{planned} {'block' if plan.blocks == 1 else 'blocks'}{more}, each with one trial of each in a new order"
    )
    if analysis.results.plan.smoke:
        said += ", in the shortest length"
    return said if done == whole else f"{said}; {done} of {whole} trials have a result"


def _missing(analysis: Analysis, verdicts: Verdicts) -> str:
    """Name arms and conditions of the source that this run lacks, and arms without any result; "" if there are none."""
    claims, plan = verdicts.claims, analysis.results.plan
    said = []
    if plan.study == claims.study:
        arms = {arm.name for arm in plan.arms}
        left = [*(name for name, mine in claims.arms.items() if mine not in arms), *claims.absent]
        ours = conditions_of(claims, plan)
        said += left
        profiles = {each.name for each in plan.profiles}
        said += [
            f"{each.title}, by the profile {each.profile}"
            if each.profile and each.profile not in profiles
            else each.title
            for name, each in claims.conditions.items()
            if name not in ours
        ]
        if claims.also:
            one = len(claims.also) == 1
            said.append(
                f"further parts of it, for which there {'is a study' if one else 'are studies'} of {'its' if one else 'their'} own: {formatting.listed(claims.also)}"
            )
    if silent := _silent(analysis):
        said.append(f"{formatting.listed(silent)} (in the plan, but without a result)")
    return "; ".join(said)
