"""Finds out what this machine has for a virtual machine: QEMU, busybox, whether KVM works, kernels in the cache."""

from __future__ import annotations

import asyncio
import os
import platform
from dataclasses import dataclass
from typing import Literal

from tunnelmark.errors import MissingPart
from tunnelmark.host.programs import version
from tunnelmark.lab.vm import guest, kernel, qemu
from tunnelmark.lab.vm import kvm as accelerate


@dataclass(frozen=True, slots=True)
class VmSupport:
    """What this machine has for a virtual machine. `qemu`: its version, "" if it is missing.

    `lacks`: what to install or to use instead, "" if nothing is missing. `kvm`: `works`; `broken` (/dev/kvm is there,
    but guests do not run on it, or slowly); `none`. `kernels`: releases in the cache.
    """

    qemu: str
    lacks: str
    kvm: Literal["works", "broken", "none"]
    kernels: tuple[str, ...]


def look() -> VmSupport:
    """Return what this machine has for a virtual machine. On an idle host, trying out KVM takes less than a second."""
    try:
        found, lacks = version((qemu.PROGRAM, "--version"), r"version (\S+)", accelerate.PACKAGES), ""
    except MissingPart as missing:
        found, lacks = "", missing.hint
    try:
        guest.busybox()
    except MissingPart as missing:
        lacks = f"{lacks} {' '.join(guest.BUSYBOX)}" if lacks.startswith("apt-get install") else missing.hint
    if platform.machine() != "x86_64":
        lacks = f"the virtual machine is made for x86_64, and this is {platform.machine()}"
    return VmSupport(found, lacks, _kvm(bool(found)), kernel.cached())


def _kvm(qemu_there: bool) -> Literal["works", "broken", "none"]:
    if not os.access("/dev/kvm", os.R_OK | os.W_OK):
        return "none"
    return "works" if qemu_there and asyncio.run(accelerate.works()) else "broken"
