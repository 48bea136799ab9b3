"""Reads facts about the machine that runs the lab: system, kernel, processor, memory, and its load by other work."""

from __future__ import annotations

import os
import platform
import re
import time
from dataclasses import dataclass
from pathlib import Path

from tunnelmark.host import keep_awake
from tunnelmark.host.cores import usable

_STEAL, _IDLE, _IOWAIT = 7, 3, 4  # columns of the line `cpu` in /proc/stat (proc_stat(5))
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class HostLoad:
    """The machine's load. Loops that keep cores awake for a lab count only in `average`.

    `average`: the kernel's load average of the last minute. `busy`: the mean number of cores that worked while the load
    was measured. `steal`: the mean number of cores that the machine's host took away meanwhile.
    """

    average: float
    busy: float
    steal: float


def system() -> str:
    """Return the distribution's own name, for example `Debian GNU/Linux 12 (bookworm)`."""
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME", platform.system())
    except OSError:
        return platform.system()


def kernel() -> str:
    """Return the kernel's release and the architecture."""
    return f"{platform.release()} {platform.machine()}"


def cpu() -> str:
    """Return the processor's model name; its architecture if the kernel does not state the name."""
    match = re.search(r"^(?:model name|Model|Processor)\s*:\s*(.+)$", _read("/proc/cpuinfo"), re.MULTILINE)
    return match[1].strip() if match else platform.machine()


def cores() -> int:
    """Return the number of cores that this process may use."""
    return len(usable())


def memory() -> tuple[int, int]:
    """Return the memory in bytes: all of it, and the part that is available now."""
    found = dict(re.findall(r"^(MemTotal|MemAvailable):\s+(\d+) kB$", _read("/proc/meminfo"), re.MULTILINE))
    return int(found.get("MemTotal", 0)) * 1024, int(found.get("MemAvailable", 0)) * 1024


def virtualisation() -> str:
    """Return the kind of virtual machine or container (`kvm`, `microsoft`...); `none` if it is neither.

    For a virtual machine of an unknown kind it is the maker's name in lower case, or `hypervisor` if the kernel does
    not state that. It is read from files of the kernel, so no program is needed.
    """
    vendor = _read("/sys/class/dmi/id/sys_vendor").strip()
    guest = " hypervisor" in _read("/proc/cpuinfo")  # a flag that only x86 has; these makers build hardware as well
    for known, name in _VENDORS.items():
        if known in vendor and (guest or platform.machine() not in _X86):
            return name
    if guest:
        return vendor.lower() or "hypervisor"
    return "container" if Path("/.dockerenv").exists() or Path("/run/.containerenv").exists() else "none"


_X86 = ("x86_64", "i686")
_VENDORS = {
    "QEMU": "kvm",
    "Amazon": "amazon",
    "Google": "google",
    "Microsoft": "microsoft",
    "VMware": "vmware",
    "innotek": "virtualbox",
    "Xen": "xen",
}


def load(seconds: float = 0.2) -> HostLoad:
    """Measure the machine's load for `seconds`, in which the calling thread sleeps, and return it."""
    before, loops, began = _ticks(), keep_awake.own_seconds(), time.monotonic()
    time.sleep(seconds)
    after, took = _ticks(), time.monotonic() - began
    used = [(late - early) / _TICKS / took for early, late in zip(before, after, strict=True)]
    # Guest time is part of user time already, so only the first eight columns count.
    busy = sum(used[:8]) - used[_IDLE] - used[_IOWAIT] - used[_STEAL] - (keep_awake.own_seconds() - loops) / took
    return HostLoad(average=os.getloadavg()[0], busy=round(max(busy, 0.0), 2), steal=round(used[_STEAL], 2))


def stolen() -> float:
    """Return the seconds, of all cores together, that the machine's host has taken since the machine started."""
    return _ticks()[_STEAL] / _TICKS


def _ticks() -> list[int]:
    return [int(field) for field in _read("/proc/stat").split("\n", 1)[0].split()[1:]]


def _read(path: str) -> str:
    try:
        return Path(path).read_text(errors="replace")
    except OSError:
        return ""
