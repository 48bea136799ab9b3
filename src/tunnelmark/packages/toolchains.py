"""Finds the tools that build packages (go, cargo, a C compiler) and their versions, and what a recipe lacks here."""

from __future__ import annotations

import functools
import importlib.util
import os
import platform
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

from tunnelmark.host.programs import search_path
from tunnelmark.packages import debian
from tunnelmark.packages.recipe import PackageSource, Recipe

_COMPILER = ("gcc", "libc6-dev")
_TIMEOUT = 30  # seconds that `go version` may take on a busy machine


def build_path() -> str:
    """Return PATH, followed by the folders into which the installers of cargo and go put these two programs."""
    cargo = os.environ.get("CARGO_HOME") or os.path.expanduser("~/.cargo")
    return os.pathsep.join([search_path(), f"{cargo}/bin", "/usr/local/go/bin"])


def obstacle(recipe: Recipe) -> tuple[str, str]:
    """Return why a recipe cannot be installed on this machine, and a hint what to do; ("", "") if it can."""
    for source in recipe.sources:
        why = _OBSTACLES[source](recipe)
        if why[0]:
            return why
    return "", ""


def lacking(recipe: Recipe) -> tuple[str, ...]:
    """Return the Debian packages that a build needs and that are not installed; apt can install them first.

    Without dpkg, missing libraries are not found here, and the build fails.
    """
    libraries = [name for table in recipe.file.crate for name in table.packages] if _has("dpkg-query") else []
    there = debian.versions(libraries) if libraries else {}
    compiled = recipe.file.crate or any(table.cc for table in recipe.file.go)
    return (*(name for name in libraries if name not in there), *(_COMPILER if compiled and not _has("cc") else ()))


def toolchain(recipe: Recipe) -> str:
    """Return the tools that build a recipe here, with their versions, for its record: `go 1.26.8`.

    "" if nothing is built.
    """
    tools = {"go": ("go", "version"), "crate": ("cargo", "--version")}
    found = [f"{tools[source][0]} {_first_version(*tools[source])}" for source in recipe.sources if source in tools]
    return ", ".join(found) or (f"python {platform.python_version()}" if recipe.built else "")


def _go(recipe: Recipe) -> tuple[str, str]:
    wanted = max((_go_of(recipe.folder / table.module / "go.mod") for table in recipe.file.go), key=_key)
    if why := _too_old("Go", "go", _first_version("go", "version"), wanted):
        return why, f"install Go {wanted} or later from go.dev, and put it on PATH"
    return _packages(recipe)


def _crate(recipe: Recipe) -> tuple[str, str]:
    wanted = max((table.rust for table in recipe.file.crate), key=_key)
    if why := _too_old("Rust", "cargo", _first_version("cargo", "--version"), wanted):
        return why, f"install Rust{f' {wanted} or later' if wanted else ''} from rustup.rs, and put it on PATH"
    return _packages(recipe)


def _too_old(title: str, program: str, found: str, wanted: str) -> str:
    if not found:
        here = f"the {program} here does not say its version" if _has(program) else f"there is no {program}"
        return f"needs {title}{f' {wanted} or later' if wanted else ''}, and {here}"
    return f"needs {title} {wanted} or later; here is {found}" if _key(found) < _key(wanted) else ""


def _go_of(file: Path) -> str:
    match = re.search(r"^go (\S+)", file.read_text(), re.MULTILINE)
    return match[1] if match else ""


def _key(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version))


def _packages(recipe: Recipe) -> tuple[str, str]:
    needed = lacking(recipe)
    if needed and (refused := _debian(recipe)[0]):
        return f"needs {', '.join(needed)} to be built, for which it {refused}", f"apt-get install {' '.join(needed)}"
    return "", ""


def _pypi(recipe: Recipe) -> tuple[str, str]:
    if importlib.util.find_spec("ensurepip") is None:
        return "needs Python's venv", "apt-get install python3-venv"
    here = f"cp{''.join(platform.python_version_tuple()[:2])} {platform.machine()}"
    assert recipe.file.pypi
    wheels = re.findall(r"^# wheel: (.+)$", (recipe.folder / recipe.file.pypi.requirements).read_text(), re.MULTILINE)
    if wheels and here not in wheels:
        return f"has no wheel for {here}", "use one of: " + ", ".join(wheels)
    return "", ""


def _debian(_: Recipe) -> tuple[str, str]:
    if not _has("apt-get"):
        return "needs apt-get", "install it with this system's own package manager"
    if os.geteuid() != 0 and shutil.which("sudo") is None:
        return "needs root, and there is no sudo", "run the same command as root"
    return "", ""


def _makers(recipe: Recipe) -> tuple[str, str]:
    assert recipe.file.makers
    return "no registry carries it", f"its makers publish it: {recipe.file.makers.where}"


_OBSTACLES: dict[PackageSource, Callable[[Recipe], tuple[str, str]]] = {
    "go": _go,
    "crate": _crate,
    "pypi": _pypi,
    "debian": _debian,
    "makers": _makers,
}


def _has(program: str) -> bool:
    return shutil.which(program, path=build_path()) is not None


@functools.cache
def _first_version(program: str, argument: str) -> str:
    """Return the first version number that a program prints.

    "" if it is not installed, or does not print one in time.
    """
    path = shutil.which(program, path=build_path())
    if path is None:
        return ""
    environ = os.environ | {"GOTOOLCHAIN": "local", "PATH": build_path()}
    try:
        done = subprocess.run(
            [path, argument], capture_output=True, text=True, timeout=_TIMEOUT, check=False, env=environ
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    match = re.search(r"\d+(?:\.\d+)+", done.stdout)
    return match[0] if match else ""
