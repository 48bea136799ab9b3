"""Tests what a lab needs from the kernel, in a process of its own that leaves every namespace first.

Started as `python -m tunnelmark.host.kernel_features`; with `AS_USER` it runs as a user who is not root, in a user
namespace. It prints a JSON object with the outcome of each probe: "" if it works, else why it does not. The host's
network is never touched: the process leaves it before the first probe, and what the probes make ends with the process.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import functools
import json
import os
import platform
import struct
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from tunnelmark.errors import LabError, MissingPart
from tunnelmark.linux import cgroups, congestion, syscalls

_TUNSETIFF = 0x400454CA  # <linux/if_tun.h>
_IFF_TUN_NO_PI, _IFF_VNET_HDR = 0x1001, 0x4000
_TUNSETOFFLOAD = 0x400454D0
_NEWUSER = 0x10000000  # <linux/sched.h>
_CSUM, _TSO4, _TSO6, _USO4, _USO6 = 1, 2, 4, 0x20, 0x40  # TUN_F_*
_SYS_PERF_EVENT_OPEN = {"x86_64": 298, "aarch64": 241, "riscv64": 241}
_HARDWARE, _CYCLES, _SOFTWARE, _CPU_CLOCK = 0, 0, 1, 0  # <linux/perf_event.h>
_TIMEOUT = 20  # seconds; the probes take about 0.3

QDISCS = ("tbf", "htb", "netem")
NAMES = (
    *("namespaces", "user", "tun", "tun-tso", "tun-uso", "veth", "mirred", *QDISCS, "wireguard", "vxlan", "geneve"),
    *("perf", "perf-cycles", "real-time", "cubic-sysctl", "cubic-bpf", "cgroup"),
)
"""The names of all probes, in the order in which they are reported."""

AS_USER = "--as-user"
_NOBODY = 65534


def run(*, as_user: bool = False) -> dict[str, str]:
    """Run all probes in a child process; return, by probe, why it does not work, "" if it works.

    With `as_user` they run as a user who has no rights on this machine (the current one; uid 65534 if that is root),
    but is root in a user namespace of the child. Raises LabError if the child itself fails or takes more than 20 s.
    """
    root = str(Path(__file__).parents[2])
    try:
        done = subprocess.run(
            [sys.executable, "-m", "tunnelmark.host.kernel_features", *([AS_USER] if as_user else [])],
            env={**os.environ, "PYTHONPATH": root},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_TIMEOUT,
            check=True,
        )
        outcome: dict[str, str] = json.loads(done.stdout)
    except (subprocess.SubprocessError, ValueError) as error:
        said = getattr(error, "stderr", None) or b""
        last = (said.decode(errors="replace").strip().splitlines() or [str(error)])[-1]
        raise LabError(
            f"the probes broke: {last}", hint="run `python -m tunnelmark.host.kernel_features` to see why"
        ) from error
    return outcome


@functools.cache
def found() -> Mapping[str, str]:
    """Return the outcome of all probes (see `run`), which are run only once in a process."""
    return run()


def require(names: Iterable[str]) -> None:
    """Raise MissingPart if one of these features does not work with this kernel."""
    for name in names:
        if why := found()[name]:
            raise MissingPart(
                f"this kernel has no {name} ({why})",
                hint=f"modprobe {name}; or use a virtual machine whose kernel has it: --backend vm",
            )


def main() -> None:
    """Run the probes in a child process, the first of a PID namespace, and print the outcome as JSON."""
    hierarchies = cgroups.find()
    group = f"tunnelmark-{os.getpid()}-probe"  # so named, `linux.cgroups.sweep` removes it should we be killed
    outcome = dict.fromkeys(NAMES, "not tried: no namespaces")
    reading, writing = os.pipe()
    try:
        if AS_USER in sys.argv[1:]:
            _become_user()
        syscalls.unshare(syscalls.NEWNET | syscalls.NEWNS | syscalls.NEWUTS | syscalls.NEWIPC | syscalls.NEWPID)
    except OSError as error:
        outcome["namespaces"] = str(error)
    else:
        child = os.fork()
        if child == 0:
            os.close(reading)
            with os.fdopen(writing, "w") as pipe:
                json.dump(_all(hierarchies, group), pipe)
            os._exit(0)
        os.close(writing)
        with os.fdopen(reading) as pipe:
            outcome.update(json.load(pipe))
        os.waitpid(child, 0)
    sys.stdout.write(json.dumps(outcome))


def _become_user() -> None:
    """Give up all rights on this machine, and become root of a new user namespace; OSError if that is refused."""
    import pyroute2  # noqa: F401  # its files may be closed to that user

    if os.geteuid() == 0:
        os.setgroups([])
        os.setresgid(_NOBODY, _NOBODY, _NOBODY)
        os.setresuid(_NOBODY, _NOBODY, _NOBODY)
        syscalls.own_files_again()
    user, group = os.geteuid(), os.getegid()
    syscalls.unshare(_NEWUSER)
    Path("/proc/self/setgroups").write_text("deny")  # user_namespaces(7): before gid_map
    Path("/proc/self/uid_map").write_text(f"0 {user} 1")
    Path("/proc/self/gid_map").write_text(f"0 {group} 1")


def _all(hierarchies: cgroups.Hierarchies, group: str) -> dict[str, str]:
    outcome = {"namespaces": _try(_private_mounts), "user": _try(_user_namespace), "tun": _try(_tun)}
    outcome["tun-tso"] = _try(lambda: _tun(_CSUM | _TSO4 | _TSO6))
    outcome["tun-uso"] = _try(lambda: _tun(_CSUM | _TSO4 | _TSO6 | _USO4 | _USO6))
    outcome["perf"] = _try(lambda: _counter(_SOFTWARE, _CPU_CLOCK))
    outcome["perf-cycles"] = _try(lambda: _counter(_HARDWARE, _CYCLES))
    outcome["real-time"] = _try(_real_time)
    outcome["veth"] = _try(lambda: _link("veth", peer={"ifname": "probe-b"}))
    outcome["mirred"] = _try(_mirred)
    for kind in QDISCS:
        outcome[kind] = _try(functools.partial(_qdisc, kind))
    outcome["wireguard"] = _try(lambda: _link("wireguard"))
    outcome["vxlan"] = _try(lambda: _link("vxlan", vxlan_id=1))
    outcome["geneve"] = _try(lambda: _link("geneve", geneve_collect_metadata=True))
    outcome["cubic-sysctl"] = _try(_cubic_by_sysctl)
    outcome["cgroup"] = outcome["cubic-bpf"] = "no writable cgroup v2 mount"
    if hierarchies.unified:
        outcome.update(_group(hierarchies.unified, group))
    return outcome


def _try(probe: Callable[[], object]) -> str:
    try:
        probe()
    except OSError as error:
        return error.strerror or str(error) or type(error).__name__
    except Exception as error:  # pyroute2's errors are not OSErrors and have the text in their arguments
        return str(error.args[-1]) if error.args else type(error).__name__
    return ""


def _private_mounts() -> None:
    syscalls.own_mounts()
    syscalls.mount("proc", "/proc", "proc")


def _tun(offloads: int = 0) -> None:
    """Make a TUN device; with `offloads` it also takes super-packets, which are to be cut into smaller ones."""
    flags = _IFF_TUN_NO_PI | (_IFF_VNET_HDR if offloads else 0)
    tun = os.open("/dev/net/tun", os.O_RDWR | os.O_CLOEXEC)
    try:
        fcntl.ioctl(tun, _TUNSETIFF, struct.pack("16sH22x", b"probe-tun", flags))
        if offloads:
            fcntl.ioctl(tun, _TUNSETOFFLOAD, offloads)
    finally:
        os.close(tun)


def _user_namespace() -> None:
    """Make a user namespace, in a child: a process that enters one cannot come back."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            syscalls.unshare(_NEWUSER)
            code = 0
        except OSError as error:
            code = error.errno or 1
        finally:
            os._exit(code)
    if code := os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]):
        raise OSError(code, os.strerror(code))


def _real_time() -> None:
    usual = os.sched_getscheduler(0), os.sched_getparam(0)
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    os.sched_setscheduler(0, *usual)


def _counter(kind: int, config: int) -> None:
    """Count an event of this process with perf_event_open(2)."""
    number = _SYS_PERF_EVENT_OPEN.get(platform.machine())
    if number is None:
        raise OSError(38, f"perf_event_open(2) has no known number on {platform.machine()}")
    size = 112
    attributes = ctypes.create_string_buffer(struct.pack("IIQ", kind, size, config), size)
    libc = ctypes.CDLL(None, use_errno=True)
    counter = libc.syscall(ctypes.c_long(number), attributes, 0, -1, -1, ctypes.c_ulong(0))
    if counter < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    os.close(counter)


def _link(kind: str, **more: object) -> None:
    from pyroute2 import IPRoute

    with IPRoute() as route:
        route.link("add", ifname=f"probe-{kind[:8]}", kind=kind, **more)


def _mirred() -> None:
    """Copy packets from port to port as `veth` does it: ingress, u32, mirred."""
    from pyroute2 import IPRoute

    with IPRoute() as route:
        port = route.link_lookup(ifname="probe-veth")[0]
        route.tc("add", "ingress", port, 0xFFFF0000)
        copy = {"kind": "mirred", "direction": "egress", "action": "mirror", "ifindex": port}
        all_packets = {"protocol": 0x3, "prio": 1, "target": 0x10000, "keys": ["0x0/0x0+0"]}
        route.tc("add-filter", "u32", port, parent=0xFFFF0000, action=[copy], **all_packets)


def _qdisc(kind: str) -> None:
    from pyroute2 import IPRoute

    arguments: dict[str, dict[str, int]] = {"tbf": {"rate": 125_000_000, "burst": 32_000, "limit": 500_000}}
    with IPRoute() as route:
        route.link("add", ifname=f"probe-{kind}", kind="veth", peer={"ifname": f"peer-{kind}"})
        index = route.link_lookup(ifname=f"probe-{kind}")[0]
        route.tc("add", kind, index, 0x10000, **arguments.get(kind, {}))


def _cubic_by_sysctl() -> None:
    Path("/proc/sys/net/ipv4/tcp_congestion_control").write_text(congestion.CUBIC)


def _group(unified: Path, name: str) -> dict[str, str]:
    """Try to make a group that accounts CPU, and to attach a BPF program that sets CUBIC; return both outcomes."""
    group = unified / name
    outcome = {"cgroup": _try(group.mkdir)}
    if outcome["cgroup"]:
        return outcome
    try:
        outcome["cgroup"] = _try(lambda: cgroups.cpu_seconds(group))
        outcome["cubic-bpf"] = _try(lambda: congestion.attach(congestion.CUBIC, group))
    finally:
        with contextlib.suppress(OSError):
            group.rmdir()
    return outcome


if __name__ == "__main__":
    main()
