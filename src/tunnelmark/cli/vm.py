"""Carries out a study or a link check in a virtual machine: boots it, runs `vm_guest` there, and raises its errors.

Host and guest both write into one folder: the results folder of a study, or the folder of a check's raw output. The
subfolder `vm/` of that folder has the virtual machine's logs. While the machine runs, `vm/` also has the request.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar, get_args

import click
from pydantic import TypeAdapter
from rich.console import Console

from tunnelmark import errors
from tunnelmark.cli.progress_views import GuestLines, ProgressView
from tunnelmark.errors import LabError, UsageError
from tunnelmark.host import utilisation as host
from tunnelmark.host.programs import version
from tunnelmark.lab.vm import Guest, Hardware, kernel, kvm, qemu
from tunnelmark.plan.load import save_inputs, write_inputs
from tunnelmark.plan.model import Study
from tunnelmark.record import store
from tunnelmark.record.link_check import LinkCheck
from tunnelmark.record.results import ENVIRONMENT, VM

PROFILE = "fast-ethernet"
"""The profile of `compare` in a virtual machine if none is named: an emulated processor cannot fill a faster link."""

NO_KVM = "TUNNELMARK_NO_KVM"
"""Environment variable; if it is set, guests are emulated, with a clock that counts instructions, even if KVM works."""

_MEMORY = 2048  # MiB: files that are read stay in memory, and half of it may hold raw output
_BOOT = 600.0  # seconds; 8 on a quiet machine, minutes where other work takes the cores
_CORES = 4  # the most cores of a guest that KVM runs
_REQUEST = ".request"  # folder in `vm/`, removed at the end
_PASSED = ("HOME", "PATH", "COLUMNS", "LANG", "LC_ALL", "PYTHONPATH")
_PASSED_BEGINNINGS = ("TUNNELMARK_", "XDG_DATA", "XDG_CACHE", "XDG_CONFIG")

_Command = TypeVar("_Command", bound=Callable[..., Any])


def options(command: _Command, *, hosts: bool = False) -> _Command:
    """Add the options `--backend` and `--kernel` to a command; with `hosts`, the lab may also run on other hosts."""
    elsewhere = ", or other hosts" if hosts else ""
    backend = click.option(
        "--backend",
        type=click.Choice(("netns", "vm", *(("ssh",) if hosts else ()))),
        help=f"Where the lab runs: namespaces of this kernel, {'' if hosts else 'or '}of another one in a virtual machine{elsewhere} [netns].",
    )
    kernels = click.option(
        "--kernel",
        "kernels",
        multiple=True,
        metavar="RELEASE",
        help="With --backend vm: Debian's kernel of that release; repeatable [the distribution's current one].",
    )
    return backend(kernels(command))


def chosen(backend: str | None, kernels: Sequence[str]) -> tuple[str, ...]:
    """Return the releases of the kernels to boot in virtual machines; () if the lab uses no virtual machine.

    `backend`, `kernels`: the values of `--backend` (None: not given) and `--kernel`. The release `""` is the current
    kernel of this machine's distribution. UsageError if kernels are named without `--backend vm`.
    """
    if backend != "vm":
        if kernels:
            raise UsageError("only a virtual machine can have another kernel", hint="add --backend vm")
        return ()
    return tuple(dict.fromkeys(kernels)) or ("",)


def of_results(folder: Path) -> tuple[str, ...]:
    """Return `(kernel,)` of the virtual machine in which results were begun; () if they were not begun in one."""
    environment = store.load_environment(folder)
    return (str(environment["guest"]["kernel"]),) if "guest" in environment else ()


def places(folder: Path, kernels: Sequence[str]) -> Mapping[Path, str]:
    """Return results folder -> kernel: `folder` itself for a single kernel, else a subfolder of it for each kernel."""
    return {folder / f"linux-{release}": release for release in kernels} if len(kernels) > 1 else {folder: kernels[0]}


def study(
    study: Study,
    folder: Path,
    release: str,
    console: Console,
    view: ProgressView,
    *,
    resuming: bool,
    accelerator: qemu.Accelerator,
    only: int | None = None,
) -> None:
    """Carry out a study, or only its block number `only`, in a guest with the kernel `release`. Results go to `folder`.

    `resuming`: whether to go on with the results in `folder`; otherwise the folder must be empty. The view gets each
    event of the guest at once, so it computes the time that remains by the clock of this machine, not of the guest.
    `accelerator`: see `accelerator_of`.
    """
    if not resuming:
        store.require_empty(folder)
    request = {
        "kind": "study",
        "study": study.name,
        "blocks": study.blocks,
        "seed": study.seed,
        "smoke": study.smoke,
        "full": study.full,
        "watch": study.watch,
        "attempts": study.attempts,
        "replacements": study.replacements,
        "enough": None if study.enough is None else asdict(study.enough),
        "resuming": resuming,
        "ratios": view.wants_ratios,
        "only": only,
    }

    def files(place: Path) -> None:
        save_inputs(study, place / "inputs")

    asyncio.run(_ask(request, folder, release, accelerator, console, files, view))


def check_link(
    request: Mapping[str, Any], inputs: Mapping[str, str], folder: Path, release: str, console: Console
) -> tuple[LinkCheck, dict[str, Any]]:
    """Check a link in a guest with the kernel `release`. Return the check, and facts about the guest.

    `request`: the arguments of `check-link` (`profile`, `topology`, `probes`, `rate`, `seed`). `inputs`: the texts of
    the profile's and topology's files, by path. Raw output goes to `folder`. The facts' keys are `kernel`,
    `accelerator`, `emulated`, `clock`, `hardware`, `qemu` and `host`; `words` describes the facts for people.
    """

    def files(place: Path) -> None:
        write_inputs(inputs, place / "inputs")

    accelerator = accelerator_of(folder)
    answer = asyncio.run(_ask({"kind": "link-check", **request}, folder, release, accelerator, console, files))
    return TypeAdapter(LinkCheck).validate_python(answer["check"]), answer["guest"]


async def _ask(
    request: Mapping[str, Any],
    folder: Path,
    release: str,
    accelerator: qemu.Accelerator,
    console: Console,
    files: Callable[[Path], None] | None = None,
    view: ProgressView | None = None,
) -> dict[str, Any]:
    """Boot a guest, have it carry out the request, and end it. Return its answer; raise the error that it reports."""
    folder = folder.resolve()
    logs = next(path for number in range(1, 1000) if not (path := _logs(folder, number)).exists())
    place = logs / _REQUEST
    if release not in kernel.cached():
        console.print(
            f"  kernel     {release or 'the newest that apt knows'}; fetched if it is not in the cache (70 to 100 MB)",
            soft_wrap=True,
        )
    place.mkdir(parents=True)
    guest = Guest(
        folder,
        hardware=_hardware(accelerator),
        accelerator=accelerator,
        release=release,
        logs=logs,
        boot_timeout=_BOOT,
    )
    lines = GuestLines(view or ProgressView(), lambda text: console.out(text, end="", highlight=False))
    try:
        if files is not None:
            files(place)
        begun = time.monotonic()
        async with guest:
            facts = _facts(guest)
            console.print(f"  machine    {words(facts)}; up after {time.monotonic() - begun:.0f} s", soft_wrap=True)
            asked = {**request, "guest": facts, "folder": str(folder), "command": sys.argv[1:], "time": time.time()}
            (place / "request.json").write_text(json.dumps(asked, indent=1))
            done = await guest.run(
                [sys.executable, "-m", "tunnelmark.cli.vm_guest", str(place)],
                None,
                env=_environment(),
                cwd=Path.cwd(),
                follow=lines.take,
            )
        if (told := place / "error.json").exists():
            raise errors.again(json.loads(told.read_text()))
        if done.code:
            said = "\n".join(done.stderr.strip().splitlines()[-15:])
            raise LabError(
                f"the command in the virtual machine ended with code {done.code}:\n{said}",
                hint=f"{guest.console} has what its kernel said",
            )
        answer: dict[str, Any] = json.loads((place / "answer.json").read_text())
        return answer
    finally:
        shutil.rmtree(place, ignore_errors=True)
        with contextlib.suppress(OSError):
            logs.rmdir()  # it is empty if the machine could not even be started


def accelerator_of(folder: Path) -> qemu.Accelerator:
    """Return how a guest for these results runs: as they were begun, else by KVM if that works; `tcg` counts time."""
    if (begun := _begun_with(folder)) is not None:
        return begun
    return "tcg" if os.environ.get(NO_KVM) else asyncio.run(kvm.choose())


def _begun_with(folder: Path) -> qemu.Accelerator | None:
    """Return the accelerator of the guest in which the folder's results were begun; None if there are none yet."""
    if not (folder / ENVIRONMENT).exists():
        return None
    begun = store.load_environment(folder).get("guest", {}).get("accelerator")
    return next((each for each in get_args(qemu.Accelerator) if each == begun), None)


def words(facts: Mapping[str, Any]) -> str:
    """Describe a guest for people, by the facts from `check_link`: its kernel, and how it runs."""
    how = "software emulation on one core, whose clock counts instructions" if facts["emulated"] else "KVM"
    return f"Linux {facts['kernel']} in QEMU, {how}"


def _hardware(accelerator: qemu.Accelerator) -> Hardware:
    """Return up to `_CORES` cores with KVM; else one with a clock that counts: its timing is not the host's."""
    if accelerator == "kvm":
        return Hardware(cores=min(_CORES, host.cores()), memory=_MEMORY)
    return Hardware(cores=1, memory=_MEMORY, virtual_clock=True)


def _facts(guest: Guest) -> dict[str, Any]:
    """Return the facts about a guest that the host records; the guest adds its own."""
    hardware = guest.hardware
    return {
        "kernel": guest.release,
        "accelerator": guest.accelerator,
        "emulated": guest.accelerator == "tcg",
        "clock": f"{hardware.instruction_ns} ns an instruction" if hardware.virtual_clock else "the host's",
        "hardware": asdict(hardware),
        "qemu": version((qemu.PROGRAM, "--version"), r"version (\S+)", kvm.PACKAGES),
        "host": {"system": host.system(), "kernel": host.kernel(), "cpu": host.cpu(), "cores": host.cores()},
    }


def _environment() -> dict[str, str]:
    """Return the environment variables on which the command in the guest depends."""
    passed = {name: value for name, value in os.environ.items() if name.startswith(_PASSED_BEGINNINGS)}
    passed |= {name: os.environ[name] for name in _PASSED if name in os.environ}
    width = str(shutil.get_terminal_size().columns)
    return {"COLUMNS": width, "PYTHONUNBUFFERED": "1", **passed}


def _logs(folder: Path, number: int) -> Path:
    """Return the folder for the logs of a session; a resumed run has several sessions."""
    return folder / (VM if number == 1 else f"{VM}.{number}")
