"""Writes how a run was measured, in paragraphs for a paper or report, from its plan, environment and attempts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tunnelmark.analyse.attempts import grade_of
from tunnelmark.analyse.intervals import EXACT_BLOCKS, MIN_BLOCKS, MIN_BOOTSTRAP, RESAMPLES
from tunnelmark.analyse.model import Analysis
from tunnelmark.record import arm_programs
from tunnelmark.record.results import ArmInfo, ProfileInfo, Results, WorkloadInfo
from tunnelmark.report import formatting, host_tables, machine_facts, stopped_runs
from tunnelmark.report.host_tables import mapping

CONTROLS = {"cubic": "CUBIC", "bbr": "BBR", "reno": "Reno"}
"""How congestion controls are written, by the kernel's name."""


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A part of the methods: a heading, and plain text without markup."""

    heading: str
    text: str


def methods(analysis: Analysis) -> tuple[Paragraph, ...]:
    """Return paragraphs on machine, links, arms, workloads, design, statistics and attempts, as far as recorded."""
    results = analysis.results
    return (
        Paragraph("Machine", _machine(results)),
        Paragraph("Links", _links(results)),
        Paragraph("What was compared", _arms(results)),
        Paragraph("Workloads", " ".join(_workload(use) for use in results.plan.workloads)),
        Paragraph("Design", _design(analysis)),
        Paragraph("Statistics", _statistics(analysis)),
        Paragraph("Attempts", _attempts(analysis)),
    )


def _machine(results: Results) -> str:
    record = results.environment
    machine, lab = mapping(record.get("machine")), mapping(record.get("lab"))
    about = host_tables.of_machine("", machine)
    known = ", ".join(filter(None, (about.words, about.system)))
    said = [
        f"All hosts were network namespaces on one machine ({known})."
        if known
        else "All hosts were network namespaces on one machine."
    ]
    if guest := mapping(record.get("guest")):
        clock = (
            f", whose clock counts instructions ({guest['clock']})"
            if guest.get("emulated") and guest.get("clock")
            else ""
        )
        said = [f"All hosts were network namespaces in a virtual machine with Linux {guest.get('kernel', '?')}{clock}."]
    if record.get("hosts"):
        said = [_hosts(record)]
    elif results.plan.cores is not None:
        said.append(f"Each host had {results.plan.cores} {'core' if results.plan.cores == 1 else 'cores'} at most.")
    if control := lab.get("congestion_control"):
        said.append(f"TCP used {CONTROLS.get(control, control)} as congestion control.")
    if version := record.get("tunnelmark"):
        said.append(f"The laboratory was tunnelmark {version}.")
    return " ".join(said)


def _hosts(record: Mapping[str, Any]) -> str:
    """Return a sentence that names the hosts of a study that ran on several, and describes each."""
    known = [f"{host.name} ({' and '.join(host.roles)}: {host.words})" for host in host_tables.hosts(record)]
    return f"Nodes ran on hosts of their own, joined by {host_tables.joined_by(record)}: {formatting.listed(known)}."


def _links(results: Results) -> str:
    plan = results.plan
    said = [f"{_sentence(topology.title)} ({topology.name})." for topology in plan.topologies]
    said += [_profile(profile) for profile in plan.profiles]
    looks = Counter(look.verdict for look in results.link_checks)
    if looks:
        outside = (
            f", {looks['outside']} of them outside of its tolerances"
            if looks["outside"]
            else ", all within its tolerances"
        )
        said.append(
            f"Probes looked at the links {sum(looks.values())} times before, between and after the trials{outside}."
        )
    return " ".join(said)


def _profile(profile: ProfileInfo) -> str:
    rate = f", {formatting.scale('bit/s', [profile.rate]).value(profile.rate)}" if profile.rate else ""
    source = f" Source: {profile.source.rstrip('.')}." if profile.source else ""
    return f"{_sentence(profile.title)} ({profile.name}{rate}).{source}"


def _arms(results: Results) -> str:
    tested = [_arm(arm, results.environment) for arm in results.plan.arms if arm.same_as is None]
    twins = [f"{arm.same_as} again as {arm.name}" for arm in results.plan.arms if arm.same_as is not None]
    said = [f"{len(tested)} arms were compared: {', '.join(tested)}."]
    if twins:
        said.append(
            f"To show what chance does, {formatting.listed(twins)} {'was' if len(twins) == 1 else 'were'} measured under a second name."
        )
    return " ".join(said)


def _arm(arm: ArmInfo, environment: Mapping[str, Any]) -> str:
    version = arm_programs.version(environment, arm)
    options = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in arm.options.items())
    title = "" if arm.title == arm.name else arm.title
    details = [
        title,
        f"version {version}" if version and arm.vpn not in ("direct", "anchor") else "",
        options,
        arm.inner,
        arm.cascade,
        "between two gateways" if arm.behind_gateways else "",
    ]
    details += [f"{key}={value}" for key, value in arm.sysctls.items()]
    known = "; ".join(each for each in details if each)
    return f"{arm.name} ({known})" if known else arm.name


def _workload(use: WorkloadInfo) -> str:
    primary = formatting.listed([metric.title for metric in use.metrics if metric.primary])
    warmup = f" after a warm-up of {formatting.span(use.warmups)} s" if use.warmups[-1] else ""
    window = f", {formatting.span(use.windows)} s{warmup}" if use.windows[-1] else ""
    window += ", by the link" if len(use.windows) + len(use.warmups) > 2 else ""
    return f"{use.title}{window}; primary metrics: {primary}."


def _design(analysis: Analysis) -> str:
    plan = analysis.results.plan
    said = [
        (
            f"{plan.blocks} randomised {'block' if plan.blocks == 1 else 'blocks'} were measured. Each held every arm with every workload on every "
            f"link once, in an order that seed {plan.seed} decided. For each trial daemons were started afresh, and measuring began when packets "
            "passed in all directions and the VPN used the path that it keeps."
        )
    ]
    if plan.design.excluded:
        said.append(f"By its design the study leaves out {'; '.join(map(str, plan.design.excluded))}.")
    if plan.design.included:
        said.append(f"Of these it has all the same {'; '.join(map(str, plan.design.included))}.")
    if part := str(plan.design.part):
        said.append(f"A part of the study was measured: {part}.")
    if plan.attempts > 1:
        said.append(
            f"A trial that the laboratory itself had spoilt was repeated, up to {plan.attempts} attempts; a VPN's own failure was not."
        )
    if plan.enough is not None:
        said.append(
            f"Blocks were added {stopped_runs.until(plan.enough)}, from {plan.enough.floor} to at most {plan.enough.most}."
        )
    return " ".join(said)


def _statistics(analysis: Analysis) -> str:
    against = analysis.reference
    plan = analysis.results.plan
    margins = dict.fromkeys(
        formatting.margin(metric) for use in plan.workloads for metric in use.metrics if metric.primary
    )
    if plan.blocks < MIN_BLOCKS:
        made = f"With fewer than {MIN_BLOCKS} blocks no interval and no test is given."
    elif plan.blocks < MIN_BOOTSTRAP:
        made = "Intervals (95 %) are Student's."
    else:
        exact = "enumerated exactly" if plan.blocks <= EXACT_BLOCKS else f"{RESAMPLES:,} resamples"
        made = (
            f"Intervals (95 %) are expanded percentile bootstrap intervals over blocks ({exact}; Hesterberg 2015); where zeros or blocks far off "
            "would mislead a mean, the median is given with its sign interval (Thompson 1936)."
        )
    pair = f"Each arm was compared with {against} within blocks" if against else "Arms were compared within blocks"
    return (
        f"{pair}, by the geometric mean of ratios, or the mean of differences for delays and shares. {made} Two arms are called different where a "
        "paired t test is below 5 % after Holm's correction over all pairs, primary metrics and conditions of the study, and the difference is larger than "
        f"what the same thing under two names showed; equal where two one-sided tests (Schuirmann 1987) hold it within a margin stated before "
        f"({', '.join(margins)}). Intervals cover {machine_facts.covers(analysis.results)}."
    )


def _attempts(analysis: Analysis) -> str:
    plan = analysis.results.plan
    grades = Counter(grade_of(row) for row in analysis.trials if row.outcome == "ok")
    failed, void = len(analysis.failed), len(analysis.void)
    more = sum(row.block > plan.blocks for row in analysis.trials)
    added = f", {more} of them in blocks that were added for void ones," if more else ""
    said = [
        (
            f"Of {len(analysis.trials) + len(analysis.missing)} planned trials{added} {sum(grades.values())} have a result ({grades['good']} good, {grades['disturbed']} disturbed by "
            f"the machine), {failed} failed, {void} were void by the laboratory's fault, {len(analysis.missing)} were not measured."
        )
    ]
    if analysis.repeated:
        many = len(analysis.repeated) > 1
        said.append(
            f"{len(analysis.repeated)} {'attempts' if many else 'attempt'} that the laboratory had spoilt, all or in part, "
            f"{'were' if many else 'was'} made again."
        )
    return " ".join(said)


def _sentence(text: str) -> str:
    return formatting.capital(text).rstrip(".")
