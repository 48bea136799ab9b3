"""Reads, checks and writes the record of an installed recipe, and puts its programs and the record in place."""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path
from typing import Any

from tunnelmark import former_names
from tunnelmark.host import programs
from tunnelmark.linux import syscalls
from tunnelmark.packages.recipe import Recipe

FILE = "installed.json"
"""The record's name in a recipe's folder below `packages_home()`."""


def read(folder: Path) -> dict[str, Any] | None:
    """Return the record in a recipe's folder; None if there is none, or it cannot be read.

    Its keys are `package`, `version`, `source`, `recipe` (the recipe's digest), `toolchain`, `seconds`, `installed`
    (the time, UTC) and `programs` (by name: `sha256` and `bytes`).
    """
    file = folder / FILE
    try:
        found = json.loads((file if file.exists() else folder / former_names.PACKAGE_RECORD).read_text())
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def changed(recipe: Recipe, folder: Path) -> str:
    """Return in words how installed programs differ from their record or the recipe; "" if they do not."""
    record = read(folder)
    if record is None:
        return "it has no record"
    if record.get("recipe") != recipe.digest():
        return "its recipe has changed since"
    for program, path in paths(recipe, folder).items():
        try:
            if programs.digest(path) != record["programs"][program]["sha256"]:
                return f"{program} is not the one that was installed"
        except (OSError, KeyError, TypeError):
            return f"{program} is gone"
    return ""


def paths(recipe: Recipe, folder: Path) -> dict[str, Path]:
    """Return the path of each program of an installed recipe: in its folder, or where Debian has installed it.

    For a Python package, our script and the compiled modules count as programs, too, because the program itself is only
    a shell script that starts them. A program that Debian has not installed gets a path that does not exist.
    """
    if not recipe.packages:
        inside = {program: folder / "bin" / program for program in recipe.programs}
        if recipe.file.pypi:
            inside |= {script: folder / script for script in recipe.file.pypi.scripts.values()}
            inside |= {one.name: one for one in sorted(folder.glob("venv/lib/python*/site-packages/**/*.so"))}
        return inside
    found = {program: shutil.which(program, path=programs.search_path()) for program in recipe.programs}
    return {program: Path(path or f"/nowhere/{program}") for program, path in found.items()}


def write(recipe: Recipe, folder: Path, *, version: str, seconds: float, toolchain: str) -> None:
    """Write into `folder` the record of the programs there, or of the programs that Debian packages have installed.

    `version`: the version of the recipe or of its first Debian package. `seconds`: how long the installation took.
    `toolchain`: the tools of the build with their versions (`toolchains.toolchain`); "" if nothing was built.
    """
    record = {
        "package": recipe.name,
        "version": version,
        "source": " and ".join(recipe.sources),
        "recipe": recipe.digest(),
        "toolchain": toolchain,
        "seconds": round(seconds, 1),
        "installed": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "programs": {
            program: {"sha256": programs.digest(path), "bytes": path.stat().st_size}
            for program, path in paths(recipe, folder).items()
        },
    }
    folder.mkdir(parents=True, exist_ok=True)
    new = folder / f"{FILE}.new"
    new.write_text(json.dumps(record, indent=2) + "\n")
    new.replace(folder / FILE)


def place(built: Path, target: Path) -> None:
    """Put a built folder where it is used, in one step. Programs that run from an older folder can go on.

    The built folder is first copied next to its target, because the two may be on different file systems.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    new = target.parent / f".{target.name}.new"
    shutil.rmtree(new, ignore_errors=True)
    shutil.copytree(built, new, symlinks=True)
    if target.is_dir():
        syscalls.exchange(new, target)
        shutil.rmtree(new)
    else:
        new.rename(target)
