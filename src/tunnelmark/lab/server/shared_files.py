"""Finds the host's files in `/tmp` and `/run` that each node must see, although each node has its own such folders.

A node's own `/tmp` and `/run` are empty (see `isolate`). The host's may hold a checkout, a virtual environment,
installed VPNs, a cache, or a folder that TUNNELMARK_PATH or PATH names, and a node runs programs from all of these.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import tunnelmark
from tunnelmark.former_names import EMULATOR_VARIABLE
from tunnelmark.host import paths, programs

_LISTS = ("TUNNELMARK_PATH", programs.NAMED_VARIABLE)  # environment variables that hold folders, separated by colons
_PROGRAMS = ("TUNNELMARK_EMULATOR", EMULATOR_VARIABLE)  # see `emulator.VARIABLE`, which this module cannot import
_LONGEST_CHAIN = 40  # links that the kernel follows in one path (path_resolution(7))


def needed() -> tuple[str, ...]:
    """Return the absolute paths of all that nodes may run or read of this installation and its user."""
    environ = os.environ
    listed = [folder for name in _LISTS for folder in environ.get(name, "").split(os.pathsep)]
    searched = [*programs.search_path().split(os.pathsep), *environ.get(programs.NAMED_VARIABLE, "").split(os.pathsep)]
    caller = programs.caller_packages()
    installed_here = [programs.packages_home(), *([caller] if caller else [])]
    wanted = [
        *_chain(sys.executable),
        *(sys.prefix, sys.base_prefix, *(place for place in sys.path if place != os.getcwd())),
        *Path(tunnelmark.__file__).parents[:2],
        *(paths.data(), paths.cache(), *installed_here),
        *(*listed, *searched, *_behind_links(searched), *(environ.get(name, "") for name in _PROGRAMS)),
    ]
    return tuple(dict.fromkeys(os.path.abspath(os.path.expanduser(path)) for path in map(str, wanted) if path))


def below(wanted: Iterable[str], hidden: Sequence[str]) -> tuple[str, ...]:
    """Return those of the paths `wanted` that exist and are below one of the folders `hidden`, in alphabetical order.

    `hidden`: folders of the host that nodes do not see, such as `/tmp`. If a path leads through a symbolic link, its
    own name and its real name are both looked at. A path inside another path of the result is left out.
    """
    named = {name for path in wanted for name in (path, os.path.realpath(path)) if _under(name, hidden)}
    kept: list[str] = []
    for name in sorted(named):  # a folder comes before what is in it
        if os.path.exists(name) and not _under(name, kept):
            kept.append(name)
    return tuple(kept)


def _under(path: str, tops: Iterable[str]) -> bool:
    return any(path.startswith(top + "/") for top in tops)


def _chain(path: str) -> Iterator[str]:
    """Yield a program, and each file that its links lead to: a virtual environment's Python leads to another one."""
    for _ in range(_LONGEST_CHAIN):
        yield path
        if not os.path.islink(path):
            return
        path = os.path.join(os.path.dirname(path), os.readlink(path))


def _behind_links(searched: Iterable[str]) -> Iterator[str]:
    """Yield the targets of the links in some folders: `--bin` makes links to programs there, and so do users."""
    for folder in dict.fromkeys(searched):
        try:
            links = [entry.path for entry in os.scandir(folder or ".") if entry.is_symlink()] if folder else []
        except OSError:
            continue
        yield from map(os.path.realpath, links)
