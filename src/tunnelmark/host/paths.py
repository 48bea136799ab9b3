"""Names the folders of a user's files: data that must last, and a cache that can be rebuilt (XDG base directories)."""

from __future__ import annotations

import os
from pathlib import Path


def data(*names: str) -> Path:
    """Return the path `names` below the folder `tunnelmark` in the user's data (XDG_DATA_HOME)."""
    return _below("XDG_DATA_HOME", ".local/share", names)


def cache(*names: str) -> Path:
    """Return the path `names` below the folder `tunnelmark` in the user's cache (XDG_CACHE_HOME)."""
    return _below("XDG_CACHE_HOME", ".cache", names)


def _below(variable: str, usual: str, names: tuple[str, ...]) -> Path:
    chosen = os.environ.get(variable, "")
    # The specification says that a relative path is to be ignored.
    return Path(chosen if chosen.startswith("/") else Path.home() / usual, "tunnelmark", *names)
