"""Carries out a checked study: it measures the machine, checks the links, runs the trials, and shows the report."""

from __future__ import annotations

import asyncio
import os
import shlex
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from tunnelmark import registry
from tunnelmark.analyse.link_gate import reopened
from tunnelmark.analyse.so_far import EffectsSoFar
from tunnelmark.cli import interrupts, link_capacities, other_work, output, progress, real_hosts, run_links, vm
from tunnelmark.cli.enough_blocks import Growth
from tunnelmark.cli.measurement_lock import quiet
from tunnelmark.cli.progress_events import EndEvent
from tunnelmark.cli.progress_views import ProgressView
from tunnelmark.cli.report import analysis, show, show_beside, show_merged
from tunnelmark.cli.run_options import RunOptions
from tunnelmark.errors import MissingPart, TunnelmarkError, UsageError
from tunnelmark.host import cores, kernel_features, privileges, yardsticks
from tunnelmark.lab.settings_record import facts
from tunnelmark.lab.ssh.inventory import Inventory
from tunnelmark.lab.ssh.ssh_labs import SshLabs
from tunnelmark.model.attempt import Attempt, folder_of
from tunnelmark.model.retries import RetryLedger
from tunnelmark.plan.load import STACKS
from tunnelmark.plan.model import Plan, Study
from tunnelmark.plan.order import order
from tunnelmark.plan.study_arms import ANCHOR, DIRECT
from tunnelmark.record import describe, environment, resumed, store
from tunnelmark.record.fingerprint_diff import KEY
from tunnelmark.record.gathered import of_one_machine
from tunnelmark.record.journal import Journal
from tunnelmark.record.results import JOURNAL, RAW
from tunnelmark.run import assets
from tunnelmark.run.collectors import stacks
from tunnelmark.run.quiescence import Quiescence
from tunnelmark.run.runner import RunContext, carry_out
from tunnelmark.workloads.base import Workload

_TUN = Path("/dev/net/tun")


def study_of(study: Study, out: Path | None, ways: RunOptions, *, named: bool = True) -> int:
    """Carry out a study, or print its plan if it is a dry run. Return the exit code.

    The results go to `out`, or to a new folder in `results/` if it is None. With `--quiet`, the folder's name is
    printed at the end if `named` is true.
    """
    if ways.json and ways.dry_run:
        raise UsageError("a dry run has no results to print as JSON", hint="leave --json or --dry-run out")
    study = link_capacities.stated(study, ways.rate)
    plan = order(study)
    context = RunContext(registry.vpns(), registry.workloads(), environment.socket_buffer_limit())
    if ways.dry_run:
        progress.dry_run(output.console(), plan, context)
        return 0
    console = ways.console()
    if where := ways.where:
        from tunnelmark.cli import spread  # Dask's side and its keys, which a run on one machine does not need

        folder = out or _new(study)
        spread.begin(study, folder, where, ways.guests, console, spread.Ways(ways.wait, ways.measure_first))
        return show_gathered(folder, console, ways)
    if not ways.guests and ways.on is None:  # virtual machines and other hosts check themselves what they lack
        privileges.require("the lab makes network namespaces")
        require(plan, context, console)
        prepare(plan, context, console, wait=ways.wait)
    measured: Mapping[str, Any] = {}
    if not ways.guests and not ways.resuming:  # a virtual machine measures itself; resumed results have rates
        look = f"a look at this machine for the study {study.name}"
        with real_hosts.alone(ways.on, console, look):
            study, measured = link_capacities.before(study, context, console, look=ways.measure_first, on=ways.on)
        plan = order(study)
    whole = out or _new(study)
    code, places = 0, vm.places(whole, ways.guests) if ways.guests else {whole: ""}
    for folder, release in places.items():
        view = ways.view(console)
        with _ended(view, folder) as codes:
            progress.opening(console, plan, context, folder)
            interrupts.goes_on(partial(_how_to_go_on, folder))
            seconds = progress.estimate(plan, context)
            accelerator = vm.accelerator_of(folder) if ways.guests else None
            counted = accelerator == "tcg"
            name = f"the study {study.name}"
            with real_hosts.alone(ways.on, console, name, folder, seconds, counted=counted) as held, view:
                view.tells(held.left if held is not None else None)
                if accelerator is not None:
                    vm.study(study, folder, release, console, view, resuming=ways.resuming, accelerator=accelerator)
                else:
                    asyncio.run(
                        measure(
                            plan,
                            context,
                            folder,
                            ways.resuming,
                            console,
                            view,
                            measured=measured,
                            wait=ways.wait,
                            other_boot=ways.other_boot,
                            sticks=ways.measure_first,
                            on=ways.on,
                        )
                    )
            interrupts.goes_on(f"every trial is kept. Its report: tunnelmark report {shlex.quote(str(folder))}")
            failures = output.console(stderr=True) if ways.quiet else None
            codes.append(ways.answers(folder, console) if ways.answers else show(folder, console, failures=failures))
            code = max(code, *codes)
        if ways.quiet and named:
            click.echo(folder, err=ways.json or ways.progress == "json")
    if len(places) > 1:
        show_beside({f"Linux {release}": folder for folder, release in places.items()}, console)
    if ways.json and ways.answers is None:
        click.echo(analysis(*places))
    return code


def show_gathered(folder: Path, console: Console, ways: RunOptions) -> int:
    """Show what a cluster measured, as a single run if one machine measured all of it. Return the exit code."""
    place = of_one_machine(folder)
    if ways.quiet:
        click.echo(folder, err=ways.json)
    if place == folder:
        return show_merged(folder, console, as_json=ways.json)
    code = show(place, console, failures=output.console(stderr=True) if ways.quiet else None)
    if ways.json:
        click.echo(analysis(place))
    return code


def _new(study: Study) -> Path:
    return Path("results") / f"{study.name}-{datetime.now():%Y%m%d-%H%M%S}"


@contextmanager
def _ended(view: ProgressView, folder: Path) -> Iterator[list[int]]:
    """Report to a view how a run ended: with the largest exit code that the block put into the list, or by an error."""
    codes: list[int] = []
    try:
        yield codes
    except BaseException as error:
        code = interrupts.CODE  # also where a task was cancelled, or a signal came
        if isinstance(error, TunnelmarkError):
            code = error.exit_code
        elif isinstance(error, Exception) and not isinstance(error, click.Abort):
            code = os.EX_SOFTWARE
        said = error.message if isinstance(error, TunnelmarkError) else str(error) or type(error).__name__
        view.take(EndEvent(str(folder), code, said))
        raise
    view.take(EndEvent(str(folder), max(codes)))


def _how_to_go_on(folder: Path) -> str:
    if not (folder / JOURNAL).exists():
        return f"nothing was measured: remove {folder}, and start again" if folder.exists() else interrupts.ANEW
    return f"every finished trial is kept. Go on with: {go_on(folder)}"


def go_on(folder: Path) -> str:
    """Return the command that resumes these results, quoted for a shell."""
    return f"tunnelmark run --resume {shlex.quote(str(folder))}"


async def measure(
    plan: Plan,
    context: RunContext,
    folder: Path,
    resuming: bool,
    console: Console,
    view: ProgressView,
    *,
    guest: Mapping[str, Any] | None = None,
    scratch: Path | None = None,
    measured: Mapping[str, Any] | None = None,
    wait: bool = True,
    other_boot: bool = False,
    sticks: bool = True,
    on: Inventory | None = None,
) -> None:
    """Carry out a plan with this kernel, or `on` the hosts of an inventory, and record it in the folder.

    `resuming`: the folder has results, which are continued. `view`: shows what happens.
    `measured`: the measurements that `link_capacities.before` returned, for the record; None if there are none.
    `guest`: facts about the virtual machine that we run in, None outside of one.
    `scratch`: a folder in which raw output is written first, before it moves to the results.
    `wait`: wait for other work on the machine to end, at most as long as `run.quiescence` allows; then measure anyway.
    `other_boot`: allow that this machine was restarted since the results were begun.
    `sticks`: take this machine's yardsticks before and after, some seconds each; not in a guest or on other hosts.
    """
    begun, started = time.monotonic(), time.time()
    watching = partial(context.watching, plan.study.watch)
    sticks, wait = sticks and on is None, wait and on is None  # else others measure
    async with real_hosts.labs(on, node_cores=plan.study.cores) as labs:
        labs.watch()
        async with labs.lab(plan.study.topologies[0], plan.study.profiles[0]) as lab:
            found = labs.record | await facts(lab) | run_links.record(plan.study.profiles)
            found |= {"backend": "vm"} if guest else {}
            if labs.here:
                found["placement"] = cores.record(plan.study.topologies, plan.study.cores)
        if isinstance(labs, SshLabs):
            now = await real_hosts.environment(labs, plan.study, found)
            context = replace(context, socket_buffer=min(host["socket_buffer"] for host in now["hosts"].values()))
        else:
            parts = [context.part(arm) for arm in plan.study.arms if context.missing(arm) is None]
            used = [context.workloads[use.workload].part for use in plan.study.workloads]
            now = environment.capture(dict.fromkeys(parts), workloads=dict.fromkeys(used), lab=found, guest=guest)
        tested = {arm.vpn for arm in plan.study.arms}
        now |= {"measured": dict(measured)} if measured else {}
        now["matrix"] = [row.plain() for row in registry.matrix() if row.name in tested - {ANCHOR, DIRECT}]
        describing = partial(describe.describe, drivers=context.drivers, workloads=context.workloads, watching=watching)
        described = describing(plan)
        if resuming:
            resumed.require_same(folder, now, other_boot=other_boot)
            resumed.extend(folder, described)
            resumed.add_programs(folder, now)
        else:
            store.create(folder, described, plan, now)
        effects = EffectsSoFar(described)
        listener = progress.RunProgress(view, plan, context, results=str(folder), effects=effects)
        with Journal(folder / JOURNAL) as journal:

            def keep(attempt: Attempt, workload: Workload[Any]) -> None:
                if scratch is not None:
                    store.adopt(scratch / folder_of(attempt.trial.id, attempt.number), folder)
                effects.add(describe.keep(journal, attempt, workload, watching(workload)))

            journal.append({"begun": started, "boot": now[KEY]["boot"]})
            earlier = store.load(folder)
            for row in earlier.trials:
                effects.add(row)
            tries = reopened(earlier, store.discard_unfinished(folder, context.installed(plan.study)))
            calm = Quiescence(partial(listener.wait, "calm"), wanted=wait)
            looked = run_links.RunLinks(
                plan,
                labs,
                folder,
                journal,
                console,
                calm,
                scratch=scratch,
                looks=run_links.LOOKS if plan.study.attempts > 1 else 1,
                watching=partial(listener.wait, "links"),
            )
            if sticks and guest is None:  # the lab server runs now: cores are awake as in trials
                listener.wait("machine", "measuring the machine before the trials")
                await asyncio.to_thread(store.keep_yardsticks, journal, "before", yardsticks.measure)
            await looked.verify("before")
            listener.begun(RetryLedger(plan, tries).settled(plan.trials))
            await carry_out(
                plan,
                context,
                labs,
                scratch or folder / RAW,
                tries=tries,
                ready=lambda: store.require_space(folder),
                keep=keep,
                listener=listener,
                links=looked,
                calm=calm,
                more=Growth(folder, journal, console, describing) if plan.study.enough is not None else lambda _: None,
            )
            await looked.verify("after")
            if sticks and guest is None:
                listener.wait("machine", "measuring the machine after the trials")
                await asyncio.to_thread(store.keep_yardsticks, journal, "after", yardsticks.measure)
            journal.append({"wall": time.monotonic() - begun})


def require(plan: Plan, context: RunContext, console: Console) -> None:
    """Raise MissingPart if no VPN or no workload has its programs, or if a part that all arms need is missing.

    Print a warning for each single arm that cannot take part, and for each workload that will fail.
    """
    lacking = [missing for use in plan.study.workloads if (missing := context.lacks(use)) is not None]
    if len(lacking) == len(plan.study.workloads):
        raise lacking[0]
    for missing in lacking:
        said = f"a workload will fail: {missing.message} ({missing.hint}); run --resume measures it once that is there"
        console.print(f"[yellow]warning:[/] {said}", soft_wrap=True)
    run_links.require(plan.study.profiles)
    run_links.require_rates(plan.study.profiles, [use.name for use in plan.study.workloads if context.searches(use)])
    kernel_features.require({arm.inner.kind for arm in plan.study.arms if arm.inner is not None})
    if STACKS in plan.study.watch:
        stacks.require()
    if not _TUN.exists() and any(arm.vpn != DIRECT for arm in plan.study.arms):
        raise MissingPart(
            f"{_TUN} is not there, and every VPN needs it", hint="modprobe tun; in a container, pass the device in"
        )
    vpns = [arm for arm in plan.study.arms if arm.vpn != DIRECT]
    gone = {arm.name: missing for arm in vpns if (missing := context.missing(arm)) is not None}
    if gone and all(arm.name in gone for arm in vpns if arm.vpn != ANCHOR):
        raise next(iter(gone.values()))
    for arm, missing in gone.items():
        console.print(f"[yellow]warning:[/] {arm} cannot take part: {missing.message} ({missing.hint})", soft_wrap=True)


def prepare(plan: Plan, context: RunContext, console: Console, *, wait: bool = True, held: bool = False) -> None:
    """Make the files that the workloads need and this machine lacks. MissingPart if they cannot be made.

    Making files would disturb a measurement of another command. So first wait until that measurement ends; without
    `wait`, only warn. `held`: the caller holds the measurement lock itself, and must not wait for its own measurement.
    """
    lacking = [(asset, recipe) for asset, recipe in context.assets(plan) if assets.absent([asset])]
    if not lacking:
        return
    if not held:
        quiet(console, "making what workloads need", wait=wait)
    for asset, recipe in lacking:
        doing = f"making {asset.name}"
        with other_work.told(doing), console.status(f"{doing}, once on this machine"):
            assets.make(asset, recipe)
