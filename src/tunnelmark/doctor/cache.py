"""Keeps measurements of this machine for some hours in a file of the user's cache.

They count only on the same machine and at a similar load.
"""

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
"""For how many hours a measurement counts: the hosts of virtual machines are busier at some hours than at others."""

CHANGED = 0.25
"""By what share of all cores the load may differ from the load during the measurement, for the measurement to count."""


@dataclass(slots=True)
class MeasurementCache:
    """The measurements that count at this moment, by name: recent ones, of this machine, at a similar load."""

    file: Path
    key: str
    busy: float  # cores busy now, before anything of ours
    cores: int
    now: float = field(default_factory=time.time)

    @classmethod
    def here(cls) -> MeasurementCache:
        """Return the cache of this machine, after measuring the machine's load for 0.3 seconds."""
        return cls(paths.cache("machine.json"), key(), utilisation.load(0.3).busy, utilisation.cores())

    def get(self, name: str) -> dict[str, Any] | None:
        """Return the measurement that was stored under a name; None if it was never stored or does not count any more.

        It counts for `HOURS`, on the same machine (`key`), while the number of busy cores differs by less than
        `CHANGED` of all cores.
        """
        entry = self._entries().get(name)
        if entry is None or not 0 <= self.now - entry["time"] < HOURS * 3600:
            return None
        value: dict[str, Any] = entry["value"]
        return value if abs(entry["busy"] - self.busy) < CHANGED * self.cores else None

    def put(self, name: str, value: dict[str, Any]) -> None:
        """Store a measurement under a name, and drop old ones. If the file cannot be written, nothing is stored."""
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
    """Return a hash (16 hex digits) of all that must stay the same for a measurement to count.

    These are the processor, kernel, cores, memory, virtualisation, boot, the version of tunnelmark, the emulator's
    file, and the control group with its CPU quota.
    """
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
    """Return the CPU quota of a control group, as the kernel writes it; "" if it cannot be read."""
    for name in ("cpu.max", "cpu.cfs_quota_us"):
        with contextlib.suppress(OSError):
            if group is not None:
                return (group / name).read_text().strip()
    return ""
