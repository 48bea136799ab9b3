"""Translates paths of the command's installation into a host's own, because hosts may have it in other folders."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import tunnelmark
from tunnelmark.host import paths, programs

Moves = Sequence[tuple[str, str]]
"""Folders or files of the command's machine, each with its own place here; what is inside another comes before it."""


def here() -> dict[str, str]:
    """Return the paths of this installation's files and folders, by what they are."""
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
    """What to replace in words that were made for the places `there`, so that they are right for `mine`."""
    differing = {place: mine[what] for what, place in there.items() if what in mine and mine[what] != place}
    return sorted(differing.items(), key=lambda both: -len(both[0]))


def moved(words: str, changes: Moves) -> str:
    """A text with every place of the command's machine replaced by its own one here."""
    if not changes:
        return words
    mine = dict(changes)
    return re.sub("|".join(re.escape(place) for place, _ in changes), lambda found: mine[found[0]], words)


def request(message: Mapping[str, Any], changes: Moves) -> dict[str, Any]:
    """A request to a node's agent (see `lab.server.agent`) with its places changed."""
    found = dict(message)
    if "argv" in found:
        found["argv"] = [moved(word, changes) for word in found["argv"]]
    if "env" in found:
        found["env"] = {name: moved(value, changes) for name, value in found["env"].items()}
    if "content" in found:
        found["content"] = moved(found["content"], changes)
    return found
