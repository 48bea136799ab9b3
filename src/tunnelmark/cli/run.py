"""The commands `run` and `compare`: plan, lab, trials, record, analysis, report, in this order."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click

from tunnelmark import registry
from tunnelmark.cli import bins, capacity, cores, healing, names, vm
from tunnelmark.cli import watch as watchers
from tunnelmark.cli.measuring import Ways, study_of
from tunnelmark.errors import UsageError
from tunnelmark.plan.compose import comparison
from tunnelmark.plan.files import Files
from tunnelmark.plan.load import load_study, parse_study
from tunnelmark.record import store
from tunnelmark.record.results import INPUTS

PROFILE = "gigabit"
"""What `compare` takes if no profile is named."""

_out = click.option("--out", type=click.Path(path_type=Path), help="Folder for the results [results/STUDY-TIME].")
_blocks = click.option("--blocks", type=int, help="Number of blocks, instead of the study's own.")
_seed = click.option("--seed", type=int, help="Seed of the order, instead of the study's own.")
_json = click.option("--json", "json_", is_flag=True, help="Print the analysis as JSON, and all else on stderr.")
_dry = click.option(
    "--dry-run", is_flag=True, help="Print the trials in their order and the time they take; run nothing."
)


@click.command()
@click.argument("study", required=False, type=names.STUDY)
@_blocks
@_seed
@click.option("--smoke", is_flag=True, help="The study's short length: shows whether all of it works, and no more.")
@_out
@click.option("--resume", type=names.RESULTS, help="Go on with a run that was stopped, from its results.")
@watchers.option
@cores.option
@healing.options
@bins.option
@vm.options
@capacity.option
@_json
@_dry
def run(
    study: str | None,
    blocks: int | None,
    seed: int | None,
    smoke: bool,
    out: Path | None,
    resume: Path | None,
    watch: tuple[str, ...],
    profile_stacks: bool,
    json_: bool,
    no_repeat: bool,
    no_wait: bool,
    dry_run: bool,
    backend: str | None,
    kernels: tuple[str, ...],
    measure_first: bool,
) -> int:
    """Run STUDY: a name (`quick`) or a file (`./my.toml`).

    Every attempt is on the disk as soon as it has ended: a run that was stopped in any way goes on with
    `tunnelmark run --resume DIR`.
    """
    if (study is None) == (resume is None):
        raise UsageError("name one study, or the results to go on with", hint="see `tunnelmark list studies`")
    if resume is not None:
        flags = (kernels, smoke, watch, profile_stacks)
        if any(given is not None for given in (blocks, seed, out, backend)) or any(flags):
            raise UsageError(
                "a resumed run keeps its blocks, seed, length, folder and backend",
                hint="leave --blocks, --seed, --smoke, --watch, --profile-stacks, --out, --backend and --kernel out",
            )
        info = store.load_plan(resume)
        files = Files((resume / INPUTS,))
        loaded = load_study(
            info.study,
            files,
            registry.catalogue(),
            blocks=info.blocks,
            seed=info.seed,
            smoke=info.smoke,
            watch=info.watch,
        )
        loaded = replace(loaded, attempts=info.attempts, replacements=info.replacements)
        loaded = loaded.unrepeated if no_repeat else loaded
        ways = Ways(dry_run, json_, vm.of_results(resume), wait=not no_wait, resuming=True)
        return study_of(loaded, resume, ways)
    assert study is not None
    catalogue = registry.catalogue()
    loaded = load_study(
        study,
        Files.standard(),
        catalogue,
        blocks=blocks,
        seed=seed,
        smoke=smoke,
        watch=watchers.chosen(watch, catalogue),
    )
    loaded = watchers.with_stacks(loaded, profile_stacks)
    loaded = loaded.unrepeated if no_repeat else loaded
    guests = vm.chosen(backend, kernels)
    return study_of(loaded, out, Ways(dry_run, json_, guests, wait=not no_wait, measure_first=measure_first))


@click.command()
@click.argument("vpns", nargs=-1, required=True, type=names.VPN)
@click.option(
    "--profile",
    "profiles",
    multiple=True,
    type=names.PROFILE,
    help=f"What the link does, a name or a file; each of several is a condition [{PROFILE}; with --backend vm: {vm.PROFILE}].",
)
@names.once("--topology", default="pair", type=names.TOPOLOGY, help="Which nodes there are, a name or a file.")
@click.option("--workload", "workloads", multiple=True, type=names.WORKLOAD, help="Repeatable [ping, tcp, udp].")
@click.option("--blocks", type=int, default=5, show_default=True, help="Number of randomised blocks.")
@click.option("--seed", type=int, default=1, show_default=True, help="Seed of the order.")
@click.option("--normalised", is_flag=True, help="Give every arm the same inner MTU and queue, instead of as shipped.")
@_out
@watchers.option
@cores.option
@healing.options
@bins.option
@vm.options
@capacity.option
@_json
@_dry
def compare(
    vpns: tuple[str, ...],
    profiles: tuple[str, ...],
    topology: str,
    workloads: tuple[str, ...],
    blocks: int,
    seed: int,
    normalised: bool,
    out: Path | None,
    watch: tuple[str, ...],
    profile_stacks: bool,
    json_: bool,
    no_repeat: bool,
    no_wait: bool,
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
    )
    study = parse_study(text, "compare", files, catalogue, watch=watchers.chosen(watch, catalogue))
    study = watchers.with_stacks(study, profile_stacks)
    study = study.unrepeated if no_repeat else study
    return study_of(study, out, Ways(dry_run, json_, guests, wait=not no_wait, measure_first=measure_first))
