"""Says whether this machine can run a lab: one check for each need, with a hint if the need is not met.

The checks judge only the data in `Findings`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tunnelmark.doctor.machine_findings import PERF, Findings, look
from tunnelmark.host import privileges
from tunnelmark.host.programs import Requirement
from tunnelmark.lab import emulator

_CAP_NET_ADMIN, _CAP_SYS_ADMIN = 12, 21  # <linux/capability.h>
_GIB = 2**30

_OF_USERS = {
    "user": "user namespaces",
    "namespaces": "namespaces",
    "tun": "/dev/net/tun",
    "veth": "veth",
    "tbf": "tbf",
    "real-time": "real-time priority",
    "cgroup": "control groups",
}
"""What a lab needs: each probe with its name in messages. CUBIC is not here: either of two probes is enough for it."""

CheckState = Literal["ok", "warn", "missing", "absent"]
CheckGroup = Literal["machine", "kernel", "virtual machine", "tools", "vpns", "measured"]


@dataclass(frozen=True, slots=True)
class Check:
    """One need of a lab, and whether this machine meets it.

    `state`: ok; warn (a lab works, but less well, or not with everything); missing (no lab works);
    absent (not there, but only optional features need it). `hint` says what to do; it is empty only if the state is ok.
    """

    group: CheckGroup
    name: str
    state: CheckState
    value: str
    hint: str = ""


def examine(vpns: Sequence[Requirement] = (), results: Path | None = None) -> tuple[Check, ...]:
    """Look at this machine and return all checks.

    `vpns`: the programs that drivers need. `results`: the folder for results (default: the working directory). LabError
    if the probes themselves fail.
    """
    return judge(look(vpns, results or Path.cwd()))


def judge(found: Findings) -> tuple[Check, ...]:
    """Return all checks of the machine, judged from the findings, in the order in which they are displayed. Pure."""
    return (*_machine(found), *_kernel(found), *_guests(found), *_parts(found))


def _machine(found: Findings) -> list[Check]:
    linux, root = found.os == "Linux", _root(found)
    memory, available = found.memory
    load = found.load
    cores = f"{found.cores}, {max(found.cores - load.busy, 0.0):.1f} of them free now"
    return [
        _check("machine", "system", linux, f"{found.system}, {found.kernel}", "a lab needs Linux: use a machine or VM"),
        _check("machine", "root", root, "yes" if root else "no", "run the command as root, or with sudo"),
        _without_root(found),
        _advice("machine", "cores", found.cores >= 2, cores, "use two cores or more: daemons share one here"),
        _advice("machine", "memory", available >= _GIB, f"{available / _GIB:.1f} of {memory / _GIB:.1f} GiB available",
                "a lab and its analysis need about 1 GiB"),
        _advice("machine", "disk", found.disk >= _GIB, f"{found.disk / _GIB:.1f} GiB free", "free some space for results"),
        _advice("machine", "load", load.busy < 0.2 * found.cores, f"{load.busy:.1f} cores busy, average {load.average:.1f}",
                "other work is running: its share of the CPU becomes noise in the results"),
        _advice("machine", "steal", load.steal < 0.02 * found.cores, f"{load.steal:.2f} cores",
                "the host of this VM takes CPU away: expect wide intervals, or use another machine"),
    ]  # fmt: skip


def _root(found: Findings) -> bool:
    return all(found.capabilities >> capability & 1 for capability in (_CAP_NET_ADMIN, _CAP_SYS_ADMIN))


def _without_root(found: Findings) -> Check:
    """Return the check whether this kernel lets a user without root make the nodes of a lab, in a user namespace."""
    refused = {label: found.as_user.get(name, "") for name, label in _OF_USERS.items()}
    refused["CUBIC"] = min((found.as_user.get(name, "") for name in ("cubic-sysctl", "cubic-bpf")), key=len)
    said = ", ".join(f"{label} ({why})" for label, why in refused.items() if why)
    value = f"refused to users: {said}" if said else "the kernel would allow it; the lab itself still needs root"
    return _wish("machine", "without root", not said, value, privileges.sudo_rule())


def _kernel(found: Findings) -> list[Check]:
    if not _root(found):
        return [_wish("kernel", "what a lab needs", False, "not tried without root", "sudo tunnelmark doctor")]
    probe = found.probes
    container = "in a container, start it privileged, or with the capabilities NET_ADMIN and SYS_ADMIN"
    module = "load or build the kernel module: modprobe {}"
    essential = {
        "namespaces": ("net, mnt, uts, ipc, pid", container),
        "tun": ("usable", "modprobe tun; in a container, start it with --device /dev/net/tun"),
        "veth": ("usable", module.format("veth")),
        "mirred": ("usable", module.format("act_mirred cls_u32 sch_ingress")),
        "tbf": ("usable", module.format("sch_tbf")),
    }
    checks = [
        _check("kernel", name, not probe[name], probe[name] or value, hint) for name, (value, hint) in essential.items()
    ]
    checks.append(_accounting(found))
    checks.append(_priority(found))
    checks.append(_congestion(found))
    guest = "the virtual machine has it: --backend vm"
    wishes = {
        "user namespaces": ("user", "optional: raise user.max_user_namespaces"),
        "htb": ("htb", module.format("sch_htb")),
        "netem": ("netem", f"{module.format('sch_netem')}; {guest}; every profile without a backend goes without it"),
        "kernel WireGuard": ("wireguard", f"{module.format('wireguard')}; {guest}"),
    }
    for label, (name, hint) in wishes.items():
        checks.append(
            _wish("kernel", label, not probe[name], f"not here: {probe[name]}" if probe[name] else "usable", hint)
        )
    return [*checks, *_offloads(found), *_tracing(found)]


def _offloads(found: Findings) -> list[Check]:
    """Return the check whether a VPN on TUN may hand over super-packets, which are split later (TSO, USO)."""
    tcp, udp = not found.probes["tun-tso"], not found.probes["tun-uso"]
    value = "TCP and UDP" if udp else "TCP only" if tcp else "none"
    return [
        _wish("kernel", "TUN offloads", udp, value, "Linux 6.2 or later has both; VPNs that use them are slower here")
    ]


def _tracing(found: Findings) -> list[Check]:
    counts, cycles = not found.probes["perf"], not found.probes["perf-cycles"]
    value = (
        "usable, with hardware counters" if cycles else "by the clock only: this processor's counters are not to be had"
    )
    if not counts:
        value = f"not here: {found.probes['perf']}"
    perf = "profiles are sampled by a clock; a machine that is not virtual has hardware counters"
    allow = "run as root, or lower kernel.perf_event_paranoid"
    bpf = found.probes["cubic-bpf"]
    return [
        _wish("kernel", "perf events", cycles, value, perf if counts else allow),
        _wish(
            "kernel",
            "BPF",
            not bpf,
            f"not here: {bpf}" if bpf else "usable on control groups",
            "run as root on a kernel with CONFIG_CGROUP_BPF",
        ),
    ]


def _guests(found: Findings) -> list[Check]:
    guests = found.guests
    kvm: dict[str, tuple[str, str]] = {
        "works": ("KVM", ""),
        "broken": (
            "software emulation: /dev/kvm is there, and a guest gets nowhere with it",
            "its numbers are not speeds",
        ),
        "none": (
            "software emulation: /dev/kvm is not to be had",
            "with KVM its numbers would be speeds of that machine",
        ),
    }
    value, hint = kvm[guests.kvm]
    kernels = ", ".join(guests.kernels)
    fetched = "fetched when it is needed first (70 to 100 MB), by --kernel any that apt knows"
    return [
        _wish("virtual machine", "QEMU", not guests.lacks, guests.qemu or "not installed", guests.lacks),
        _wish("virtual machine", "acceleration", guests.kvm == "works", value, hint),
        _wish("virtual machine", "kernels", bool(kernels), kernels or "none in the cache", fetched),
    ]


def _accounting(found: Findings) -> Check:
    works = not found.probes["cgroup"]
    value = f"cgroup v2 at {found.cgroup_v2}" if works else found.probes["cgroup"]
    hint = "mount the v2 hierarchy writable: mount -t cgroup2 none /sys/fs/cgroup"
    return _check("kernel", "CPU accounting", works, value, hint)


def _priority(found: Findings) -> Check:
    value = "none: autogroup nice is used" if not found.cgroup_cpu else f"CPU controller at {found.cgroup_cpu}"
    hint = "without the cgroup CPU controller, other work is harder to keep away: keep the machine quiet"
    return _advice("kernel", "CPU priority", bool(found.cgroup_cpu), value, hint)


def _congestion(found: Findings) -> Check:
    default = f"default {found.congestion_default}"
    if "cubic" not in found.congestion_available:
        return _check("kernel", "CUBIC", False, default, "modprobe tcp_cubic, or use a kernel that has it")
    if not found.probes["cubic-sysctl"]:
        return _check("kernel", "CUBIC", True, f"{default}; a namespace may choose it", "")
    if not found.probes["cubic-bpf"]:
        return _check("kernel", "CUBIC", True, f"{default}; set on each socket by BPF", "")
    hint = "run as root on a kernel with CONFIG_CGROUP_BPF, or allow it: sysctl net.ipv4.tcp_allowed_congestion_control"
    return _check("kernel", "CUBIC", False, f"{default}; refused: {found.probes['cubic-bpf']}", hint)


def _parts(found: Findings) -> list[Check]:
    checks = []
    for part, version in found.parts:
        group: CheckGroup = "tools" if part.name in found.tools else "vpns"
        if isinstance(version, str):
            checks.append(Check(group, part.name, "ok", version))
            continue
        wish = part == PERF or any(found.probes[name] for name in part.kernel)
        state: CheckState = "missing" if part.essential else "absent" if wish else "warn"
        checks.append(Check(group, part.name, state, version.message, version.hint))
    value = "not built" if found.emulator else "usable"
    return [_advice("tools", emulator.PROGRAM, not found.emulator, value, found.emulator), *checks]


def _check(group: CheckGroup, name: str, works: bool, value: str, hint: str) -> Check:
    return Check(group, name, "ok" if works else "missing", value, "" if works else hint)


def _advice(group: CheckGroup, name: str, good: bool, value: str, hint: str) -> Check:
    return Check(group, name, "ok" if good else "warn", value, "" if good else hint)


def _wish(group: CheckGroup, name: str, there: bool, value: str, hint: str) -> Check:
    return Check(group, name, "ok" if there else "absent", value, "" if there else hint)
