"""The commands `run` and `compare`: plan, lab, trials, record, analysis, report, in this order."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.text import Text

from tunnelmark import registry
from tunnelmark.analyse.proofs import reopened
from tunnelmark.cli import bins, healing, links, names, progress, vm
from tunnelmark.cli import watch as watchers
from tunnelmark.cli.alone import alone
from tunnelmark.cli.report import show, show_beside
from tunnelmark.errors import MissingPart, UsageError
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
from tunnelmark.run.calm import Calm
from tunnelmark.run.healing import Ledger
from tunnelmark.run.loop import Kit, carry_out
from tunnelmark.run.outcome import Attempt, folder_of
from tunnelmark.run.watch import stacks
from tunnelmark.workloads.base import Workload

_TUN = Path("/dev/net/tun")
_STOPPED = 130  # 128 + SIGINT
PROFILE = "gigabit"
"""What `compare` takes if no profile is named."""

_out = click.option("--out", type=click.Path(path_type=Path), help="Folder for the results [results/STUDY-TIME].")
_blocks = click.option("--blocks", type=int, help="Number of blocks, instead of the study's own.")
_seed = click.option("--seed", type=int, help="Seed of the order, instead of the study's own.")
_dry = click.option(
    "--dry-run", is_flag=True, help="Print the trials in their order and the time they take; run nothing."
)


@click.command()
@click.argument("study", required=False, type=names.STUDY)
@_blocks
@_seed
@click.option("--smoke", is_flag=True, help="The study's short length: shows whether all of it works, and no more.")
@_out
@click.option("--resume", type=click.Path(path_type=Path), help="Go on with a run that was stopped, from its results.")
@watchers.option
@healing.options
@bins.option
@vm.options
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
    no_repeat: bool,
    no_wait: bool,
    dry_run: bool,
    backend: str | None,
    kernels: tuple[str, ...],
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
        return _run(loaded, resume, resuming=True, dry_run=dry_run, guests=vm.of_results(resume), wait=not no_wait)
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
    return _run(loaded, out, resuming=False, dry_run=dry_run, guests=vm.chosen(backend, kernels), wait=not no_wait)


@click.command()
@click.argument("vpns", nargs=-1, required=True, type=names.VPN)
@click.option("--profile", type=names.PROFILE, help=f"What the link does [{PROFILE}; with --backend vm: {vm.PROFILE}].")
@click.option("--topology", default="pair", show_default=True, type=names.TOPOLOGY, help="Which nodes there are.")
@click.option("--workload", "workloads", multiple=True, type=names.WORKLOAD, help="Repeatable [ping, tcp, udp].")
@click.option("--blocks", type=int, default=5, show_default=True, help="Number of randomised blocks.")
@click.option("--seed", type=int, default=1, show_default=True, help="Seed of the order.")
@click.option("--normalised", is_flag=True, help="Give every arm the same inner MTU and queue, instead of as shipped.")
@_out
@watchers.option
@healing.options
@bins.option
@vm.options
@_dry
def compare(
    vpns: tuple[str, ...],
    profile: str | None,
    topology: str,
    workloads: tuple[str, ...],
    blocks: int,
    seed: int,
    normalised: bool,
    out: Path | None,
    watch: tuple[str, ...],
    profile_stacks: bool,
    no_repeat: bool,
    no_wait: bool,
    dry_run: bool,
    backend: str | None,
    kernels: tuple[str, ...],
) -> int:
    """Compare VPNS, as shipped, with the bare link and with one another."""
    files, catalogue = Files.standard(), registry.catalogue()
    chosen, guests = workloads or ("ping", "tcp", "udp"), vm.chosen(backend, kernels)
    text = comparison(
        vpns,
        files,
        catalogue,
        profile=profile or (vm.PROFILE if guests else PROFILE),
        topology=topology,
        workloads=chosen,
        blocks=blocks,
        seed=seed,
        normalised=normalised,
    )
    study = parse_study(text, "compare", files, catalogue, watch=watchers.chosen(watch, catalogue))
    study = watchers.with_stacks(study, profile_stacks)
    study = study.unrepeated if no_repeat else study
    return _run(study, out, resuming=False, dry_run=dry_run, guests=guests, wait=not no_wait)


def _run(study: Study, out: Path | None, *, resuming: bool, dry_run: bool, guests: tuple[str, ...], wait: bool) -> int:
    plan = order(study)
    kit = Kit(registry.vpns(), registry.workloads(), environment.socket_buffer_limit())
    console = Console(highlight=False)
    if dry_run:
        progress.dry_run(console, plan, kit)
        return 0
    if not guests:  # a guest says itself what it lacks
        require(plan, kit, console)
        prepare(plan, kit, console)
    named = out or Path("results") / f"{study.name}-{datetime.now():%Y%m%d-%H%M%S}"
    code, places = 0, vm.places(named, guests) if guests else {named: ""}
    for folder, release in places.items():
        progress.opening(console, plan, kit, folder)
        try:
            with alone(console):
                if guests:
                    vm.study(study, folder, release, console, resuming=resuming)
                else:
                    asyncio.run(measure(plan, kit, folder, resuming, console, wait=wait))
        except KeyboardInterrupt:
            console.print(f"\nstopped; every finished trial is kept. Go on with: tunnelmark run --resume {folder}")
            return _STOPPED
        code = max(code, show(folder, console))
    if len(places) > 1:
        show_beside({f"Linux {release}": folder for folder, release in places.items()}, console)
    return code


async def measure(
    plan: Plan,
    kit: Kit,
    folder: Path,
    resuming: bool,
    console: Console,
    *,
    guest: Mapping[str, Any] | None = None,
    scratch: Path | None = None,
    wait: bool = True,
) -> None:
    """Carry a plan out with this kernel and record it in the folder.

    `guest` is what is known of the virtual machine that this is, if it is one; with `scratch` raw output is written
    there first. `wait`: other work is waited for, within bounds.
    """
    begun, started = time.monotonic(), time.time()
    watching = partial(kit.watching, plan.study.watch)
    async with Keeper() as keeper:
        async with keeper.lab(plan.study.topologies[0], plan.study.profiles[0]) as lab:
            found = keeper.record | await facts(lab) | links.record(plan.study.profiles)
            found |= {"backend": "vm"} if guest else {}
        parts = [kit.part(arm) for arm in plan.study.arms if kit.missing(arm) is None]
        used = [kit.workloads[use.workload].part for use in plan.study.workloads]
        now = environment.capture(dict.fromkeys(parts), workloads=dict.fromkeys(used), lab=found, guest=guest)
        tested = {arm.vpn for arm in plan.study.arms}
        now["matrix"] = [row.plain() for row in registry.matrix() if row.name in tested - {DIRECT}]
        if resuming:
            store.require_same(folder, now)
        else:
            store.create(folder, store.describe(plan, kit.drivers, kit.workloads, watching), plan, now)
        with Journal(folder / JOURNAL) as journal:

            def keep(attempt: Attempt, workload: Workload) -> None:
                if scratch is not None:
                    store.adopt(scratch / folder_of(attempt.trial.id, attempt.number), folder)
                store.keep(journal, attempt.alone() if guest else attempt, workload, watching(workload))

            journal.append({"begun": started})
            tries = reopened(store.load(folder), store.discard_unfinished(folder))
            calm = Calm(lambda text: console.print(Text(text, style="yellow"), soft_wrap=True), wanted=wait)
            looks = links.LOOKS if plan.study.attempts > 1 else 1
            looked = links.Links(plan, keeper, folder, journal, console, calm, scratch=scratch, looks=looks)
            await looked.prove("before")
            done = Ledger(plan, tries).settled(plan.trials)
            with progress.Live(console, plan, kit, done) as watcher:
                await carry_out(
                    plan,
                    kit,
                    keeper,
                    scratch or folder / RAW,
                    tries=tries,
                    ready=lambda: store.require_space(folder),
                    keep=keep,
                    watcher=watcher,
                    links=looked,
                    calm=calm,
                )
            await looked.prove("after")
            journal.append({"wall": time.monotonic() - begun})


def require(plan: Plan, kit: Kit, console: Console) -> None:
    """MissingPart for what no arm could do without, or if no VPN is there; a warning for each arm that cannot take part."""
    lacking = [missing for use in plan.study.workloads if (missing := kit.lacks(use)) is not None]
    if len(lacking) == len(plan.study.workloads):
        raise lacking[0]
    for missing in lacking:
        console.print(f"[yellow]warning:[/] a workload will fail: {missing.message} ({missing.hint})")
    links.require(plan.study.profiles)
    links.require_rates(plan.study.profiles, [use.name for use in plan.study.workloads if kit.searches(use)])
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
        console.print(f"[yellow]warning:[/] {arm} cannot take part: {missing.message} ({missing.hint})")


def prepare(plan: Plan, kit: Kit, console: Console) -> None:
    """Make what the workloads need beforehand and this machine does not have yet; MissingPart if it cannot be made."""
    for asset, peer in kit.assets(plan):
        if assets.absent([asset]):
            with console.status(f"making {asset.name}, once on this machine"):
                assets.make(asset, peer)
