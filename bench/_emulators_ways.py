"""Puts up a way from one node to another: over a bare veth, or through `tunnelmark-emulator`. Mahimahi and rattan stand beside.

The caller is in network, mount and PID namespaces of its own, so nothing here reaches the host's network, and everything
ends with the caller.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tunnelmark.lab.emulator import program

PATIENCE = 10.0  # seconds for an emulator to be up
BUFFERS = "4096 131072 67108864"  # the kernel's choice up to 64 MiB: 10 ms at 10 Gbit/s are 12.5 MB

Report = Callable[[], dict[str, Any]]


@dataclass(frozen=True)
class Way:
    """From node `a` to node `b`, each known by a process in its network namespace."""

    a: int
    b: int
    device_a: str
    device_b: str
    address_a: str
    address_b: str
    emulator: tuple[int, ...] = ()  # its processes
    report: Report = field(default=dict)  # what the emulator itself counted so far


@dataclass(frozen=True)
class Contender:
    """One emulator on one datapath."""

    name: str
    frames: str  # what the nodes hand over: "super-packets" or "frame by frame"
    up: Callable[[float], contextlib.AbstractContextManager[Way]]  # by the delay of each direction in ms
    delays_ms: tuple[float, ...]


def at(pid: int, argv: list[str]) -> list[str]:
    """The command, in the network namespace of the process."""
    return ["nsenter", "-t", str(pid), "-n", *argv]


def said(argv: list[str]) -> str:
    return subprocess.run(argv, check=True, capture_output=True, text=True).stdout


def links(pid: int) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(said(at(pid, ["ip", "-s", "-j", "addr", "show"])))
    return found


def until(what: str, holds: Callable[[], Any], process: subprocess.Popen[Any] | None = None) -> Any:
    deadline = time.monotonic() + PATIENCE
    while not (found := holds()):
        if process is not None and process.poll() is not None:
            raise RuntimeError(f"ended with {process.returncode} before {what}")
        if time.monotonic() > deadline:
            raise RuntimeError(f"{what}: not within {PATIENCE:g} s")
        time.sleep(0.01)
    return found


@contextlib.contextmanager
def running(argv: list[str], **options: Any) -> Iterator[subprocess.Popen[Any]]:
    """A program of ours while the block runs; it is asked to end, then made to."""
    with subprocess.Popen(argv, **options) as process:
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                process.kill()


@contextlib.contextmanager
def namespace() -> Iterator[int]:
    """A process that holds a network namespace of its own, its loopback up and its TCP windows wide."""
    with running(["unshare", "-n", "sleep", "infinity"]) as process:
        ours = os.stat("/proc/self/ns/net").st_ino
        until("a namespace", lambda: os.stat(f"/proc/{process.pid}/ns/net").st_ino != ours, process)
        widen(process.pid)
        yield process.pid


def widen(pid: int) -> None:
    settings = "".join(f"echo {BUFFERS} >/proc/sys/net/ipv4/{name};" for name in ("tcp_rmem", "tcp_wmem"))
    said(at(pid, ["sh", "-c", f"ip link set lo up; {settings}"]))


def descendants(pid: int) -> dict[int, str]:
    """Processes that come from this one, itself included, with their names."""
    names, parents = {}, {}
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            name, _, rest = (folder / "stat").read_text().partition(" (")[2].rpartition(") ")
            names[int(folder.name)], parents[int(folder.name)] = name, int(rest.split()[1])
    found = {pid}
    while more := {child for child, parent in parents.items() if parent in found} - found:
        found |= more
    return {each: names[each] for each in found if each in names}


def _addressed(a: int, b: int) -> None:
    for pid, address in ((a, "10.9.0.1/24"), (b, "10.9.0.2/24")):
        said(at(pid, ["ip", "addr", "add", address, "dev", "eth0"]))
        said(at(pid, ["ip", "link", "set", "eth0", "up"]))


def _no_segmentation(pid: int, *more: str) -> None:
    said(at(pid, ["ethtool", "-K", "eth0", "tso", "off", "tx-udp-segmentation", "off", *more]))


@contextlib.contextmanager
def veth(delay_ms: float) -> Iterator[Way]:
    """Two nodes joined by nothing but a veth pair, without segmentation offload: what the ends alone cost."""
    assert delay_ms == 0
    with namespace() as a, namespace() as b:
        said(at(a, ["ip", "link", "add", "eth0", "type", "veth", "peer", "name", "eth0", "netns", str(b)]))
        for pid in (a, b):
            _no_segmentation(pid)
        _addressed(a, b)
        yield Way(a, b, "eth0", "eth0", "10.9.0.1", "10.9.0.2")


def emulator(datapath: str) -> Callable[[float], contextlib.AbstractContextManager[Way]]:
    """tunnelmark-emulator on one of its datapaths: `tap` takes super-packets, `port` and `xdp` are frame by frame."""

    @contextlib.contextmanager
    def up(delay_ms: float) -> Iterator[Way]:
        with contextlib.ExitStack() as stack:
            a, b, middle = (stack.enter_context(namespace()) for _ in range(3))
            ports = []
            for node, pid in (("a", a), ("b", b)):
                if datapath == "tap":
                    ports += ["--tap", f"{node}.0={pid}:eth0"]
                    continue
                ends = ["ip", "link", "add", f"{node}.0", "type", "veth", "peer", "name", "eth0", "netns", str(pid)]
                said(at(middle, ends))
                said(at(middle, ["ip", "link", "set", f"{node}.0", "up"]))
                # What AF_XDP hands over has no place for a checksum that is still to be made.
                _no_segmentation(pid, *(["tx", "off"] if datapath == "xdp" else []))
                said(at(pid, ["ip", "link", "set", "eth0", "up"]))
                ports += [f"--{datapath}", f"{node}.0"]
            stages = {"delay_us": 1000 * delay_ms} if delay_ms else {}
            directions = [{"name": f"from {node}", "from": f"{node}.0", "stages": stages} for node in ("a", "b")]
            argv = at(middle, [str(program()), "--config", "-", *ports])
            # A file and no pipe: nobody may have to read so that the emulator can go on.
            output = stack.enter_context(tempfile.TemporaryFile())
            process = stack.enter_context(running(argv, stdin=subprocess.PIPE, stdout=output, text=True))
            commands = process.stdin
            assert commands is not None

            def lines() -> list[dict[str, Any]]:
                text = os.pread(output.fileno(), os.fstat(output.fileno()).st_size, 0)
                return [json.loads(line) for line in text[: text.rfind(b"\n") + 1].splitlines()]

            def report() -> dict[str, Any]:
                before = len(lines())
                print("report", file=commands, flush=True)
                until("a report", lambda: len(lines()) > before, process)
                return dict(lines()[-1]["report"])

            print(json.dumps({"directions": directions}), file=commands, flush=True)
            until("tunnelmark-emulator is ready", lines, process)

            _addressed(a, b)
            yield Way(a, b, "eth0", "eth0", "10.9.0.1", "10.9.0.2", (process.pid,), report)

    return up
