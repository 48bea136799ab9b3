"""Lists, in sentences, what a reader must know before using any number of a study."""

from __future__ import annotations

from tunnelmark.analyse.failures import silent
from tunnelmark.analyse.intervals import MIN_BLOCKS
from tunnelmark.analyse.model import Analysis
from tunnelmark.analyse.remedy import mostly_void, reasons, remedies
from tunnelmark.model.attempt import merged_messages
from tunnelmark.report import far_off_direct, formatting, machine_facts, placed, queries, stopped_runs, trial_lengths
from tunnelmark.report.flame_graphs import recorded
from tunnelmark.report.titles import heading
from tunnelmark.units import Rate


def cautions(analysis: Analysis) -> tuple[str, ...]:
    """Return warnings as sentences: for example that a study is unfinished, disturbed, or not to be ranked."""
    said = [*_laboratory(analysis), *_two_answers(analysis), *_guest(analysis), *placed.cautions(analysis)]
    plan = analysis.results.plan
    if analysis.same.standing == "differs":
        said.append(f"Do not rank: {analysis.same.explanation}.")
    elif analysis.same.standing == "not judged" and not analysis.paths_only:
        said.append(f"Nothing is ranked: {analysis.same.explanation}.")
    if analysis.missing:
        done = len(plan.trials) - len(analysis.missing)
        said.append(f"Unfinished: {done} of {len(plan.trials)} trials have run; the rest can still be run.")
    if part := str(plan.design.part):
        said.append(f"A part of the study was measured: {part}.")
    if plan.blocks < MIN_BLOCKS and not analysis.paths_only:
        blocks = "a single block" if plan.blocks == 1 else "two blocks"
        said.append(f"The study has {blocks}: values are shown, but a difference cannot be separated from chance.")
    said += trial_lengths.short(analysis)
    said += far_off_direct.sentences(analysis)
    said += _failed(analysis)
    said += _unlike_voids(analysis)
    said += _disturbed(analysis)
    said += stopped_runs.sentences(analysis)
    said += machine_facts.cautions(analysis)
    said += _not_carried(analysis)
    said += _held_by_the_emulator(analysis)
    if recorded(analysis.results):
        said.append("Stacks were recorded while the numbers were measured, so the numbers include what that costs.")
    return tuple(said)


def _not_carried(analysis: Analysis) -> list[str]:
    """Warn of links that the machine did not carry in time under a full load, as measured before the run."""
    not_carried = analysis.results.not_carried
    said = []
    for profile in analysis.results.plan.profiles:
        if (found := not_carried.get(profile.name)) is not None:
            text = f"A full load without a VPN, before the run, was more than this machine carries over {profile.name} on time: {found['said']}."
            said.append(text + (f" At {Rate(found['instead'])} it was on time." if found["instead"] else ""))
    return said


def _held_by_the_emulator(analysis: Analysis) -> list[str]:
    """Name the conditions in which the laboratory's emulator, and not the link, was the limit of the bare link."""
    held = [
        f"{setting.workload} over {setting.profile} ({setting.topology})"
        for (arm, setting), bound in analysis.bound_by.items()
        if arm == analysis.reference and bound.what == "emulator"
    ]
    if not held:
        return []
    text = f"The link emulator, and not the link, was the limit of {analysis.reference} by {formatting.listed(held)}"
    return [f"{text}: this machine does not carry such a load there, so a VPN's share of it says little."]


def _failed(analysis: Analysis) -> list[str]:
    """Name the arms without any result, and count the failed attempts of the others; void ones are not counted."""
    nothing = silent(analysis.trials) if not analysis.paths_only else ()
    others = [row for row in analysis.failed if row.arm not in nothing]
    said = []
    if nothing:
        verb = "has" if len(nothing) == 1 else "have"
        said.append(f"{formatting.listed([_why(analysis, arm) for arm in nothing])} {verb} no result at all.")
    if others:
        arms = formatting.listed(list(dict.fromkeys(row.arm for row in others)))
        count = f"{len(others)} {'attempt' if len(others) == 1 else 'attempts'}"
        said.append(f"{count} of {arms} failed; figures are shown together with success rates.")
    return said


def _why(analysis: Analysis, arm: str) -> str:
    """Return the arm's name, with the message of its failed attempts in brackets if all have the same one."""
    said = {row.message for row in analysis.failed if row.arm == arm}
    return f"{arm} ({said.pop()})" if len(said) == 1 and None not in said else arm


def _laboratory(analysis: Analysis) -> list[str]:
    """Say how many trials are void, and why; if most of them are, also what to change. [] if none is void."""
    void, trials = analysis.void, len(analysis.trials)
    if not void:
        return []
    why = "; ".join(reasons(void))
    if not mostly_void(analysis):
        return [f"{len(void)} of {trials} trials are void, by the laboratory's fault and not a VPN's: {why}."]
    said = [
        f"The laboratory could not do its work: {len(void)} of {trials} trials are void, which says nothing about any VPN."
    ]
    said.append(f"Why: {why}.")
    return [*said, *(f"What to change: {remedy}." for remedy in remedies(analysis))]


def _unlike_voids(analysis: Analysis) -> list[str]:
    """Warn of arms that are void more often than others, or else of those that are less often: only their better or worse
    trials may remain.
    """
    rates, more = queries.unlike_voids(analysis)
    if not rates:
        return []
    each = [f"{rate.arm} ({rate.void} of {rate.attempts} attempts)" for rate in rates]
    one = len(rates) == 1
    said = (
        f"{formatting.listed(each)} {'was' if one else 'were'} void {'more' if more else 'less'} often than the others (Fisher's exact "
        f"test, p at most {max(rate.q for rate in rates):.2g}), so that may not be chance: {'its' if one else 'their'} numbers may lack "
        "worse or better trials."
    )
    return [said]


def _two_answers(analysis: Analysis) -> list[str]:
    """Warn of primary metrics for which good trials alone give another answer than all usable ones; [] if none does."""
    said = []
    for cell in analysis.cells:
        if cell.metric.primary and cell.good is not None and cell.good.differs:
            assert cell.against_direct is not None and cell.good.against_direct is not None
            both = (
                formatting.effect(cell.metric, cell.against_direct),
                formatting.effect(cell.metric, cell.good.against_direct),
            )
            said.append(
                f"{cell.arm} by {heading(analysis, cell.setting, cell.metric)}: {both[0]} of all, {both[1]} of good ones"
            )
    return [f"Good trials alone say something else than all usable ones: {'; '.join(said)}."] if said else []


def _disturbed(analysis: Analysis) -> list[str]:
    count, usable = len(analysis.disturbed), len(analysis.trials) - len(analysis.failures)
    if not count:
        return []
    often, trials = merged_messages([cause for found in analysis.disturbed for cause in found.causes])[0]
    return [
        f"The machine disturbed {count} of {usable} usable trials; {usable - count} are good. Most often ({trials}): {often}."
    ]


def _guest(analysis: Analysis) -> tuple[str, ...]:
    """Warn that the results are from a virtual machine, and of what they show; () if they are not."""
    guest = analysis.results.environment.get("guest")
    if not guest:
        return ()
    where = f"measured with Linux {guest['kernel']} in a virtual machine (QEMU {guest['qemu']})"
    if not guest["emulated"]:
        return (f"Virtual: {where} under KVM: compare with other numbers of that machine only.",)
    how = f"whose processor is emulated by software and whose clock counts instructions ({guest['clock']})"
    return (f"Emulated: {where} {how}: the numbers show what happens, never how fast it would be on a processor.",)
