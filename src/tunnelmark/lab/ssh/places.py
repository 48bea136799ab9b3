"""Translates paths of the command's installation into those of another host, which may have it in other folders."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import tunnelmark
from tunnelmark.host import paths, programs

Moves = Sequence[tuple[str, str]]
"""Pairs of a path on the command's machine and the path here that replaces it; inner paths come before outer ones."""


def here() -> dict[str, str]:
    """Return this installation's absolute paths by name.

    `python`: the interpreter. `prefix`: the folder of its environment. `package`: the folder of the Python package
    tunnelmark. `built`: the folder of its compiled programs. `packages`: the folder that `tunnelmark packages install`
    fills. `data` and `cache`: tunnelmark's folders in the user's data and cache.
    """
    return {
        "python": sys.executable,
        "prefix": sys.prefix,
        "package": str(Path(tunnelmark.__file__).parent),
        "built": str(programs.BUILT),
        "packages": str(programs.packages_home()),
        "data": str(paths.data()),
        "cache": str(paths.cache()),
    }


def moves(there: Mapping[str, str], mine: Mapping[str, str]) -> Moves:
    """Return the paths of `there` that differ from those of `mine`, each with the path of `mine` that replaces it.

    `there`: the paths of the command's installation, as `here` returns them. `mine`: those of this machine's.
    """
    differing = {place: mine[what] for what, place in there.items() if what in mine and mine[what] != place}
    return sorted(differing.items(), key=lambda both: -len(both[0]))


def moved(words: str, changes: Moves) -> str:
    """Return a text in which every path of the command's machine is replaced by the path on this machine."""
    if not changes:
        return words
    mine = dict(changes)
    return re.sub("|".join(re.escape(place) for place, _ in changes), lambda found: mine[found[0]], words)


def request(message: Mapping[str, Any], changes: Moves) -> dict[str, Any]:
    """Return a request to a node's agent (see `lab.server.agent`) with the paths in it replaced."""
    found = dict(message)
    if "argv" in found:
        found["argv"] = [moved(word, changes) for word in found["argv"]]
    if "env" in found:
        found["env"] = {name: moved(value, changes) for name, value in found["env"].items()}
    if "content" in found:
        found["content"] = moved(found["content"], changes)
    return found
