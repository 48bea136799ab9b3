"""The first process of a command's PID namespace: makes labs and ends them; when it dies, all in them ends.

Started as `python -m tunnelmark.lab.server.server FD GROUP [AWAKE]`. FD is its end of a channel as an open file, GROUP
the name of its control group. AWAKE is an open file into which the loops that keep cores awake write the time that they
use (`host.keep_awake`). The server leaves the host's network, mount and PID namespaces before it makes anything, so
that it could not touch the host's network if it tried; it dies with the command.

Requests:

    up      lab, nodes [{name, sysctls, cores, receive, realtime, monotonic, router}], middle; files: one channel end
            for each node
                cores      the cores on which the node's programs run
                receive    the cores that handle packets that arrive at the node; []: the sender's core handles them
                realtime   whether the node's programs may have real-time priority
                monotonic  nanoseconds that the node's CLOCK_MONOTONIC shows more than the host's
                router     whether the node is a router
                middle     the name of the middle node, through which all links run
                                               -> refused (by node: "setting: reason"), timings (`nodes`: seconds)
    join    lab, links: their interfaces are made for those of the lab's nodes that are here; interfaces that lead to
            other hosts exist already (see `veth.build`)
                                               -> timings (`links`: seconds)
    down    lab                                -> timings (`end`: seconds until its last node had ended)
    check                                      -> nothing
    count   lab                                -> ports: counters by port of the middle node
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import sys
import time
from dataclasses import dataclass, field
from typing import Any

from tunnelmark.host import keep_awake
from tunnelmark.lab import channel
from tunnelmark.lab.link_spec import LinkSpec
from tunnelmark.lab.server import agent, isolate, port_counters, shared_files, veth
from tunnelmark.linux import cgroups, congestion, syscalls

HIGHEST_AUTOGROUP = -15  # nice value of the session where no CPU controller is at hand; see sched(7)


@dataclass(slots=True)
class _Lab:
    agents: dict[str, int]  # node -> PID of its agent, as we see it
    middle: str
    nodes: list[dict[str, Any]]  # as they were asked for
    alive: set[int]
    links: list[LinkSpec] = field(default_factory=list)
    ending: int | None = None  # id of the request that waits for the end
    asked: float = 0.0


class LabServer:
    """Serves one command until its channel closes."""

    def __init__(self, sock: socket.socket, group: cgroups.ControlGroup) -> None:
        self._sock = sock
        self._group = group
        self._seen = shared_files.below(shared_files.needed(), isolate.private())
        self._labs: dict[str, _Lab] = {}

    def serve(self) -> None:
        """Answer requests and reap ended nodes until the command is gone."""
        wake, woken = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(woken)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        while True:
            readable, _, _ = select.select((self._sock.fileno(), wake), (), ())
            if wake in readable:
                os.read(wake, 512)
                self._reap()
            if self._sock.fileno() in readable:
                received = channel.receive(self._sock)
                if received is None:
                    return
                request, fds, _ = received
                self._answer(request, fds)

    def _answer(self, request: dict[str, Any], fds: list[int]) -> None:
        try:
            match request["op"]:
                case "up":
                    answer = self._up(request, fds)
                case "join":
                    answer = self._join(request)
                case "down":
                    self._down(request)
                    return
                case "check":
                    answer = {}
                case "count":
                    lab = self._labs[request["lab"]]
                    answer = {"ports": port_counters.counters(lab.agents[lab.middle], lab.agents, lab.links)}
                case unknown:
                    raise ValueError(f"unknown request {unknown!r}")
        except Exception as error:  # whatever pyroute2 or the kernel says is the command's to tell
            answer = {"error": f"{type(error).__name__}: {error}", "errno": getattr(error, "errno", 0)}
        finally:
            for fd in fds:
                os.close(fd)
        channel.send(self._sock, {"id": request["id"], **answer})

    def _up(self, request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        begun = time.monotonic()
        nodes = request["nodes"]
        lab = _Lab({}, request["middle"], nodes, set())
        self._labs[request["lab"]] = lab
        births = []
        for node, fd in zip(nodes, fds, strict=True):
            self._group.leaf(self._leaf(request["lab"], node["name"]), realtime=node.get("realtime", False))
            births.append(self._bear(request["lab"], node, fd))
        refused: dict[str, Any] = {}
        for node, birth in zip(nodes, births, strict=True):
            with os.fdopen(birth) as pipe:
                said = [line.partition(" ") for line in pipe.read().splitlines()]
            if failures := [text for word, _, text in said if word == "failed"]:
                raise OSError(f"node {node['name']}: {failures[0]}")
            pid = next(int(text) for word, _, text in said if word == "pid")
            lab.agents[node["name"]] = pid
            lab.alive.add(pid)
            refused[node["name"]] = [text for word, _, text in said if word == "refused"]
        return {"refused": refused, "timings": {"nodes": time.monotonic() - begun}}

    def _join(self, request: dict[str, Any]) -> dict[str, Any]:
        begun, lab = time.monotonic(), self._labs[request["lab"]]
        ends = {
            n["name"]: veth.LinkEnd(n["name"], lab.agents[n["name"]], tuple(n["receive"]), n.get("router", False))
            for n in lab.nodes
        }
        middle = ends.pop(lab.middle, None)
        lab.links = [LinkSpec.read(spec) for spec in request["links"]]
        veth.build(middle, list(ends.values()), lab.links)
        return {"timings": {"links": time.monotonic() - begun}}

    def _bear(self, lab: str, node: dict[str, Any], fd: int) -> int:
        """Fork the agent of a node, and return a pipe with its report.

        The report has the lines `pid N`, `refused SYSCTL: why` and `failed why`. It ends when the node is ready or
        dead.
        """
        pipe, report = os.pipe2(os.O_CLOEXEC)
        if os.fork() == 0:
            try:
                self._group.join(self._leaf(lab, node["name"]))
                if node["cores"]:
                    os.sched_setaffinity(0, node["cores"])
                isolate.leave_host(node.get("monotonic", 0))
                pid = os.fork()
                if pid:
                    os.write(report, f"pid {pid}\n".encode())
                    os._exit(0)
                for key, why in isolate.become_host(node["name"], node["sysctls"], self._seen).items():
                    os.write(report, f"refused {key}: {why}\n".encode())
                sock = socket.socket(fileno=os.dup(fd))
                os.closerange(3, sock.fileno())
                os.closerange(sock.fileno() + 1, 65536)
                agent.serve(sock)
            except BaseException as error:
                os.write(report, f"failed {type(error).__name__}: {error}\n".encode())
            finally:
                os._exit(1)
        os.close(report)
        return pipe

    def _down(self, request: dict[str, Any]) -> None:
        lab = self._labs[request["lab"]]
        lab.ending, lab.asked = request["id"], time.monotonic()
        for pid in lab.alive:
            os.kill(pid, signal.SIGKILL)
        self._finish(request["lab"])

    def _reap(self) -> None:
        while True:
            try:
                pid, _ = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            for name, lab in tuple(self._labs.items()):
                lab.alive.discard(pid)
                self._finish(name)

    def _finish(self, name: str) -> None:
        lab = self._labs[name]
        if lab.ending is None or lab.alive:
            return
        for node in lab.agents:
            self._group.remove_leaf(self._leaf(name, node))
        del self._labs[name]
        channel.send(self._sock, {"id": lab.ending, "timings": {"end": time.monotonic() - lab.asked}})

    @staticmethod
    def _leaf(lab: str, node: str) -> str:
        return f"{lab}.{node}"


def main(fd: int, name: str, counts: int | None = None) -> None:
    """Become the lab server, until the command ends: leave the host, make the control group, answer requests.

    `fd`, `name` and `counts` are FD, GROUP and AWAKE of the command line (see the module).
    """
    syscalls.die_with_parent(signal.SIGKILL)
    os.setsid()
    syscalls.unshare(syscalls.NEWPID | syscalls.NEWNS | syscalls.NEWNET)
    child = os.fork()
    if child:
        os.close(fd)
        os.waitpid(child, 0)
        return
    syscalls.die_with_parent(signal.SIGKILL)
    sock = socket.socket(fileno=fd)
    try:
        group, record = _prepare(name)
        record |= _keep_awake(name, counts)
    except OSError as error:
        channel.send(sock, {"error": str(error), "errno": error.errno})
        return
    channel.send(sock, {"ready": record})
    LabServer(sock, group).serve()


def _prepare(name: str) -> tuple[cgroups.ControlGroup, dict[str, Any]]:
    syscalls.own_mounts()
    syscalls.mount("proc", "/proc", "proc", syscalls.MS_NOSUID | syscalls.MS_NODEV | syscalls.MS_NOEXEC)
    hierarchies = cgroups.find()
    group = cgroups.ControlGroup(hierarchies, name)
    group.create()
    group.leaf("server")
    group.join("server")
    if hierarchies.cpu is None:
        with open("/proc/self/autogroup", "w") as autogroup:
            autogroup.write(str(HIGHEST_AUTOGROUP))
    if _may_choose(congestion.CUBIC):
        way = "sysctl"
    elif group.top is not None:
        congestion.attach(congestion.CUBIC, group.top)
        way = "bpf"
    else:
        raise OSError(1, "this kernel does not let a network namespace choose CUBIC, and there is no cgroup v2 for BPF")
    return group, {
        "priority": hierarchies.priority,
        "congestion_control": congestion.CUBIC,
        "congestion_control_by": way,
        "folders": [str(folder) for folder in group.folders],
    }


def _keep_awake(name: str, counts: int | None) -> dict[str, Any]:
    if counts is None:
        return {}
    try:
        cores = os.sched_getaffinity(0)
        keep_awake.begin(keep_awake.LoopGroups(cgroups.find(), name, cores), cores, counts)
    except OSError as error:  # a lab works without it, and says so
        return {"awake": False, "awake_not": str(error)}
    finally:
        os.close(counts)
    return {"awake": True}


def _may_choose(algorithm: str) -> bool:
    """Return whether a network namespace (such as ours) may choose this congestion control by sysctl."""
    try:
        with open("/proc/sys/net/ipv4/tcp_congestion_control", "w") as file:
            file.write(algorithm)
    except OSError:
        return False
    return True


if __name__ == "__main__":
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # the command has gone: so do we
        main(int(sys.argv[1]), sys.argv[2], *map(int, sys.argv[3:]))
