"""The first process of a node: starts and reaps the node's programs, holds files, watches conditions.

It does what it is asked over its channel, and reports each end of a program with the CPU time that the program took.
When the channel closes it exits, and the kernel ends the node with it.

Requests (the answer has the same `id`):

    spawn   argv, env; files: stdin, stdout, stderr     -> pid
    signal  pid, number                                 -> nothing
    write   path, content, mode                         -> nothing (makes parent folders)
    read    path                                        -> content
    forget  keep                                        -> nothing (see `isolate.forget`)
    await   condition, timeout                          -> waited (seconds), or an error at the timeout

Events: {"exit": pid, "code": n, "time": monotonic seconds, "user": s, "system": s, "maxrss": KiB}
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import subprocess
import time
from typing import Any

from tunnelmark.lab import channel
from tunnelmark.lab.server import isolate
from tunnelmark.lab.server.conditions import holds

_POLL, _SELDOM = 0.002, 0.05  # seconds between two looks at a condition, at least and at most: far below any handshake
_REST = (
    3  # times as long as a look took is rested after it: waiting for a daemon must not take the core that it starts on
)


def serve(sock: socket.socket) -> None:
    """Answer requests until the channel closes, which ends the node."""
    wake, woken = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(woken)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    waiting: list[dict[str, Any]] = []
    channel.send(sock, {"hello": os.uname().nodename})
    took = 0.0
    while True:
        rest = min(max(_POLL, _REST * took), _SELDOM) if waiting else None
        readable, _, _ = select.select((sock.fileno(), wake), (), (), rest)
        if wake in readable:
            os.read(wake, 512)
            _reap(sock)
        if sock.fileno() in readable:
            received = channel.receive(sock)
            if received is None:
                return
            request, fds, _ = received
            _answer(sock, request, fds, waiting)
        begun = time.monotonic()
        _look(sock, waiting)
        took = time.monotonic() - begun


def _answer(sock: socket.socket, request: dict[str, Any], fds: list[int], waiting: list[dict[str, Any]]) -> None:
    if request["op"] == "await":
        waiting.append(request | {"since": time.monotonic()})
        return
    try:
        answer = _HANDLERS[request["op"]](request, fds)
    except OSError as error:
        answer = {"error": str(error), "errno": error.errno}
    finally:
        for fd in fds:
            os.close(fd)
    channel.send(sock, {"id": request["id"], **answer})


def _spawn(request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
    process = subprocess.Popen(
        request["argv"],
        env=request["env"],
        cwd="/",
        stdin=fds[0],
        stdout=fds[1],
        stderr=fds[2],
        process_group=0,
        restore_signals=True,
    )
    process.returncode = 0  # we reap it ourselves; keeps Popen from looking for it
    return {"pid": process.pid}


def _signal(request: dict[str, Any], _: list[int]) -> dict[str, Any]:
    with contextlib.suppress(ProcessLookupError):  # it ended meanwhile; its exit is reported anyway
        os.killpg(request["pid"], request["number"])
    return {}


def _write(request: dict[str, Any], _: list[int]) -> dict[str, Any]:
    path = request["path"]
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, request["mode"])
    with os.fdopen(fd, "w") as file:
        os.fchmod(fd, request["mode"])  # the mode above is cut by the umask
        file.write(request["content"])
    return {}


def _read(request: dict[str, Any], _: list[int]) -> dict[str, Any]:
    with open(request["path"]) as file:
        return {"content": file.read()}


def _forget(request: dict[str, Any], _: list[int]) -> dict[str, Any]:
    isolate.forget(request["keep"])
    return {}


_HANDLERS = {"spawn": _spawn, "signal": _signal, "write": _write, "read": _read, "forget": _forget}


def _look(sock: socket.socket, waiting: list[dict[str, Any]]) -> None:
    for request in tuple(waiting):
        waited = time.monotonic() - request["since"]
        if holds(request["condition"]):
            channel.send(sock, {"id": request["id"], "waited": waited})
        elif waited > request["timeout"]:
            channel.send(sock, {"id": request["id"], "error": "timed out", "errno": 0})
        else:
            continue
        waiting.remove(request)


def _reap(sock: socket.socket) -> None:
    while True:
        try:
            pid, status, usage = os.wait4(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        channel.send(
            sock,
            {
                "exit": pid,
                "code": os.waitstatus_to_exitcode(status),
                "time": time.monotonic(),
                "user": usage.ru_utime,
                "system": usage.ru_stime,
                "maxrss": usage.ru_maxrss,
            },
        )
