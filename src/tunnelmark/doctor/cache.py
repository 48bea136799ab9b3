"""Keeps what was measured of this machine for some hours, in the user's cache, as long as it is the same machine at the same load."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import tunnelmark
from tunnelmark.errors import MissingPart
from tunnelmark.host import paths, utilisation
from tunnelmark.lab import emulator
from tunnelmark.linux import cgroups

HOURS = 4.0
"""How long a measurement counts: the hosts of virtual machines are busier at some hours than at others."""

CHANGED = 0.25
"""The share of all cores by which the load may differ from the one at which it was measured."""


@dataclass(slots=True)
class MeasurementCache:
    """What is known of this machine at this moment, by name; what is older, or of another machine or load, is not."""

    file: Path
    key: str
    busy: float  # cores busy now, before anything of ours
    cores: int
    now: float = field(default_factory=time.time)

    @classmethod
    def here(cls) -> MeasurementCache:
        """Of this machine; looks at its load for a moment."""
        return cls(paths.cache("machine.json"), key(), utilisation.load(0.3).busy, utilisation.cores())

    def get(self, name: str) -> dict[str, Any] | None:
        """What was measured under that name, if it still counts."""
        entry = self._entries().get(name)
        if entry is None or not 0 <= self.now - entry["time"] < HOURS * 3600:
            return None
        value: dict[str, Any] = entry["value"]
        return value if abs(entry["busy"] - self.busy) < CHANGED * self.cores else None

    def put(self, name: str, value: dict[str, Any]) -> None:
        """Keep what was measured; where the cache cannot be written it is measured again the next time."""
        entries = {**self._entries(), name: {"time": self.now, "busy": self.busy, "value": value}}
        fresh = {each: entry for each, entry in entries.items() if self.now - entry["time"] < HOURS * 3600}
        with contextlib.suppress(OSError):
            self.file.parent.mkdir(parents=True, exist_ok=True)
            written = self.file.with_suffix(f".{os.getpid()}")
            written.write_text(json.dumps({"key": self.key, "measured": fresh}, indent=1))
            written.replace(self.file)

    def _entries(self) -> dict[str, Any]:
        try:
            kept = json.loads(self.file.read_text())
            found: dict[str, Any] = kept["measured"] if kept["key"] == self.key else {}
        except (OSError, ValueError, KeyError, TypeError):  # none yet, or cut off
            return {}
        return found


def key() -> str:
    """What must be the same for a measurement to count: the machine, its kernel, cores, the lab's own programs and quota."""
    try:
        program = emulator.program().stat()
        built = f"{program.st_size} {program.st_mtime_ns}"
    except (MissingPart, OSError):
        built = "none"
    found = cgroups.find()
    said = [
        utilisation.cpu(),
        utilisation.kernel(),
        utilisation.cores(),
        utilisation.memory()[0],
        utilisation.virtualisation(),
    ]
    said += [_boot(), tunnelmark.__version__, built, str(found.cpu), _quota(found.cpu)]
    return hashlib.sha256(json.dumps(said).encode()).hexdigest()[:16]


def _boot() -> str:
    with contextlib.suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return ""


def _quota(group: Path | None) -> str:
    """How much of the CPU the group above the lab's own may use, in the kernel's words."""
    for name in ("cpu.max", "cpu.cfs_quota_us"):
        with contextlib.suppress(OSError):
            if group is not None:
                return (group / name).read_text().strip()
    return ""
