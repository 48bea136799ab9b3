"""Makes what a workload needs beforehand, once on a machine: in the user's cache, complete or not there at all."""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from tunnelmark.errors import MissingPart
from tunnelmark.host import paths
from tunnelmark.host.programs import find, path_of
from tunnelmark.linux.late_interrupt import held_back
from tunnelmark.workloads.base import Asset

_TOLD = 2000  # characters of what a failed command printed


def folder_of(asset: Asset) -> Path:
    """The folder of an asset, made or not; its name holds a hash of how the asset is made, so that a changed one is made again."""
    recipe = repr((asset.commands, sorted(asset.files.items())))
    return paths.cache("assets", f"{asset.name}-{hashlib.sha256(recipe.encode()).hexdigest()[:16]}")


def absent(assets: Iterable[Asset]) -> tuple[Asset, ...]:
    """Those that must still be made."""
    return tuple(asset for asset in assets if not folder_of(asset).is_dir())


def make(asset: Asset, recipe: str = "") -> Path:
    """The folder of an asset, made now if it is not there; MissingPart says what is missing or which command failed."""
    folder = folder_of(asset)
    if folder.is_dir():
        return folder
    for program in asset.programs:
        find(program, asset.packages, recipe)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".making-", dir=folder.parent) as scratch:
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


def _run(
    argv: tuple[str, ...], work: Path, environment: Mapping[str, str], timeout: float
) -> subprocess.CompletedProcess[bytes]:
    """Run a command to its end; what ends us, Ctrl-C too, ends it with all that it has started."""
    process = None
    try:
        with held_back():  # until we know whom to end
            process = subprocess.Popen(
                argv,
                cwd=work,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        said, _ = process.communicate(timeout=timeout)
    except BaseException:
        if process is not None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
        raise
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
