"""The commands `run` and `compare`: they plan a study, run and record its trials in labs, analyse and report them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import get_args

import click

from tunnelmark import registry
from tunnelmark.cli import core_options, output, param_types, real_hosts, run_options, vm
from tunnelmark.cli.measuring import show_gathered, study_of
from tunnelmark.cli.run_options import LengthOptions, RunOptions, asked
from tunnelmark.errors import UsageError
from tunnelmark.plan.compose import comparison
from tunnelmark.plan.files import Files
from tunnelmark.plan.load import load_study, parse_study
from tunnelmark.plan.model import Cascade, Study
from tunnelmark.record import store
from tunnelmark.record.gathered import is_gathered
from tunnelmark.record.results import INPUTS

PROFILE = "gigabit"
"""The profile that `compare` uses if none is named, unless it runs in virtual machines."""

_out = click.option("--out", type=click.Path(path_type=Path), help="Folder for the results [results/STUDY-TIME].")


@click.command()
@click.argument("study", required=False, type=param_types.STUDY)
@run_options.length(
    blocks="Number of blocks, instead of the study's own.", seed="Seed of the trial order, instead of the study's own."
)
@_out
@click.option(
    "--resume",
    "--extend",
    "resume",
    type=param_types.RESULTS,
    help="Continue a run that was stopped, from its results folder; with a higher --blocks, add blocks to a finished one.",
)
@click.option(
    "--other-boot",
    is_flag=True,
    help="With --resume: allow that this machine was restarted since the run began.",
)
@run_options.options()
def run(study: str | None, length: LengthOptions, out: Path | None, resume: Path | None, options: RunOptions) -> int:
    """Run STUDY: a name (`quick`) or a file (`./my.toml`).

    Every attempt is written to disk as soon as it has ended. A run that was stopped in any way goes on with
    `tunnelmark run --resume DIR`.
    """
    if (study is None) == (resume is None):
        raise UsageError("name one study, or the results to go on with", hint="see `tunnelmark list studies`")
    if resume is not None:
        flags = (options.kernels, length.smoke, length.full, options.watch, options.profile_stacks, options.enough)
        kept = (length.seed, out, options.backend, options.inventory)
        if any(given is not None for given in kept) or any(flags) or length.part:
            raise UsageError(
                "a resumed run keeps its seed, length, part, folder and backend",
                hint="leave --arm, --profile, --topology, --workload, --seed, --smoke, --full, --watch, --profile-stacks, --out, --backend, --inventory, --kernel, --precision, --time-budget and "
                "--max-blocks out",
            )
        if is_gathered(resume):
            return _gathered_further(resume, length, options)
        if options.where:
            raise UsageError(
                f"{resume} was begun on one machine, and is finished on it",
                hint="leave --cluster, --hosts, --local and --tls out",
            )
        loaded = options.of(_begun(resume, length.blocks))
        hosts = real_hosts.of_results(resume)
        options.require_heard(hosts)
        return study_of(loaded, resume, replace(options, guests=vm.of_results(resume), on=hosts, resuming=True))
    if options.other_boot:
        raise UsageError("a new run has only one boot", hint="--other-boot goes with --resume")
    assert study is not None
    loaded = options.enough.of(asked(study, length, options), blocks_stated=length.blocks is not None)
    return study_of(loaded, out, options.placed())


def _gathered_further(folder: Path, length: LengthOptions, options: RunOptions) -> int:
    """Measure the remaining blocks of a run over a cluster, on the machines of the options. Return the exit code."""
    if length.blocks is not None:
        raise UsageError("a run over a cluster keeps its number of blocks", hint="leave --blocks out")
    given = {"--rate": options.rate is not None, "--no-repeat": not options.repeat, "--other-boot": options.other_boot}
    if named := [option for option, there in given.items() if there]:
        raise UsageError(
            f"{' and '.join(named)} would change nothing when a run over a cluster goes on",
            hint=f"leave {' and '.join(named)} out",
        )
    from tunnelmark.cli import spread

    if options.dry_run and options.json:
        raise UsageError("a dry run has no results to print as JSON", hint="leave --json or --dry-run out")
    if options.dry_run:
        spread.left(folder, output.console())
        return 0
    if not options.where:
        raise UsageError(
            f"{folder} gathers blocks of a cluster",
            hint="add --cluster ADDRESS, --hosts FILE, or --local N to measure the rest here",
        )
    options.require_heard(None)
    console = options.console()
    spread.go_on(folder, options.where, console, spread.Ways(options.wait, options.measure_first))
    return show_gathered(folder, console, options)


def _begun(folder: Path, blocks: int | None) -> Study:
    """Return the study that a results folder began, with `blocks` in all if given; UsageError if that adds none."""
    info = store.load_plan(folder)
    if blocks is not None and blocks <= info.blocks:
        raise UsageError(f"{folder} has {info.blocks} blocks already", hint="--blocks is the total number of blocks")
    loaded = load_study(
        info.study,
        Files((folder / INPUTS,)),
        registry.catalogue(),
        blocks=blocks or info.blocks,
        grows=False,
        seed=info.seed,
        smoke=info.smoke,
        full=info.full,
        watch=info.watch,
    )
    # A run that replaces no blocks stays so. Another one may replace one in five of the blocks that it has now.
    replacements = max(info.replacements, loaded.replacements) if info.replacements else 0
    return replace(
        loaded,
        attempts=info.attempts,
        replacements=replacements if blocks and not info.enough else info.replacements,
        enough=info.enough,
    )


@click.command()
@click.argument("vpns", nargs=-1, required=True, type=param_types.VPN)
@click.option(
    "--profile",
    "profiles",
    multiple=True,
    type=param_types.PROFILE,
    help=f"What the link does: a name or a file; repeatable, each is a condition [{PROFILE}; with --backend vm: {vm.PROFILE}].",
)
@param_types.once("--topology", default="pair", type=param_types.TOPOLOGY, help="Nodes and links: a name or a file.")
@click.option(
    "--workload",
    "workloads",
    multiple=True,
    type=param_types.WORKLOAD,
    help="Kind of traffic; repeatable [ping, tcp, udp].",
)
@click.option("--blocks", type=int, default=8, show_default=True, help="Number of randomised blocks.")
@click.option("--seed", type=int, default=1, show_default=True, help="Seed of the trial order.")
@click.option("--normalised", is_flag=True, help="Give every arm the same inner MTU and queue, instead of as shipped.")
@click.option(
    "--cascade",
    type=click.Choice(get_args(Cascade)),
    help="Each VPN has a tunnel on each link of a chain (series), or each tunnel runs inside the one before (nested).",
)
@click.option(
    "--behind-gateways",
    is_flag=True,
    help="Each VPN joins two nodes that forward, and the traffic's ends are hosts behind them (topology two-gateways).",
)
@click.option(
    "--no-anchor", is_flag=True, help="Leave out the anchor, our own minimal tunnel that serves as a reference."
)
@_out
@run_options.options(core_options.nodes)
def compare(
    vpns: tuple[str, ...],
    profiles: tuple[str, ...],
    topology: str,
    workloads: tuple[str, ...],
    blocks: int,
    seed: int,
    normalised: bool,
    cascade: Cascade | None,
    behind_gateways: bool,
    no_anchor: bool,
    out: Path | None,
    node_cores: int,
    options: RunOptions,
) -> int:
    """Compare VPNS, as shipped, with the bare link and with one another."""
    files, catalogue = Files.standard(), registry.catalogue()
    options = options.placed()
    links_of = []
    for profile in profiles or (vm.PROFILE if options.guests else PROFILE,):
        files, name = files.with_paths("profile", profile)
        links_of.append(name)
    files, topology = files.with_paths("topology", topology)
    text = comparison(
        vpns,
        files,
        catalogue,
        profiles=links_of,
        topology=topology,
        workloads=workloads or ("ping", "tcp", "udp"),
        blocks=blocks,
        seed=seed,
        normalised=normalised,
        cores=node_cores,
        anchor=not no_anchor,
        cascade=cascade,
        behind_gateways=behind_gateways,
    )
    study = options.of(parse_study(text, "compare", files, catalogue, watch=options.watched()))
    return study_of(options.enough.of(study, blocks_stated=True), out, options)
