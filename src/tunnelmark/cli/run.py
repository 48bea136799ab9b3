"""The commands `run` and `compare`: plan, lab, trials, record, analysis, report, in this order."""

from __future__ import annotations

import asyncio
import shlex
import time
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from tunnelmark import registry
from tunnelmark.analyse.proofs import unproved
from tunnelmark.cli import bins, capacity, cores, links, names, output, progress, stopping, vm
from tunnelmark.cli import watch as watchers
from tunnelmark.cli.alone import alone
from tunnelmark.cli.report import analysis, show, show_beside
from tunnelmark.errors import MissingPart, UsageError
from tunnelmark.lab import root
from tunnelmark.lab.facts import facts
from tunnelmark.lab.lab import Keeper
from tunnelmark.plan.compose import comparison
from tunnelmark.plan.files import Files
from tunnelmark.plan.load import DIRECT, STACKS, load_study, parse_study
from tunnelmark.plan.model import Plan, Study
from tunnelmark.plan.order import order
from tunnelmark.record import environment, store
from tunnelmark.record.journal import Journal
from tunnelmark.record.results import INPUTS, JOURNAL, RAW
from tunnelmark.run import assets
from tunnelmark.run.loop import Kit, carry_out
from tunnelmark.run.outcome import Attempt
from tunnelmark.run.watch import stacks
from tunnelmark.workloads.base import Workload

_TUN = Path("/dev/net/tun")
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
        return _run(loaded, resume, resuming=True, dry_run=dry_run, json=json_, guests=vm.of_results(resume))
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
    return _run(
        loaded, out, dry_run=dry_run, json=json_, guests=vm.chosen(backend, kernels), measure_first=measure_first
    )


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
    return _run(study, out, dry_run=dry_run, json=json_, guests=guests, measure_first=measure_first)


def _run(
    study: Study,
    out: Path | None,
    *,
    dry_run: bool,
    json: bool,
    guests: tuple[str, ...],
    resuming: bool = False,
    measure_first: bool = True,
) -> int:
    if json and dry_run:
        raise UsageError("a dry run has no results to print as JSON", hint="leave --json or --dry-run out")
    plan = order(study)
    kit = Kit(registry.vpns(), registry.workloads(), environment.socket_buffer_limit())
    console = output.console(stderr=json)
    if dry_run:
        progress.dry_run(console, plan, kit)
        return 0
    if not guests:  # a guest says itself what it lacks
        root.require("the lab makes network namespaces")
        require(plan, kit, console)
        prepare(plan, kit, console)
    measured: Mapping[str, Any] = {}
    if not guests and not resuming:  # a guest measures itself; results that were begun have their rates
        with alone(console, f"a look at this machine for the study {study.name}"):
            study, measured = capacity.before(study, kit, console, look=measure_first)
        plan = order(study)
    named = out or Path("results") / f"{study.name}-{datetime.now():%Y%m%d-%H%M%S}"
    code, places = 0, vm.places(named, guests) if guests else {named: ""}
    for folder, release in places.items():
        progress.opening(console, plan, kit, folder)
        stopping.goes_on(partial(_how_to_go_on, folder))
        with alone(console, f"the study {study.name}", folder, progress.estimate(plan, kit)) as held:
            if guests:
                vm.study(study, folder, release, console, resuming=resuming)
            else:
                left = held.left if held is not None else None
                asyncio.run(measure(plan, kit, folder, resuming, console, measured=measured, left=left))
        stopping.goes_on(f"every trial is kept. Its report: tunnelmark report {shlex.quote(str(folder))}")
        code = max(code, show(folder, console))
    if len(places) > 1:
        show_beside({f"Linux {release}": folder for folder, release in places.items()}, console)
    if json:
        click.echo(analysis(*places))
    return code


def _how_to_go_on(folder: Path) -> str:
    if not (folder / JOURNAL).exists():
        return f"nothing was measured: remove {folder}, and begin anew" if folder.exists() else stopping.ANEW
    return f"every finished trial is kept. Go on with: {go_on(folder)}"


def go_on(folder: Path) -> str:
    """The command that goes on with these results, as it can be copied into a shell."""
    return f"tunnelmark run --resume {shlex.quote(str(folder))}"


async def measure(
    plan: Plan,
    kit: Kit,
    folder: Path,
    resuming: bool,
    console: Console,
    *,
    guest: Mapping[str, Any] | None = None,
    scratch: Path | None = None,
    measured: Mapping[str, Any] | None = None,
    left: Callable[[float], object] | None = None,
) -> None:
    """Carry a plan out with this kernel and record it in the folder.

    `measured` is what was found of the machine before. `guest` is what is known of the virtual machine that this is, if
    it is one; with `scratch` raw output is written there first. `left` is told the seconds that it will take still.
    """
    begun, started = time.monotonic(), time.time()
    watching = partial(kit.watching, plan.study.watch)
    async with Keeper() as keeper:
        keeper.watch()
        async with keeper.lab(plan.study.topologies[0], plan.study.profiles[0]) as lab:
            found = keeper.record | await facts(lab) | links.record(plan.study.profiles)
            found |= {"backend": "vm"} if guest else {}
        parts = [kit.part(arm) for arm in plan.study.arms if kit.missing(arm) is None]
        used = [kit.workloads[use.workload].part for use in plan.study.workloads]
        now = environment.capture(dict.fromkeys(parts), workloads=dict.fromkeys(used), lab=found, guest=guest)
        tested = {arm.vpn for arm in plan.study.arms}
        now |= {"measured": dict(measured)} if measured else {}
        now["matrix"] = [row.plain() for row in registry.matrix() if row.name in tested - {DIRECT}]
        if resuming:
            store.require_same(folder, now)
        else:
            store.create(folder, store.describe(plan, kit.drivers, kit.workloads, watching), plan, now)
        with Journal(folder / JOURNAL) as journal:

            def keep(attempt: Attempt, workload: Workload) -> None:
                if scratch is not None:
                    store.adopt(scratch / attempt.trial.id, folder)
                store.keep(journal, attempt.alone() if guest else attempt, workload, watching(workload))

            journal.append({"begun": started})
            done = store.discard_unfinished(folder)
            proofs = await links.prove(plan, keeper, folder, journal, "before", console, scratch)
            with progress.Live(console, plan, kit, done, left) as watcher:
                await carry_out(
                    plan,
                    kit,
                    keeper,
                    scratch or folder / RAW,
                    done=done,
                    ready=lambda: store.require_space(folder),
                    keep=keep,
                    watcher=watcher,
                    unproved=unproved(proofs),
                )
            await links.prove(plan, keeper, folder, journal, "after", console, scratch)
            journal.append({"wall": time.monotonic() - begun})


def require(plan: Plan, kit: Kit, console: Console) -> None:
    """MissingPart for what no arm could do without, or if no VPN is there; a warning for each arm that cannot take part."""
    lacking = [missing for use in plan.study.workloads if (missing := kit.lacks(use)) is not None]
    if len(lacking) == len(plan.study.workloads):
        raise lacking[0]
    for missing in lacking:
        console.print(f"[yellow]warning:[/] a workload will fail: {missing.message} ({missing.hint})", soft_wrap=True)
    links.require(plan.study.profiles)
    if STACKS in plan.study.watch:
        stacks.require()
    if not _TUN.exists() and any(arm.vpn != DIRECT for arm in plan.study.arms):
        raise MissingPart(
            f"{_TUN} is not there, and every VPN needs it", hint="modprobe tun; in a container, pass the device in"
        )
    vpns = [arm for arm in plan.study.arms if arm.vpn != DIRECT]
    gone = {arm.name: missing for arm in vpns if (missing := kit.missing(arm)) is not None}
    if gone and len(gone) == len(vpns):
        raise next(iter(gone.values()))
    for arm, missing in gone.items():
        console.print(f"[yellow]warning:[/] {arm} cannot take part: {missing.message} ({missing.hint})", soft_wrap=True)


def prepare(plan: Plan, kit: Kit, console: Console) -> None:
    """Make what the workloads need beforehand and this machine does not have yet; MissingPart if it cannot be made."""
    for asset, peer in kit.assets(plan):
        if assets.absent([asset]):
            with console.status(f"making {asset.name}, once on this machine"):
                assets.make(asset, peer)
