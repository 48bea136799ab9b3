"""How much CPU time a lab's nodes have used on this machine."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from tunnelmark.host import softirq
from tunnelmark.linux import cgroups


def lab_seconds(top: Path, lab: str, members: Iterable[str]) -> float:
    """CPU seconds that these nodes of a lab have used, user and kernel; `top` is the control group of its command in the v2 hierarchy.

    With those of the kernel's workers, on all cores, because kernel WireGuard encrypts on all: only the difference of two
    looks has a meaning.
    """
    groups = sum(cgroups.cpu_seconds(top / f"{lab}.{name}") for name in members)
    return groups + sum(softirq.workers().values())
