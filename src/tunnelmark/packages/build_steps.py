"""Makes the commands that build a recipe, as plain data, and puts the files in place that they need."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tunnelmark.errors import SetupFailed
from tunnelmark.host.programs import sha256
from tunnelmark.packages.recipe import Recipe

LAUNCHER = """#!/bin/sh
# Runs {script} on the Python of the folder venv next to it.
here=$(dirname "$(readlink -f "$0")")/..
exec "$here/venv/bin/python" -I "$here/{script}" "$@"
"""


@dataclass(frozen=True, slots=True)
class BuildStep:
    """One command of a build. It runs in the folder `cwd`; `env` is added to the environment of this process."""

    argv: tuple[str, ...]
    cwd: Path
    env: Mapping[str, str] = field(default_factory=dict)


def steps(recipe: Recipe, stage: Path) -> list[BuildStep]:
    """Return the commands that build a recipe below `stage`; its programs are then in `stage/prefix/bin`.

    After an interruption, finished parts are used again: they are in `stage` (cargo's target folder) or in go's cache.
    """
    return [*_crates(recipe, stage), *_go(recipe, stage), *_pypi(recipe, stage)]


def prepare(recipe: Recipe, stage: Path) -> None:
    """Copy the recipe's own files to the paths below `stage` where its commands expect them."""
    (stage / "prefix" / "bin").mkdir(parents=True, exist_ok=True)
    source = stage / "recipe"
    shutil.rmtree(source, ignore_errors=True)
    for file in recipe.files():
        target = source / file.relative_to(recipe.folder)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, target)
    for program, script in (recipe.file.pypi.scripts if recipe.file.pypi else {}).items():
        shutil.copyfile(recipe.folder / script, stage / "prefix" / script)
        launcher = stage / "prefix" / "bin" / program
        launcher.write_text(LAUNCHER.format(script=script))
        launcher.chmod(0o755)


def check(recipe: Recipe, stage: Path, cargo_home: Path) -> None:
    """Raise SetupFailed if the build has not made every program, or if a crate is not the one that the recipe pins."""
    for program in recipe.programs:
        if not (stage / "prefix" / "bin" / program).is_file():
            raise SetupFailed(f"the build left no {program}", hint="correct `programs` in the recipe")
    for table in recipe.file.crate:
        archives = list(cargo_home.glob(f"registry/cache/*/{table.name}-{table.version}.crate"))
        if not archives:
            raise SetupFailed(
                f"cargo kept no archive of {table.name} {table.version}, so its hash cannot be checked",
                hint="build it from a registry, not from a vendored folder",
            )
        for archive in archives:
            if (found := sha256(archive)) != table.sha256:
                raise SetupFailed(
                    f"{archive.name} has the hash {found}, and the recipe pins {table.sha256}",
                    hint="the crate or the recipe was changed: find out why before you use it",
                )


def _go(recipe: Recipe, stage: Path) -> list[BuildStep]:
    # GOTOOLCHAIN: no other Go is fetched. GOWORK: no workspace around us counts. -mod=readonly: go.mod and go.sum
    # say which bytes are built, and nothing else does.
    env = {"GOTOOLCHAIN": "local", "GOWORK": "off"}
    found = []
    for table in recipe.file.go:
        folder = stage / "recipe" / table.module
        linker = f"-s -w {table.ldflags}".strip()
        for program, package in table.programs.items():
            out = str(stage / "prefix" / "bin" / program)
            argv = (
                "go",
                "build",
                "-mod=readonly",
                "-trimpath",
                "-buildvcs=false",
                "-ldflags",
                linker,
                "-o",
                out,
                package,
            )
            found.append(BuildStep(argv, folder, env))
    return found


def _crates(recipe: Recipe, stage: Path) -> list[BuildStep]:
    env = {"CARGO_TARGET_DIR": str(stage / "target")}
    prefix = str(stage / "prefix")
    return [
        BuildStep(("cargo", "install", "--locked", "--root", prefix, f"{table.name}@={table.version}"), stage, env)
        for table in recipe.file.crate
    ]


def _pypi(recipe: Recipe, stage: Path) -> list[BuildStep]:
    if recipe.file.pypi is None:
        return []
    venv = stage / "prefix" / "venv"
    pip = (str(venv / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "--no-input", "install")
    exact = ("--require-hashes", "--no-deps", "--only-binary", ":all:")
    lock = str(stage / "recipe" / recipe.file.pypi.requirements)
    return [
        BuildStep((sys.executable, "-m", "venv", "--clear", str(venv)), stage),
        BuildStep((*pip, *exact, "-r", lock), stage),
    ]
