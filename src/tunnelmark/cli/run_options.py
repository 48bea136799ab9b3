"""Defines the options that `run`, `compare` and `repeat` share: what they change of a study, and how it is run."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial, wraps
from pathlib import Path
from typing import Any, TypeVar

import click
from rich.console import Console

from tunnelmark import registry
from tunnelmark.cli import (
    binary_overrides,
    cluster_options,
    collector_options,
    core_options,
    enough_options,
    here_only,
    inventory_options,
    link_capacities,
    part_options,
    progress_options,
    retry_options,
    vm,
)
from tunnelmark.cli.enough_options import NOTHING_ASKED, Asked
from tunnelmark.cli.progress_views import ProgressView
from tunnelmark.errors import UsageError
from tunnelmark.lab.ssh.inventory import Inventory
from tunnelmark.plan.design import Names
from tunnelmark.plan.files import Files
from tunnelmark.plan.load import load_study
from tunnelmark.plan.model import Study
from tunnelmark.units import Rate

_Command = TypeVar("_Command", bound=Callable[..., Any])

json_option = click.option(
    "--json", "json_", is_flag=True, help="Print the analysis as JSON, and everything else on stderr."
)
dry_option = click.option("--dry-run", is_flag=True, help="Print the trials in order and their duration; run nothing.")


@dataclass(frozen=True, slots=True)
class RunOptions:
    """What the options of a command say: how a study is carried out, and what they change of it.

    `guests`: kernels of virtual machines to run it in; empty for this machine's own. `placed` sets it from `backend`
    and `kernels`. `on`: other hosts to run it on, which `placed` reads from the file `inventory`.
    `wait`: wait for other work to end, at most as long as `run.quiescence` allows. `measure_first`: measure the machine
    before the study, unless fresh results are known. `rate`: the meaning of `rate = "auto"` in a profile, in place of a
    measurement. `resuming`: continue the run in an existing results folder. `other_boot`: with `resuming`, allow that
    the machine was restarted since that run began. `watch`, `profile_stacks`: what is watched in every trial. `repeat`:
    trials that the laboratory spoils are repeated. `enough`: until when blocks are added. `quiet`, `progress`: what is
    shown meanwhile. `answers`: a function that shows the results in place of the report, and returns the command's exit
    code. `cluster`, `local`, `tls`, `hosts`: which machines measure the blocks (`cluster_options.BlockTarget`).
    """

    dry_run: bool = False
    json: bool = False
    guests: tuple[str, ...] = ()
    wait: bool = True
    resuming: bool = False
    measure_first: bool = True
    rate: Rate | None = None
    other_boot: bool = False
    watch: tuple[str, ...] = ()
    profile_stacks: bool = False
    repeat: bool = True
    enough: Asked = NOTHING_ASKED
    backend: str | None = None
    inventory: Path | None = None
    on: Inventory | None = None
    kernels: tuple[str, ...] = ()
    quiet: bool = False
    progress: progress_options.ProgressStyle = "auto"
    answers: Callable[[Path, Console], int] | None = None
    cluster: str | None = None
    local: int | None = None
    tls: Path | None = None
    hosts: Path | None = None

    def console(self) -> Console:
        """Return the console for text for people. UsageError if two kinds of output would both go to stdout."""
        return progress_options.console(quiet=self.quiet, progress=self.progress, json=self.json)

    def view(self, console: Console) -> ProgressView:
        """Return the view that shows the progress of one run."""
        return progress_options.view(console, quiet=self.quiet, progress=self.progress)

    def of(self, study: Study) -> Study:
        """Return the study with stacks added if `--profile-stacks` asks for them, and unrepeated if `--no-repeat` asks.

        Unrepeated: each trial has one attempt, and no blocks are replaced. The caller has loaded `study` with the
        collectors that `watched` returns; these replace the collectors in the study's file.
        """
        study = collector_options.with_stacks(study, self.profile_stacks)
        return study if self.repeat else study.unrepeated

    def watched(self) -> tuple[str, ...] | None:
        """Return the collectors that `--watch` names; None if it was not given."""
        return collector_options.chosen(self.watch, registry.catalogue())

    @property
    def where(self) -> cluster_options.BlockTarget:
        """Which machines measure; falsy if this command itself does. UsageError as in `cluster_options.where`."""
        return cluster_options.where(self.cluster, self.local, self.tls, self.hosts)

    def placed(self) -> RunOptions:
        """Return a copy with `guests` and `on` set from `--backend`, `--kernel` and `--inventory`.

        `guests`: the kernels of the virtual machines. `on`: the inventory of the hosts. Raises UsageError if these
        options or those of a cluster contradict each other, or if an option has no effect where the study runs.
        """
        chosen = inventory_options.chosen(self.backend, self.inventory)
        if chosen is not None and self.where:
            raise UsageError(
                "a study runs on the hosts of an inventory, or spread over machines", hint="leave one of the two out"
            )
        self.require_heard(chosen)
        return replace(self, guests=vm.chosen(self.backend, self.kernels), on=chosen)

    def require_heard(self, on: Inventory | None) -> None:
        """Raise UsageError if an option was given that has no effect on other hosts or on a cluster's workers."""
        if on is not None:
            here_only.refuse(inventory_options.ELSEWHERE)
        elif not self.where:
            return
        elif self.local is None:
            here_only.refuse("these blocks are measured on others", heard=("no_wait",))
        elif os.geteuid() != 0:
            why = "these workers begin blocks by sudo, which drops it"
            here_only.refuse(why, heard=("no_wait",), hint="run the command as root, or leave it out")


def options(*own: Callable[[Any], Any], several: bool = False) -> Callable[[_Command], _Command]:
    """Return a decorator that adds the options to a command, which gets them as the argument `options`.

    `own`: decorators that add the options of that command alone; its help shows these after the options on cores.
    `several`: the command runs a study several times. It does not get the options that only a single run has, such as
    `--precision`, `--backend`, `--cluster`, `--json` and `--dry-run`.
    """
    every = (collector_options.option, core_options.option, *own, retry_options.options)
    where = partial(vm.options, hosts=True)
    alone = (enough_options.options, binary_overrides.option, where, inventory_options.option, cluster_options.options)
    looks = (link_capacities.option, link_capacities.rate_option)
    one = (*alone, *looks, json_option, dry_option)
    rest = (binary_overrides.option, *looks) if several else one
    shown = (*every, *rest, progress_options.options)

    def add(command: _Command) -> _Command:
        @wraps(command)
        def with_options(*, no_repeat: bool, no_wait: bool, json_: bool = False, **given: Any) -> Any:
            known = {field.name for field in fields(RunOptions)} & given.keys()
            stated = {name: given.pop(name) for name in known}
            return command(**given, options=RunOptions(json=json_, wait=not no_wait, repeat=not no_repeat, **stated))

        made: _Command = _with(with_options, shown)
        return made

    return add


@dataclass(frozen=True, slots=True)
class LengthOptions:
    """The length, seed and part of a study that options ask for; None or empty means: as in the study."""

    blocks: int | None = None
    seed: int | None = None
    smoke: bool = False
    full: bool = False
    part: Names = field(default_factory=dict)


def length(*, blocks: str, seed: str) -> Callable[[_Command], _Command]:
    """Return a decorator that adds `--blocks`, `--seed`, `--smoke`, `--full` and the options of a part to a command.

    `blocks` and `seed` are the help texts of these two. The command gets the values as `length`.
    """
    shown = (
        click.option("--blocks", type=int, help=blocks),
        click.option("--seed", type=int, help=seed),
        click.option(
            "--smoke",
            is_flag=True,
            help="Use the study's short length: shows whether everything works, measures little.",
        ),
        click.option(
            "--full",
            is_flag=True,
            help="Use the study's long length, that of the published study that it repeats: hours.",
        ),
        *part_options.OPTIONS,
    )

    def add(command: _Command) -> _Command:
        @wraps(command)
        def with_length(*, blocks: int | None, seed: int | None, smoke: bool, full: bool, **others: Any) -> Any:
            part = part_options.taken(others)
            return command(**others, length=LengthOptions(blocks, seed, smoke, full, part))

        made: _Command = _with(with_length, shown)
        return made

    return add


def asked(study: str, length: LengthOptions, options: RunOptions) -> Study:
    """Load the study of that name or path, and change it as the options ask."""
    return options.of(of_length(study, length, watch=options.watched()))


def of_length(study: str, length: LengthOptions, *, watch: Sequence[str] | None = None) -> Study:
    """Load the study of that name or path at that length; `watch` replaces the file's collectors unless it is None."""
    return load_study(
        study,
        Files.standard(),
        registry.catalogue(),
        blocks=length.blocks,
        seed=length.seed,
        smoke=length.smoke,
        full=length.full,
        watch=watch,
        only=length.part,
    )


def _with(command: Any, shown: tuple[Callable[[Any], Any], ...]) -> Any:
    """Return the command with these options added; its help shows them in this order."""
    for option in reversed(shown):
        command = option(command)
    return command
