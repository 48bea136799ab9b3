"""`tunnelmark study`: shows published studies that tunnelmark repeats, their claims, and a run's verdict on each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
from rich.text import Text

from tunnelmark.claims import raw, reading
from tunnelmark.claims.across_machines import MachineVerdicts
from tunnelmark.claims.judging import judge
from tunnelmark.claims.model import OUTCOMES, ClaimOutcome, ClaimsFile, Judged
from tunnelmark.claims.originals import NOT_STATED
from tunnelmark.claims.printed import PrintedValues
from tunnelmark.claims.raw.recomputed import compare_with_printed
from tunnelmark.cli import output, param_types
from tunnelmark.cli.run import run
from tunnelmark.errors import UsageError
from tunnelmark.report import claim_tables, formatting, machine_claims, raw_tables, repetition

_STYLES: dict[ClaimOutcome, str] = {
    "held": "green",
    "did not hold": "red",
    "undecided": "yellow",
    "not testable": "dim",
}
_SOURCE = param_types.Name("source", reading.names)
_ONLY = click.option(
    "--only", multiple=True, type=click.Choice(OUTCOMES), help="Show only claims with this verdict; may be given again."
)


@click.group()
def study() -> None:
    """Look at published studies: what they claim, and what a run says of each claim."""


study.add_command(run)  # the same command, where people who repeat a study look for it


@study.command("list")
def list_() -> None:
    """List the published studies, the study that repeats each, and how many claims there are."""
    found = [reading.find(name) for name in reading.names()]
    output.table(
        ("source", "study", "claims", "title"),
        [(each.name, ", ".join((each.study, *each.also)), str(len(each.claims)), each.title) for each in found],
    )


@study.command()
@click.argument("source", type=_SOURCE)
@click.option("--json", "json_", is_flag=True, help="Print JSON for programs.")
def show(source: str, json_: bool) -> None:
    """Show what SOURCE claims, whether its own figures bear it out, and how the study differs from it."""
    claims = reading.find(source)
    values = PrintedValues.of_source(claims)
    judged = [judge(claim, values) for claim in claims.claims]
    if json_:
        output.as_json(claim_tables.as_data(claims, judged))
        return
    _head(claims)
    console = output.console()
    if all(each.outcome == "not testable" for each in judged):
        judged = [replace(each, reason="") for each in judged]
        console.print(f"{len(claims.claims)} claims; the source prints no figures that one could be held against:\n")
    else:
        console.print(f"{len(claims.claims)} claims, held against the source's own figures:\n")
    _table(claims, judged, OUTCOMES)
    for each in judged:
        if each.claim.contradicted:
            console.print(f"\n{each.claim.id}: {each.claim.contradicted}", soft_wrap=True)


@study.command()
@click.argument("results", type=param_types.RESULTS)
@click.option(
    "--claims", "source", type=_SOURCE, help="The source whose claims are judged  [that of the study that was run]"
)
@_ONLY
@click.option("--json", "json_", is_flag=True, help="Print JSON for programs.")
def verdict(results: Path, source: str | None, only: tuple[ClaimOutcome, ...], json_: bool) -> None:
    """Say of each published claim whether it held in RESULTS, a folder that a run has written.

    Of several runs (`repeat`, `merge`, `run --cluster`): on which of the machines it held, and on machines like these.
    """
    from tunnelmark import analyse
    from tunnelmark.claims.across_machines import of_machines
    from tunnelmark.claims.verdicts import of_run
    from tunnelmark.record import several_runs, store
    from tunnelmark.record.gathered import of_one_machine
    from tunnelmark.report.cautions import cautions

    asked = reading.find(source) if source else None
    results = of_one_machine(results)
    if several_runs.is_merged(results):
        runs = {member.name: run for member, run in several_runs.load(results)}
        over = of_machines(runs, asked)
        if over is None:
            raise _no_claims(next(iter(runs.values())).plan.study)
        _over_machines(over, only, json_=json_)
        return
    analysis = analyse.judge(store.load(results))
    found = of_run(analysis, asked)
    if found is None:
        raise _no_claims(analysis.results.plan.study)
    if json_:
        data = _chosen(claim_tables.as_data(found.claims, found.judged), only)
        output.as_json({**data, "cautions": cautions(analysis)})
        return
    _repeated(repetition.repetition(analysis, found))
    _warned(cautions(analysis))
    _judged(found.claims, found.judged, only)


@study.command()
@click.argument("source", type=_SOURCE)
@click.argument("format_", metavar="FORMAT", type=param_types.Name("format of raw data", raw.FORMATS.keys))
@click.argument("folder", type=click.Path(path_type=Path))
@_ONLY
@click.option("--json", "json_", is_flag=True, help="Print JSON for programs.")
def published(source: str, format_: str, folder: Path, only: tuple[ClaimOutcome, ...], json_: bool) -> None:
    """Judge the claims of SOURCE by raw data that its authors published: FOLDER, in FORMAT (vpn-bench, knb or iperf3).

    Says first which printed values the data give, which runs are missing, and what the design of the source does not allow.
    Runs of other dates next to FOLDER are named where they give what it does not.

    In the format iperf3 the runs may be your own: each file is what `iperf3 --json` printed at the client,
    CONDITION/ARM/NAME.json; an empty FOLDER is answered with the names that SOURCE has.
    """
    claims = reading.find(source)
    values = raw.read(format_, folder, claims)
    others = [raw.read(format_, each, claims) for each in raw.further_runs(format_, folder)]
    recomputed = compare_with_printed(claims, values, others)
    judged = tuple(judge(claim, values) for claim in claims.claims)
    if json_:
        data = claim_tables.as_data(claims, judged) | raw_tables.as_data(values, recomputed)
        output.as_json(_chosen(data, only))
        return
    console = output.console()
    console.print(Text.assemble((claims.title, "bold"), f": raw data {values.name}"), soft_wrap=True)
    for title, said in (
        ("What its design does not allow", values.design),
        ("Runs without a value", values.missing()),
        ("Runs that succeeded only when they were tried again", values.retried()),
    ):
        if said:
            console.print(f"\n{title}:", soft_wrap=True)
            for each in said:
                console.print(Text(f"  - {each}"), soft_wrap=True)
    console.print(f"\n{raw_tables.summary(recomputed)}\n", soft_wrap=True)
    if differing := raw_tables.differing(recomputed):
        output.table(raw_tables.HEAD, differing)
        console.print()
    _judged(claims, judged, only)


def _chosen(data: Mapping[str, Any], only: Sequence[ClaimOutcome]) -> Mapping[str, Any]:
    """Return the JSON data with only the verdicts that `only` names; with all of them if it is empty."""
    kept = [verdict for verdict in data["verdicts"] if verdict["outcome"] in (only or OUTCOMES)]
    return {**data, "verdicts": kept}


def _no_claims(study_name: str) -> UsageError:
    return UsageError(
        f"there are no published claims of the study {study_name}",
        hint=f"name a source by --claims: {', '.join(reading.names())}",
    )


def _over_machines(found: MachineVerdicts, only: Sequence[ClaimOutcome], *, json_: bool) -> None:
    if json_:
        output.as_json(_chosen(machine_claims.as_data(found), only))
        return
    _head(found.claims)
    console = output.console()
    console.print(Text(machine_claims.summary(found), style="bold"), soft_wrap=True)
    for name, described in found.described.items():
        console.print(Text(f"  {name}: {described}"), soft_wrap=True)
    if found.left_out:
        left_out = ", ".join(found.left_out)
        console.print(f"left out, as they asked something else than the first: {left_out}", soft_wrap=True)
    console.print()
    rows = [
        (
            Text(claim_tables.SIGNS[each.outcome], style=_STYLES[each.outcome]),
            each.id,
            each.says,
            each.allowed,
            each.machines,
            each.together,
        )
        for each in machine_claims.lines(found)
        if each.outcome in (only or OUTCOMES)
    ]
    output.table(machine_claims.HEAD, rows)
    console.print(f"\n{machine_claims.LEGEND}", soft_wrap=True)


def _judged(claims: ClaimsFile, judged: Sequence[Judged], only: Sequence[ClaimOutcome]) -> None:
    """Print the claims with their verdicts, and why some cannot be tested."""
    console = output.console()
    console.print(Text(claim_tables.summary(judged), style="bold"), soft_wrap=True)
    console.print()
    if concluded := claim_tables.conclusions(claims, judged):
        output.table(claim_tables.CONCLUSIONS_HEAD, [(each.says, each.fared, each.place) for each in concluded])
        console.print(f"\n{claim_tables.shared_figures(judged)}\n", soft_wrap=True)
    signs = ", ".join(f"{sign} {outcome}" for outcome, sign in claim_tables.SIGNS.items())
    console.print(f"{signs}: explained below", soft_wrap=True)
    _table(claims, judged, only or OUTCOMES)
    if untested := claim_tables.reasons(judged):
        console.print("\nnot testable here, because")
        output.table(("claims", "reason"), [(str(count), reason) for reason, count in untested])
    console.print(f"\n{claim_tables.LEGEND}", soft_wrap=True)


def _repeated(found: repetition.Repetition) -> None:
    """Print the source next to the run that repeats it, and what else the run does otherwise."""
    console = output.console()
    console.print(Text(found.source, style="bold"), soft_wrap=True)
    if found.part:
        console.print(found.part, soft_wrap=True)
    console.print()
    output.table(repetition.HEAD, found.rows)
    if found.otherwise:
        console.print("\nWhat else this run does otherwise than the source:", soft_wrap=True)
        for topic, said in found.otherwise:
            for number, each in said:
                console.print(Text(f"  {number}. {topic}: {each}"), soft_wrap=True)
    console.print()


def _warned(said: Sequence[str]) -> None:
    """Print what a reader must know before using any number of a run."""
    console = output.console()
    for each in said:
        console.print(Text(f"! {each}"), soft_wrap=True)
    if said:
        console.print()


def _head(claims: ClaimsFile) -> None:
    console = output.console()
    console.print(Text.assemble((claims.source.full, "bold")), soft_wrap=True)
    there = claims.there
    said = (
        ("hosts", there.hosts),
        ("kernel", there.kernel),
        ("links", there.links),
        *there.versions.items(),
        *there.tools.items(),
        *((f"length of {name}", length) for name, length in there.lengths.items()),
        ("repeats", there.runs),
    )
    console.print("\nHow it measured:", soft_wrap=True)
    for name, text in said:
        console.print(Text(f"  - {name}: {text or NOT_STATED}"), soft_wrap=True)
    if claims.differences:
        console.print(f"\nWhat the study {claims.study} does otherwise than the source:", soft_wrap=True)
        for each in claims.differences:
            other = (
                f"{formatting.listed(each.studies)}: " if claims.study not in (each.studies or [claims.study]) else ""
            )
            console.print(Text(f"  - {other}{each.says}"), soft_wrap=True)
    console.print()


def _table(claims: ClaimsFile, judged: Sequence[Judged], only: Sequence[ClaimOutcome]) -> None:
    rows = [
        (
            Text(line.sign, style=_STYLES[line.outcome]),
            line.id,
            line.says,
            line.printed,
            line.allowed,
            line.found,
        )
        for line in claim_tables.lines(claims, judged)
        if line.outcome in only
    ]
    output.table(("", "claim", "says", "in the source", "allowed", "found"), rows)
