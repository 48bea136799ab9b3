"""Tries what a lab needs from the kernel, in a process of its own that leaves every namespace first.

Started as `python -m tunnelmark.lab.probes`; prints a JSON object with the outcome of each probe: the
empty text when it works, otherwise why it does not. The host's network is never touched, for the
process has left it before the first probe, and what the probes make goes with the process.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import json
import os
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from tunnelmark.errors import LabError
from tunnelmark.lab import cgroups, congestion, syscalls

_TUNSETIFF = 0x400454CA  # <linux/if_tun.h>
_IFF_TUN_NO_PI = 0x1001
_TIMEOUT = 20  # seconds; the probes take about 0.3

QDISCS = ("tbf", "htb", "netem")
NAMES = ("namespaces", "tun", "veth", "mirred", *QDISCS, "wireguard", "cubic-sysctl", "cubic-bpf", "cgroup")
"""Every probe, in the order in which they are reported."""


def run() -> dict[str, str]:
    """Run all probes in a child process: name -> why it does not work, empty when it does.

    Raises LabError when the child itself breaks.
    """
    root = str(Path(__file__).parents[2])
    try:
        done = subprocess.run(
            [sys.executable, "-m", "tunnelmark.lab.probes"],
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
        raise LabError(f"the probes broke: {last}", hint="run `python -m tunnelmark.lab.probes` to see why") from error
    return outcome


def main() -> None:
    """The child: its own child is the first process of a PID namespace and runs the probes."""
    hierarchies = cgroups.find()
    group = f"tunnelmark-{os.getpid()}-probe"  # so named, `lab.sweep` removes it should we be killed
    outcome = dict.fromkeys(NAMES, "not tried: no namespaces")
    reading, writing = os.pipe()
    try:
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


def _all(hierarchies: cgroups.Hierarchies, group: str) -> dict[str, str]:
    outcome = {"namespaces": _try(_private_mounts), "tun": _try(_tun)}
    outcome["veth"] = _try(lambda: _link("veth", peer={"ifname": "probe-b"}))
    outcome["mirred"] = _try(_mirred)
    for kind in QDISCS:
        outcome[kind] = _try(functools.partial(_qdisc, kind))
    outcome["wireguard"] = _try(lambda: _link("wireguard"))
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
    except Exception as error:  # pyroute2's errors are no OSErrors and have the text in their arguments
        return str(error.args[-1]) if error.args else type(error).__name__
    return ""


def _private_mounts() -> None:
    syscalls.mount("", "/", "", syscalls.MS_REC | syscalls.MS_PRIVATE)
    syscalls.mount("proc", "/proc", "proc")


def _tun() -> None:
    tun = os.open("/dev/net/tun", os.O_RDWR | os.O_CLOEXEC)
    try:
        fcntl.ioctl(tun, _TUNSETIFF, struct.pack("16sH22x", b"probe-tun", _IFF_TUN_NO_PI))
    finally:
        os.close(tun)


def _link(kind: str, **more: object) -> None:
    from pyroute2 import IPRoute

    with IPRoute() as route:
        route.link("add", ifname=f"probe-{kind[:8]}", kind=kind, **more)


def _mirred() -> None:
    """Copying from port to port as `underlay` does it: ingress, u32, mirred."""
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
    """A group that can be made and accounts CPU, and a BPF program on it that sets CUBIC."""
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
