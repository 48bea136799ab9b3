"""Reads what distinguishes this machine, as it is set up now, from others: processor, host, kernel, settings, boot.

Everything is read without root, from /proc and /sys; a field that the kernel does not state is empty. The processor's
model name is not enough: hosts of virtual machines give the same name to generations that differ in speed by a factor
of two.
"""

from __future__ import annotations

import gzip
import hashlib
import hmac
import os
import platform
import re
import subprocess
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

_APPLICATION = b"tunnelmark"
"""The key of the hash of a machine's id: machine-id(5) asks not to publish the id itself."""


_COARSE = 6  # CLOCK_MONOTONIC_COARSE in <linux/time.h>, which the module time does not name


@dataclass(frozen=True, slots=True)
class Cpu:
    """One processor, as /proc/cpuinfo and /sys describe it.

    `mhz`: its highest frequency in MHz, else that of its time stamp counter; 0 in a guest, or if neither is known.
    `flags_hash`: a hash of the list of flags, so that two lists can be compared by eye.
    """

    vendor: str
    family: str
    model: str
    stepping: str
    microcode: str
    name: str
    mhz: float
    flags: tuple[str, ...]
    flags_hash: str
    caches: Mapping[str, str]  # by level and type, as the kernel writes sizes: `L1 Data` -> `32K`


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """A machine in one boot. A field is empty, or 0, if the kernel does not state it.

    `siblings`: the groups of logical cores that share a physical core, as the kernel lists them (`0,4`). `hz`: the
    kernel's ticks per second. `preemption`: the kernel's preemption model. `identity`: a hash of the installed system's
    machine ID. `boot`: the kernel's ID of this boot, new with each boot.
    """

    cpu: Cpu
    cores: int
    siblings: tuple[str, ...]
    smt: str
    memory: int  # bytes
    hypervisor: str
    kernel: str
    built: str  # how and when that kernel was built, as `uname -v` says
    hz: int
    preemption: str
    clock_source: str
    mitigations: Mapping[str, str]
    command_line: str
    governor: str
    identity: str
    boot: str
    asked: Mapping[str, str] = field(default_factory=dict)  # settings of the frequency besides the governor, by name


def look(root: Path = Path("/"), *, guest: bool = False) -> Fingerprint:
    """Return the fingerprint of this machine. `root`: the folder of /proc, /sys and /etc; tests use another one.

    `guest`: this is one of our virtual machines, which boots for each run; then its boot, identity and frequency are
    left out.
    """
    live = root == Path("/")
    sys = root / "sys/devices/system"
    blocks = [_fields(block) for block in _read(root / "proc/cpuinfo").split("\n\n")]
    # The last block may be about the board.
    blocks = [block for block in blocks if any(name.startswith("processor") for name in block)]
    cpu = _cpu(blocks[0] if blocks else {}, sys / "cpu/cpu0", with_mhz=not guest)
    config = _config(root)
    machine_id = "" if guest else _read(root / "etc/machine-id").strip()
    return Fingerprint(
        cpu=cpu,
        cores=len(blocks),
        siblings=_siblings(sys / "cpu"),
        smt=_read(sys / "cpu/smt/control").strip(),
        memory=int(_first(r"^MemTotal:\s+(\d+) kB", _read(root / "proc/meminfo")) or 0) * 1024,
        hypervisor=_hypervisor(root, live),
        kernel=_read(root / "proc/sys/kernel/osrelease").strip(),
        built=_read(root / "proc/sys/kernel/version").strip(),
        hz=_hz(config, live),
        preemption=_preemption(root, config),
        clock_source=_read(sys / "clocksource/clocksource0/current_clocksource").strip(),
        mitigations={path.name: _read(path).strip() for path in sorted((sys / "cpu/vulnerabilities").glob("*"))},
        command_line=_read(root / "proc/cmdline").strip(),
        governor=_read(sys / "cpu/cpu0/cpufreq/scaling_governor").strip(),
        identity=hmac.new(machine_id.encode(), _APPLICATION, hashlib.sha256).hexdigest()[:16] if machine_id else "",
        boot="" if guest else _read(root / "proc/sys/kernel/random/boot_id").strip(),
        asked=_asked(sys / "cpu"),
    )


def siblings(root: Path = Path("/")) -> tuple[frozenset[int], ...]:
    """Return the groups of cores (logical ones) that share a physical core; () if none do."""
    return tuple(frozenset(_cores(group)) for group in _siblings(root / "sys/devices/system/cpu"))


def _cores(listed: str) -> Iterator[int]:
    """Yield the cores of a list as the kernel writes it: `0,4` or `0-1`."""
    for part in listed.split(","):
        first, _, last = part.partition("-")
        yield from range(int(first), int(last or first) + 1)


def _cpu(said: Mapping[str, str], place: Path, *, with_mhz: bool) -> Cpu:
    # x86 has `flags`, ARM `Features`; ARM numbers its parts instead of naming families and models.
    flags = tuple(sorted((said.get("flags") or said.get("Features") or "").split()))
    highest = _read(place / "cpufreq/cpuinfo_max_freq").strip()  # kHz
    # Without a driver for the frequency: twice that of the time stamp counter is called bogomips on x86, where `cpu MHz` may
    # be what the core has at this very moment.
    mhz = int(highest) / 1000 if highest.isdigit() else _number(said.get("bogomips", "")) / 2
    return Cpu(
        vendor=said.get("vendor_id") or said.get("CPU implementer") or "",
        family=said.get("cpu family") or said.get("CPU architecture") or "",
        model=said.get("model") or said.get("CPU part") or "",
        stepping=said.get("stepping") or said.get("CPU revision") or "",
        microcode=said.get("microcode", ""),
        name=said.get("model name") or platform.machine(),
        mhz=mhz if with_mhz else 0.0,
        flags=flags,
        flags_hash=hashlib.sha256(" ".join(flags).encode()).hexdigest()[:12],
        caches={
            f"L{_read(each / 'level').strip()} {_read(each / 'type').strip()}": _read(each / "size").strip()
            for each in sorted(place.glob("cache/index*"))
        },
    )


def _siblings(place: Path) -> tuple[str, ...]:
    """Return the groups of cores that share a physical one, as the kernel lists them; () if none do."""
    groups = {_read(path).strip() for path in place.glob("cpu[0-9]*/topology/thread_siblings_list")}
    return tuple(sorted(group for group in groups if not group.isdigit() and group))


def _hypervisor(root: Path, live: bool) -> str:
    """Return the hypervisor that the processor reports; "" if none. lscpu(1) reads it from CPUID, /sys only has Xen."""
    said = _read(root / "sys/hypervisor/type").strip()
    if said or not live:
        return said
    try:
        shown = subprocess.run(
            ["lscpu"], check=False, env={**os.environ, "LC_ALL": "C"}, capture_output=True, text=True, timeout=10
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return _first(r"^Hypervisor vendor:\s+(.+)$", shown.stdout)


def _config(root: Path) -> str:
    """Return the text of the kernel's configuration; "" if it is neither in /proc nor in /boot."""
    try:
        with gzip.open(root / "proc/config.gz", "rt", errors="replace") as file:
            return file.read()
    except (OSError, EOFError):
        release = _read(root / "proc/sys/kernel/osrelease").strip()
        return _read(root / f"boot/config-{release}")


def _hz(config: str, live: bool) -> int:
    """Return the kernel's ticks per second: as configured, else by the coarse clock's resolution, which is a tick."""
    stated = _first(r"^CONFIG_HZ=(\d+)$", config)
    if stated:
        return int(stated)
    return round(1 / time.clock_getres(_COARSE)) if live else 0


def _preemption(root: Path, config: str) -> str:
    """Return the kernel's preemption model: the current one, else that of the command line, else the built-in one."""
    chosen = _first(r"\((\w+)\)", _read(root / "sys/kernel/debug/sched/preempt"))
    asked = _first(r"\bpreempt=(\w+)", _read(root / "proc/cmdline"))
    if chosen or asked:
        return chosen or asked
    built = {"PREEMPT_RT": "rt", "PREEMPT_LAZY": "lazy", "PREEMPT": "full", "PREEMPT_VOLUNTARY": "voluntary"}
    for option, model in {**built, "PREEMPT_NONE": "none"}.items():
        if re.search(rf"^CONFIG_{option}=y$", config, re.MULTILINE):
            return model
    return ""


def _asked(cpu: Path) -> dict[str, str]:
    """Return the settings of the frequency besides its governor, by name, as far as the driver has them."""
    places = {
        "driver": "cpu0/cpufreq/scaling_driver",
        "boost": "cpufreq/boost",
        "no turbo": "intel_pstate/no_turbo",
        "preference": "cpu0/cpufreq/energy_performance_preference",
        "idle driver": "cpuidle/current_driver",
    }
    found = {name: _read(cpu / place).strip() for name, place in places.items()}
    return {name: value for name, value in found.items() if value}


def _fields(block: str) -> dict[str, str]:
    pairs = (line.partition(":") for line in block.splitlines())
    return {name.strip(): value.strip() for name, colon, value in pairs if colon}


def _first(pattern: str, text: str) -> str:
    match = re.search(pattern, text, re.MULTILINE)
    return match[1].strip() if match else ""


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0


def _read(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""
