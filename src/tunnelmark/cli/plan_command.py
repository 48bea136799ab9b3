"""The command `plan`: says what a study can find before it is run; `plan_price` says what it costs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click
from rich.text import Text

from tunnelmark import registry
from tunnelmark.analyse import block_power, judge, stopping
from tunnelmark.analyse.arms import reference_of
from tunnelmark.cli import output, param_types, plan_price
from tunnelmark.cli.progress import estimate
from tunnelmark.errors import UsageError
from tunnelmark.plan.files import Files
from tunnelmark.plan.load import load_study
from tunnelmark.plan.model import Study
from tunnelmark.plan.order import order
from tunnelmark.record import describe, environment, store
from tunnelmark.record.results import PlanInfo
from tunnelmark.report import power_tables
from tunnelmark.run.runner import RunContext
from tunnelmark.units import Share


@click.group()
def plan() -> None:
    """Look at what a study could find, and what it takes, before it is run."""


plan.add_command(plan_price.price)


@plan.command("power")
@click.argument("study", type=param_types.STUDY)
@click.option(
    "--from", "earlier", type=param_types.RESULTS, help="Take the spread of each arm from this run's results."
)
@click.option("--sd", metavar="PERCENT", help="Take this spread for every arm, such as 10% [5%].")
@click.option("--json", "json_", is_flag=True, help="Print JSON for programs.")
def power_(study: str, earlier: Path | None, sd: str | None, json_: bool) -> None:
    """Say which differences STUDY can see with how many blocks, how long they take, and how to split time.

    The spread of an arm's results from block to block decides that: take it from an earlier run with --from, or state it.
    """
    if earlier is not None and sd is not None:
        raise UsageError("--from and --sd exclude each other", hint="leave --from or --sd out")
    loaded = load_study(study, Files.standard(), registry.catalogue())
    context = RunContext(registry.vpns(), registry.workloads(), environment.socket_buffer_limit())
    info = described(loaded, context)
    reference = reference_of(info)
    together = block_power.questions(info, reference)
    block_seconds = estimate(order(replace(loaded, blocks=1)), context)
    splits: tuple[block_power.Split, ...] = ()
    if earlier is None:
        share = _share(sd)
        spreads, source = block_power.stated(info, reference, share), f"as if every arm scattered by {Share(share)}"
    else:
        found = judge(store.load(earlier))
        cells = {
            (arm.name, p.name, t.name, use.name)
            for arm in info.arms
            for p in info.profiles
            for t in info.topologies
            for use in info.workloads
        }
        spreads = tuple(
            each
            for each in block_power.measured(found)
            if (each.arm, each.setting.profile, each.setting.topology, each.setting.workload) in cells
        )
        if not spreads:
            raise UsageError(
                f"{earlier} says nothing of the arms of {loaded.name} on its links",
                hint="name a run of this study of three blocks or more, or state a spread with --sd",
            )
        source = f"by the blocks of {earlier}"
        took = stopping.block_seconds(found.results)
        splits = block_power.splits(found, took)
        ran = found.results.plan
        as_long = (ran.smoke, ran.full) == (loaded.smoke, loaded.full)
        if as_long and len(ran.trials) == ran.blocks * len(order(replace(loaded, blocks=1)).trials):
            block_seconds = took  # the same trials: their real durations are better than the planned ones
    rows = [block_power.seen(each, together) for each in spreads]
    if json_:
        output.as_json(power_tables.plain(rows, splits, block_seconds))
        return
    console = output.console()
    console.print(Text(f"{loaded.title}: {source}; {together} questions share one chance of error"), soft_wrap=True)
    console.print(power_tables.table(rows, block_seconds))
    console.print(Text(power_tables.EXPLAINED, style="dim"), soft_wrap=True)
    for line in power_tables.sentences(splits):
        console.print(Text(line), soft_wrap=True)


def described(study: Study, context: RunContext) -> PlanInfo:
    """Return the description of one block of a study as results record it, with the metrics of its workloads."""
    one = order(replace(study, blocks=1))
    return describe.describe(
        one, context.drivers, context.workloads, lambda workload: context.watching(study.watch, workload)
    )


def _share(text: str | None) -> float:
    try:
        share = Share.parse("5 %" if text is None else text)
    except ValueError as error:
        raise UsageError(f"--sd {text}: {error}", hint="such as 10%") from error
    if not share:
        raise UsageError("--sd must be above 0", hint="state the standard deviation that you expect, such as --sd 5%")
    return share
