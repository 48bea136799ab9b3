"""Makes the assets of workloads (files that take long to make, such as a video clip) once on each machine.

They are kept in the user's cache. An asset there is complete, or it does not exist.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import shutil
import signal
import subprocess
import tempfile
import threading
from collections.abc import Iterable, Mapping
from pathlib import Path

from tunnelmark.errors import MissingPart
from tunnelmark.host import paths
from tunnelmark.host.programs import find, path_of
from tunnelmark.linux.late_interrupt import held_back
from tunnelmark.workloads.base import Asset

_TOLD = 2000  # characters of what a failed command printed
_MAKING = ".making-"  # prefix of the names of unfinished folders; the number of the process that makes it follows

_ENDS_WITH_US = ("setpriv", "--pdeathsig", "KILL", "unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "--")
"""Makes the kernel kill a program and all that it has started when this process ends in any way; it needs root."""

_running: set[int] = set()  # leaders of process groups
_given_up = threading.Event()


def give_up() -> None:
    """Kill the programs that make assets in other threads, because the command that needs the assets is ending.

    No further program is started either: the calls of `make` that need one raise MissingPart.
    """
    _given_up.set()
    for group in tuple(_running):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(group, signal.SIGKILL)


def folder_of(asset: Asset) -> Path:
    """Return the folder of an asset, even if it is not made yet.

    Its name has a hash of the commands and files that make the asset, so that a changed asset is made again.
    """
    recipe = repr((asset.commands, sorted(asset.files.items())))
    return paths.cache("assets", f"{asset.name}-{hashlib.sha256(recipe.encode()).hexdigest()[:16]}")


def absent(assets: Iterable[Asset]) -> tuple[Asset, ...]:
    """Return those of the assets that do not exist yet, so that `make` must still make them."""
    return tuple(asset for asset in assets if not folder_of(asset).is_dir())


def make(asset: Asset, recipe: str = "") -> Path:
    """Return the folder of an asset, and make it if it does not exist.

    `recipe`: the name of a recipe, whose installed programs are then found, too; "" for none. Raises MissingPart if a
    program is missing, a command fails, or the folder cannot be written; it says which.
    """
    folder = folder_of(asset)
    if folder.is_dir():
        return folder
    for program in asset.programs:
        find(program, asset.packages, recipe)
    try:
        return _made(asset, folder, recipe)
    except OSError as error:  # of its own files: what a command says is a MissingPart already
        raise MissingPart(
            f"{asset.name} could not be made: {error}", hint=f"it needs room and a folder to write in: {folder.parent}"
        ) from error


def _made(asset: Asset, folder: Path, recipe: str) -> Path:
    folder.parent.mkdir(parents=True, exist_ok=True)
    _clear(folder.parent)
    with tempfile.TemporaryDirectory(prefix=f"{_MAKING}{os.getpid()}-", dir=folder.parent) as scratch:
        work = Path(scratch, "asset")
        work.mkdir()
        for name, content in asset.files.items():
            (work / name).parent.mkdir(parents=True, exist_ok=True)
            (work / name).write_text(content)
        for argv in asset.commands:
            _carry_out(asset, argv, work, recipe)
        try:
            work.rename(folder)
        except OSError:  # another command was faster
            shutil.rmtree(work, ignore_errors=True)
    return folder


def _clear(folder: Path) -> None:
    """Remove unfinished folders whose process does not run any more."""
    for left in folder.glob(f"{_MAKING}*"):
        maker = left.name.removeprefix(_MAKING).partition("-")[0]
        if not Path("/proc", maker).exists():
            shutil.rmtree(left, ignore_errors=True)


def _run(
    argv: tuple[str, ...], work: Path, environment: Mapping[str, str], timeout: float
) -> subprocess.CompletedProcess[bytes]:
    """Run a command to its end. If an error or Ctrl-C ends this call, the command and all it has started are killed."""
    process = None
    try:
        with held_back():  # no Ctrl-C until the process to be killed is known
            if _given_up.is_set():
                raise OSError(errno.ECANCELED, "it is not wanted any more")
            process = subprocess.Popen(
                (*_ENDS_WITH_US, *argv) if os.geteuid() == 0 else argv,
                cwd=work,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            _running.add(process.pid)
        if _given_up.is_set():  # meanwhile
            os.killpg(process.pid, signal.SIGKILL)
        said, _ = process.communicate(timeout=timeout)
    except BaseException:
        if process is not None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
        raise
    finally:
        if process is not None:
            _running.discard(process.pid)
    return subprocess.CompletedProcess(argv, process.returncode, said)


def _carry_out(asset: Asset, argv: tuple[str, ...], work: Path, recipe: str) -> None:
    environment = os.environ | {"PATH": path_of(recipe), "HOME": str(work)}
    try:
        done = _run(argv, work, environment, asset.timeout)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise MissingPart(
            f"{asset.name} could not be made: {error}", hint=f"try it in an empty folder: {argv[0]}"
        ) from error
    if done.returncode != 0:
        said = done.stdout.decode(errors="replace").strip()[-_TOLD:]
        raise MissingPart(
            f"{asset.name} could not be made: {argv[0]} ended with code {done.returncode}: {said}",
            hint=f"it ran as: {' '.join(argv)[:300]}",
        )
