"""The commands `run` and `compare`: plan, lab, trials, record, analysis, report, in this order."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import get_args

import click

from tunnelmark import registry
from tunnelmark.cli import (
    binary_overrides,
    core_options,
    enough_options,
    link_capacities,
    param_types,
    retry_options,
    vm,
)
from tunnelmark.cli import collector_options as collectors
from tunnelmark.cli.enough_options import Asked
from tunnelmark.cli.measuring import RunOptions, study_of
from tunnelmark.errors import UsageError
from tunnelmark.plan.compose import comparison
from tunnelmark.plan.files import Files
from tunnelmark.plan.load import load_study, parse_study
from tunnelmark.plan.model import Cascade, Study
from tunnelmark.record import store
from tunnelmark.record.results import INPUTS

PROFILE = "gigabit"
"""What `compare` takes if no profile is named."""

_out = click.option("--out", type=click.Path(path_type=Path), help="Folder for the results [results/STUDY-TIME].")
_blocks = click.option("--blocks", type=int, help="Number of blocks, instead of the study's own.")
_seed = click.option("--seed", type=int, help="Seed of the trial order, instead of the study's own.")
json_option = click.option(
    "--json", "json_", is_flag=True, help="Print the analysis as JSON, and everything else on stderr."
)
dry_option = click.option("--dry-run", is_flag=True, help="Print the trials in order and their duration; run nothing.")


@click.command()
@click.argument("study", required=False, type=param_types.STUDY)
@_blocks
@_seed
@click.option(
    "--smoke", is_flag=True, help="Use the study's short length: shows whether everything works, measures little."
)
@click.option(
    "--full", is_flag=True, help="Use the study's long length, that of the published study that it repeats: hours."
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
@collectors.option
@core_options.option
@retry_options.options
@enough_options.options
@binary_overrides.option
@vm.options
@link_capacities.option
@json_option
@dry_option
def run(
    study: str | None,
    blocks: int | None,
    seed: int | None,
    smoke: bool,
    full: bool,
    out: Path | None,
    resume: Path | None,
    other_boot: bool,
    watch: tuple[str, ...],
    profile_stacks: bool,
    json_: bool,
    no_repeat: bool,
    no_wait: bool,
    enough: Asked,
    dry_run: bool,
    backend: str | None,
    kernels: tuple[str, ...],
    measure_first: bool,
) -> int:
    """Run STUDY: a name (`quick`) or a file (`./my.toml`).

    Every attempt is written to disk as soon as it has ended. A run that was stopped in any way goes on with
    `tunnelmark run --resume DIR`.
    """
    if (study is None) == (resume is None):
        raise UsageError("name one study, or the results to go on with", hint="see `tunnelmark list studies`")
    if resume is not None:
        flags = (kernels, smoke, full, watch, profile_stacks, enough)
        if any(given is not None for given in (seed, out, backend)) or any(flags):
            raise UsageError(
                "a resumed run keeps its seed, length, folder and backend",
                hint="leave --seed, --smoke, --full, --watch, --profile-stacks, --out, --backend, --kernel, --precision, --time-budget and "
                "--max-blocks out",
            )
        loaded = _begun(resume, blocks)
        loaded = loaded.unrepeated if no_repeat else loaded
        guests = vm.of_results(resume)
        ways = RunOptions(
            dry_run,
            json_,
            guests,
            wait=not no_wait,
            resuming=True,
            other_boot=other_boot,
            measure_first=measure_first,
        )
        return study_of(loaded, resume, ways)
    if other_boot:
        raise UsageError("a new run has only one boot", hint="--other-boot goes with --resume")
    assert study is not None
    loaded = asked(
        study,
        blocks=blocks,
        seed=seed,
        smoke=smoke,
        full=full,
        watch=watch,
        profile_stacks=profile_stacks,
        no_repeat=no_repeat,
    )
    loaded = enough.of(loaded, blocks_stated=blocks is not None)
    guests = vm.chosen(backend, kernels)
    return study_of(loaded, out, RunOptions(dry_run, json_, guests, wait=not no_wait, measure_first=measure_first))


def asked(
    study: str,
    *,
    blocks: int | None,
    seed: int | None,
    smoke: bool,
    full: bool,
    watch: tuple[str, ...],
    profile_stacks: bool,
    no_repeat: bool,
) -> Study:
    """The study of that name or path, with what the options of `run` and `repeat` change."""
    catalogue = registry.catalogue()
    loaded = load_study(
        study,
        Files.standard(),
        catalogue,
        blocks=blocks,
        seed=seed,
        smoke=smoke,
        full=full,
        watch=collectors.chosen(watch, catalogue),
    )
    loaded = collectors.with_stacks(loaded, profile_stacks)
    return loaded.unrepeated if no_repeat else loaded


def _begun(folder: Path, blocks: int | None) -> Study:
    """The study of a results folder as it was begun; with `blocks`, as many of them. UsageError if those are not more."""
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
    # A run that repeats nothing stays so; one that does may replace one block in five of those that it has now.
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
    "--no-anchor", is_flag=True, help="Leave out the anchor, our own minimal tunnel that serves as a reference."
)
@_out
@collectors.option
@core_options.option
@core_options.nodes
@retry_options.options
@enough_options.options
@binary_overrides.option
@vm.options
@link_capacities.option
@json_option
@dry_option
def compare(
    vpns: tuple[str, ...],
    profiles: tuple[str, ...],
    topology: str,
    workloads: tuple[str, ...],
    blocks: int,
    seed: int,
    normalised: bool,
    cascade: Cascade | None,
    no_anchor: bool,
    out: Path | None,
    watch: tuple[str, ...],
    profile_stacks: bool,
    node_cores: int,
    json_: bool,
    no_repeat: bool,
    no_wait: bool,
    enough: Asked,
    dry_run: bool,
    backend: str | None,
    kernels: tuple[str, ...],
    measure_first: bool,
) -> int:
    """Compare VPNS, as shipped, with the bare link and with one another."""
    files, catalogue = Files.standard(), registry.catalogue()
    chosen, guests = workloads or ("ping", "tcp", "udp"), vm.chosen(backend, kernels)
    links_of = []
    for profile in profiles or (vm.PROFILE if guests else PROFILE,):
        files, name = files.with_paths("profile", profile)
        links_of.append(name)
    files, topology = files.with_paths("topology", topology)
    text = comparison(
        vpns,
        files,
        catalogue,
        profiles=links_of,
        topology=topology,
        workloads=chosen,
        blocks=blocks,
        seed=seed,
        normalised=normalised,
        cores=node_cores,
        anchor=not no_anchor,
        cascade=cascade,
    )
    study = parse_study(text, "compare", files, catalogue, watch=collectors.chosen(watch, catalogue))
    study = collectors.with_stacks(study, profile_stacks)
    study = enough.of(study.unrepeated if no_repeat else study, blocks_stated=True)
    return study_of(study, out, RunOptions(dry_run, json_, guests, wait=not no_wait, measure_first=measure_first))
