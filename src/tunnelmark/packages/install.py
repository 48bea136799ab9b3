"""Installs recipes, several at once if the machine allows, with so little CPU that it hardly disturbs a lab.

Each recipe is built in a folder of its own below the cache, under a lock that its processes inherit, and then put in
place in one step. What is in place already is kept; what was interrupted goes on where it was.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import shutil
import signal
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Literal, Protocol

from tunnelmark.errors import SetupFailed, TunnelmarkError
from tunnelmark.host import paths, utilisation
from tunnelmark.host.programs import packages_home
from tunnelmark.packages import debian, installed, toolchains
from tunnelmark.packages.build_steps import BuildStep, check, prepare, steps
from tunnelmark.packages.recipe import Recipe
from tunnelmark.packages.status import to_do

_PATIENCE = 5.0  # seconds that a build may take to end when it is asked to
_LOOK_AGAIN = 0.2  # seconds between two looks at whether another process has let go of a recipe

# A session has a share of the CPU of its own (sched(7), autogroup), so `nice` alone would not step back behind others.
# Nice 5 leaves a build a quarter of a core that another program keeps busy; nice 19, its last hundredth, never ends there.
# setpriv: a build whose command was killed ends too.
_LOW = (
    "{ echo 5 >/proc/self/autogroup; } 2>/dev/null\n"
    'command -v ionice >/dev/null && set -- ionice -c 2 -n 7 "$@"\n'
    'command -v setpriv >/dev/null && set -- setpriv --pdeathsig TERM "$@"\n'
    'exec nice -n 5 "$@"'
)

InstallResult = Literal["ready", "kept", "failed", "impossible", "missing"]


@dataclass(frozen=True, slots=True)
class InstallOutcome:
    """The result for one recipe: installed (ready), installed before (kept), failed, impossible here, or missing.

    It is missing if no registry has it, so that the user must bring it.
    """

    name: str
    result: InstallResult
    seconds: float = 0.0
    message: str = ""
    hint: str = ""
    log: Path | None = None


class InstallListener(Protocol):
    """Is called when the installation of a recipe begins and ends."""

    def begin(self, recipe: Recipe) -> None:
        """Note that a recipe's build begins."""

    def end(self, outcome: InstallOutcome) -> None:
        """Note that the installation of a recipe has ended, successfully or not."""


def cache() -> Path:
    """Return the folder in which recipes are built (XDG base directories): each has a folder, a lock and a log there."""
    return paths.cache("packages")


async def install(chosen: Iterable[Recipe], listener: InstallListener, jobs: int) -> list[InstallOutcome]:
    """Install recipes, those that take longest first, and return how each ended.

    Up to `jobs` are installed at once, as far as the free memory suffices. If one fails, the others go on.
    """
    outcomes: list[InstallOutcome] = []

    def ended(outcome: InstallOutcome) -> None:
        outcomes.append(outcome)
        listener.end(outcome)

    waiting: list[Recipe] = []
    for recipe in sorted(chosen, key=lambda recipe: -recipe.about.takes):
        why, hint = toolchains.obstacle(recipe)
        if not to_do(recipe):
            ended(InstallOutcome(recipe.name, "kept"))
        elif why:
            ended(InstallOutcome(recipe.name, "missing" if recipe.file.makers else "impossible", 0.0, why, hint))
        else:
            waiting.append(recipe)
    room = utilisation.memory()[1]
    apt = asyncio.Lock()  # dpkg's own lock lets one in; the others would look busy and are not
    running: dict[asyncio.Task[InstallOutcome], Recipe] = {}
    try:
        while waiting or running:
            while (following := _fitting(waiting, list(running.values()), jobs, room)) is not None:
                waiting.remove(following)
                running[asyncio.create_task(_one(following, listener, apt))] = following
            done, _ = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                del running[task]
                ended(task.result())
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
    return outcomes


def _fitting(waiting: Sequence[Recipe], running: Sequence[Recipe], jobs: int, room: int) -> Recipe | None:
    """Return the first recipe that may begin now.

    None if `jobs` are running, or the memory suffices for none of them.
    """
    taken = sum(recipe.about.memory for recipe in running)
    if len(running) >= jobs:
        return None
    return next((recipe for recipe in waiting if not running or taken + recipe.about.memory <= room), None)


async def _one(recipe: Recipe, listener: InstallListener, apt: asyncio.Lock) -> InstallOutcome:
    """Install one recipe, and return how it ended; errors are part of that."""
    base = cache()
    log = base / "logs" / f"{recipe.name}.log"
    begun = time.monotonic()
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
        with (base / f"{recipe.name}.lock").open("a") as lock:
            while not _locked(lock):
                await asyncio.sleep(_LOOK_AGAIN)
            if not to_do(recipe):  # the process that held the lock did it
                return InstallOutcome(recipe.name, "kept", time.monotonic() - begun)
            if recipe.packages:
                async with apt:
                    begun = time.monotonic()
                    listener.begin(recipe)
                    await _debian(recipe, log, lock)
            else:
                begun = time.monotonic()
                listener.begin(recipe)
                await _build(recipe, base / recipe.name, log, lock, apt)
            return InstallOutcome(recipe.name, "ready", time.monotonic() - begun)
    except TunnelmarkError as error:
        return InstallOutcome(recipe.name, "failed", time.monotonic() - begun, error.message, error.hint, log)
    except OSError as error:
        return InstallOutcome(
            recipe.name,
            "failed",
            time.monotonic() - begun,
            str(error),
            "look at the log, at free space and at permissions",
            log,
        )


async def _build(recipe: Recipe, stage: Path, log: Path, lock: IO[str], apt: asyncio.Lock) -> None:
    begun = time.monotonic()
    prepare(recipe, stage)
    with log.open("wb") as output:
        async with apt:
            if lacking := toolchains.lacking(recipe):
                await _run(BuildStep(debian.command(lacking), Path("/")), output, log, lock, low=False)
        for step in steps(recipe, stage):
            await _run(step, output, log, lock)
    check(recipe, stage, Path(os.environ.get("CARGO_HOME") or os.path.expanduser("~/.cargo")))
    seconds = time.monotonic() - begun
    tool = toolchains.toolchain(recipe)
    installed.write(recipe, stage / "prefix", version=recipe.about.version, seconds=seconds, toolchain=tool)
    installed.place(stage / "prefix", packages_home() / recipe.name)
    shutil.rmtree(stage)


async def _debian(recipe: Recipe, log: Path, lock: IO[str]) -> None:
    begun = time.monotonic()
    there = debian.versions(recipe.packages)
    # Only those that are missing: the others may be the owner's, and the services of what we install are disabled.
    if needed := [package for package in recipe.packages if package not in there]:
        with log.open("wb") as output:
            await _run(BuildStep(debian.command(needed), Path("/")), output, log, lock, low=False)
    if missing := [name for name, path in installed.paths(recipe, Path()).items() if not path.is_file()]:
        raise SetupFailed(f"the packages brought no {', '.join(missing)}", hint="correct the recipe for this system")
    version = debian.versions(recipe.packages).get(recipe.packages[0], "unknown")
    seconds = time.monotonic() - begun
    installed.write(recipe, packages_home() / recipe.name, version=version, seconds=seconds, toolchain="")


async def _run(step: BuildStep, output: IO[bytes], log: Path, lock: IO[str], *, low: bool = True) -> None:
    """Run a step, at low priority if `low`. SetupFailed, with the end of its output, if it fails."""
    output.write(f"$ {' '.join(step.argv)[:500]}\n".encode())
    output.flush()
    process = await asyncio.create_subprocess_exec(
        *(("sh", "-c", _LOW, "sh", *step.argv) if low else step.argv),
        cwd=step.cwd,
        env=os.environ | {"PATH": toolchains.build_path()} | dict(step.env),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        pass_fds=[lock.fileno()],
        start_new_session=low,
        process_group=None if low else 0,  # sudo asks once a session; the keyboard's Ctrl-C is not for apt
    )
    try:
        code = await process.wait()
    except asyncio.CancelledError:
        if low:
            await _end(process)
        else:
            await process.wait()  # dpkg must not be torn off
        raise
    if code != 0:
        raise SetupFailed(f"{Path(step.argv[0]).name} ended with code {code}:\n{_tail(log)}", hint=f"all of it: {log}")


async def _end(process: asyncio.subprocess.Process) -> None:
    """End a build with all its processes, and wait for it."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
        except ProcessLookupError:
            return
        try:
            await asyncio.wait_for(process.wait(), _PATIENCE)
            return
        except TimeoutError:
            continue


def _locked(lock: IO[str]) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _tail(log: Path, lines: int = 12) -> str:
    said = log.read_text(errors="replace").strip().splitlines()
    return "\n".join(f"    {line[:300]}" for line in said[-lines:])
