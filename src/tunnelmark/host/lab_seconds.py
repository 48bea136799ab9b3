"""Reads how much CPU time a lab's nodes have used on this machine."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from tunnelmark.host import softirq
from tunnelmark.linux import cgroups


def lab_seconds(top: Path, lab: str, members: Iterable[str]) -> float:
    """Return the CPU seconds that these nodes of a lab have used, user and kernel.

    `top` is the control group of the lab's command in the v2 hierarchy. The seconds of the kernel's workers on all
    cores are included, because kernel WireGuard encrypts on all: only the difference of two calls has a meaning.
    """
    groups = sum(cgroups.cpu_seconds(top / f"{lab}.{name}") for name in members)
    return groups + sum(softirq.workers().values())
