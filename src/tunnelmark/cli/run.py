"""The commands `run` and `compare`: plan, lab, trials, record, analysis, report, in this order."""

from __future__ import annotations

import asyncio
import time
from datetime import datetime
from pathlib import Path

import click
from rich.console import Console

from tunnelmark import registry
from tunnelmark.analyse.proofs import unproved
from tunnelmark.cli import links, names, progress
from tunnelmark.cli.alone import alone
from tunnelmark.cli.report import show
from tunnelmark.errors import MissingPart, UsageError
from tunnelmark.lab.facts import facts
from tunnelmark.lab.lab import Keeper
from tunnelmark.plan.compose import comparison
from tunnelmark.plan.files import Files
from tunnelmark.plan.load import load_study, parse_study
from tunnelmark.plan.model import Plan, Study
from tunnelmark.plan.order import order
from tunnelmark.record import environment, store
from tunnelmark.record.journal import Journal
from tunnelmark.record.results import INPUTS, JOURNAL, RAW
from tunnelmark.run.loop import Kit, carry_out

_TUN = Path("/dev/net/tun")
_STOPPED = 130  # 128 + SIGINT

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
@_out
@click.option("--resume", type=click.Path(path_type=Path), help="Go on with a run that was stopped, from its results.")
@_dry
def run(
    study: str | None, blocks: int | None, seed: int | None, out: Path | None, resume: Path | None, dry_run: bool
) -> int:
    """Run STUDY: a name (`quick`) or a file (`./my.toml`).

    Every attempt is on the disk as soon as it has ended: a run that was stopped in any way goes on with
    `tunnelmark run --resume DIR`.
    """
    if (study is None) == (resume is None):
        raise UsageError("name one study, or the results to go on with", hint="see `tunnelmark list studies`")
    if resume is not None:
        if blocks is not None or seed is not None or out is not None:
            raise UsageError(
                "a resumed run keeps its blocks, seed and folder", hint="leave --blocks, --seed and --out out"
            )
        info = store.load_plan(resume)
        files = Files((resume / INPUTS,))
        loaded = load_study(info.study, files, registry.catalogue(), blocks=info.blocks, seed=info.seed)
        return _run(loaded, resume, resuming=True, dry_run=dry_run)
    assert study is not None
    loaded = load_study(study, Files.standard(), registry.catalogue(), blocks=blocks, seed=seed)
    return _run(loaded, out, resuming=False, dry_run=dry_run)


@click.command()
@click.argument("vpns", nargs=-1, required=True, type=names.VPN)
@click.option("--profile", default="gigabit", show_default=True, type=names.PROFILE, help="What the link does.")
@click.option("--topology", default="pair", show_default=True, type=names.TOPOLOGY, help="Which nodes there are.")
@click.option("--workload", "workloads", multiple=True, type=names.WORKLOAD, help="Repeatable [ping, tcp, udp].")
@click.option("--blocks", type=int, default=5, show_default=True, help="Number of randomised blocks.")
@click.option("--seed", type=int, default=1, show_default=True, help="Seed of the order.")
@_out
@_dry
def compare(
    vpns: tuple[str, ...],
    profile: str,
    topology: str,
    workloads: tuple[str, ...],
    blocks: int,
    seed: int,
    out: Path | None,
    dry_run: bool,
) -> int:
    """Compare VPNS, as shipped, with the bare link and with one another."""
    files, catalogue = Files.standard(), registry.catalogue()
    chosen = workloads or ("ping", "tcp", "udp")
    text = comparison(
        vpns, files, catalogue, profile=profile, topology=topology, workloads=chosen, blocks=blocks, seed=seed
    )
    return _run(parse_study(text, "compare", files, catalogue), out, resuming=False, dry_run=dry_run)


def _run(study: Study, out: Path | None, *, resuming: bool, dry_run: bool) -> int:
    plan = order(study)
    kit = Kit(registry.vpns(), registry.workloads(), environment.socket_buffer_limit())
    console = Console(highlight=False)
    if dry_run:
        progress.dry_run(console, plan, kit)
        return 0
    _require(plan, kit, console)
    folder = out or Path("results") / f"{study.name}-{datetime.now():%Y%m%d-%H%M%S}"
    progress.opening(console, plan, kit, folder)
    try:
        with alone(console):
            asyncio.run(_measure(plan, kit, folder, resuming, console))
    except KeyboardInterrupt:
        console.print(f"\nstopped; every finished trial is kept. Go on with: tunnelmark run --resume {folder}")
        return _STOPPED
    return show(folder, console)


async def _measure(plan: Plan, kit: Kit, folder: Path, resuming: bool, console: Console) -> None:
    begun, started = time.monotonic(), time.time()
    async with Keeper() as keeper:
        async with keeper.lab(plan.study.topologies[0], plan.study.profiles[0]) as lab:
            found = keeper.record | await facts(lab) | links.record(plan.study.profiles)
        parts = [registry.vpn_part(kit.drivers[arm.vpn]) for arm in plan.study.arms if kit.missing(arm) is None]
        now = environment.capture(dict.fromkeys(parts), lab=found)
        if resuming:
            store.require_same(folder, now)
        else:
            store.create(folder, store.describe(plan, kit.drivers, kit.workloads), plan, now)
        with Journal(folder / JOURNAL) as journal:
            journal.append({"begun": started})
            done = store.discard_unfinished(folder)
            proofs = await links.prove(plan, keeper, folder, journal, "before", console)
            with progress.Live(console, plan, kit, done) as watcher:
                await carry_out(
                    plan,
                    kit,
                    keeper,
                    folder / RAW,
                    done=done,
                    ready=lambda: store.require_space(folder),
                    keep=lambda attempt, workload: store.keep(journal, attempt, workload),
                    watcher=watcher,
                    unproved=unproved(proofs),
                )
            await links.prove(plan, keeper, folder, journal, "after", console)
            journal.append({"wall": time.monotonic() - begun})


def _require(plan: Plan, kit: Kit, console: Console) -> None:
    """MissingPart for what no arm could do without; a warning for each arm that cannot take part."""
    for use in plan.study.workloads:
        kit.require(use)
    links.require(plan.study.profiles)
    if not _TUN.exists() and any(arm.vpn != "direct" for arm in plan.study.arms):
        raise MissingPart(
            f"{_TUN} is not there, and every VPN needs it", hint="modprobe tun; in a container, pass the device in"
        )
    for arm in plan.study.arms:
        if (missing := kit.missing(arm)) is not None:
            console.print(f"[yellow]warning:[/] {arm.name} cannot take part: {missing.message} ({missing.hint})")
