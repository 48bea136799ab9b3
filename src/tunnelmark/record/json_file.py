"""Writes the JSON files of a results folder so that each is complete at every moment, also after a power failure."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def write(path: Path, content: Mapping[str, Any]) -> None:
    """Write a file next to `path`, wait until it is on the disk, and put it in the place of `path` in one step.

    Raises OSError if that fails; the file that was there then stays.
    """
    written = path.with_name(f"{path.name}.new")
    with written.open("w", encoding="utf-8") as file:
        json.dump(dict(content), file, indent=2, ensure_ascii=False)
        file.write("\n")
        file.flush()
        os.fsync(file.fileno())
    written.replace(path)
