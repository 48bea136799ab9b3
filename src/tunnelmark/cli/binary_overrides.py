"""The option `--bin NAME=PATH`: programs that one command uses before all others.

They are symbolic links in a folder of this command alone, which every node sees. A janitor process removes the folder
when the command has ended in any way, and a lab that it left up has ended too.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable, Collection
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

import click

from tunnelmark import registry
from tunnelmark.errors import UsageError, nearest
from tunnelmark.host import paths
from tunnelmark.host.programs import BUILT, NAMED_VARIABLE, TOOLS
from tunnelmark.linux import scratch
from tunnelmark.packages.recipe import recipes

_F = TypeVar("_F", bound=Callable[..., Any])
_held: list[int] = []
_OF_COLLECTORS = ("perf", "setpriv")


def held() -> tuple[int, ...]:
    """Return the file descriptors that keep the folder of the programs in place; () if `--bin` was not given.

    A process that outlives this command must inherit them: the folder is removed when all copies of them are closed.
    """
    return tuple(_held)


def option(command: _F) -> _F:
    """Give a command the option `--bin`."""
    return click.option(
        "--bin",
        "bins",
        multiple=True,
        metavar="NAME=PATH",
        expose_value=False,
        callback=_name,
        help="Use the program at PATH as NAME, before any other; repeatable.",
    )(command)


def _name(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> None:
    if not values:
        return
    programs = _known()
    named: dict[str, Path] = {}
    for value in values:
        name, path = _checked(value, programs)
        if name in named:
            raise UsageError(f"--bin names {name} twice: {named[name]}, and {path}", hint="leave one of them out")
        named[name] = path
    folder = _folder()
    for name, path in named.items():
        (folder / name).symlink_to(path)
    known = os.environ.get(NAMED_VARIABLE)
    os.environ[NAMED_VARIABLE] = os.pathsep.join([str(folder), *([known] if known else [])])


def _known() -> frozenset[str]:
    """Return the names of all programs: of VPNs (all builds), workloads, recipes, collectors, lab and our own."""
    own = tuple(path.name for path in BUILT.glob("tunnelmark-*") if not path.suffix)
    parts = (*TOOLS, *registry.parts().values())
    of_vpns = [build.programs for driver in registry.vpns().values() for build in driver.builds.values()]
    of_workloads = [workload.programs for workload in registry.workloads().values()]
    of_recipes = [recipe.programs for recipe in recipes().values()]
    of_parts = [part.programs for part in parts]
    return frozenset(chain(own, _OF_COLLECTORS, *of_parts, *of_vpns, *of_workloads, *of_recipes))


def _checked(value: str, known: Collection[str]) -> tuple[str, Path]:
    name, equals, text = value.partition("=")
    if not (name and equals and text) or "/" in name:
        raise UsageError(
            f"--bin {value} is not NAME=PATH", hint="for example --bin zerotier-one=/opt/zerotier/zerotier-one"
        )
    if name not in known:
        raise UsageError(
            f"--bin {name}: no VPN, workload or tool of the lab has a program of that name",
            hint=nearest(name, sorted(known)),
        )
    path = Path(text).expanduser().absolute()
    if not path.is_file():
        raise UsageError(f"--bin {name}: there is no file {path}", hint="give the path of the program itself")
    if not os.access(path, os.X_OK):
        raise UsageError(f"--bin {name}: {path} cannot be executed", hint=f"chmod +x {path}")
    return name, path.resolve()


def _folder() -> Path:
    """Make a new folder; its janitor removes it when the last process has closed the janitor's pipe."""
    base = paths.cache("bin").resolve()
    base.mkdir(parents=True, exist_ok=True)
    _sweep(base)
    folder = base / f"{os.getpid()}-{os.urandom(3).hex()}"
    folder.mkdir()
    _held.append(scratch.hold(folder))
    return folder


def _sweep(base: Path) -> None:
    """Remove folders whose janitor was killed together with its command."""
    for folder in base.iterdir():
        with contextlib.suppress(OSError, ValueError):
            if not _in_use(folder):
                shutil.rmtree(folder)


def _in_use(folder: Path) -> bool:
    """Return whether the folder's command still runs, or its janitor, whose command line has the folder."""
    if Path("/proc", folder.name.partition("-")[0]).exists():
        return True
    sign = os.fsencode(folder)
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if sign in entry.read_bytes().split(b"\0"):
                return True
    return False
