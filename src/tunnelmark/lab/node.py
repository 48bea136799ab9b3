"""Controls a node and its processes from the command: starts programs, writes files, waits for conditions.

It is the client of `agent`. It knows nothing of namespaces, so that another backend only needs another channel
to an agent.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from tunnelmark.errors import LabError, NodeGone
from tunnelmark.host.programs import search_path
from tunnelmark.lab import rpc

ENVIRONMENT = {"PATH": search_path(), "HOME": "/run/home", "LANG": "C.UTF-8"}
"""The environment of every program on a node. Only PATH comes from the caller's environment."""

CLOCK = "TUNNELMARK_CLOCK"
"""Environment variable for programs of nodes on other hosts: it names the one CLOCK_MONOTONIC that all nodes share."""

_GONE = "a node ends with its lab, when its first process is killed, or when memory runs out (see dmesg)"
_REFUSED = "the node's kernel or its files refused; the words before say which"


@dataclass(frozen=True, slots=True)
class Exit:
    """How a process ended: exit code (negative: the signal), when (seconds of CLOCK_MONOTONIC), and what it used.

    `user` and `system` are CPU seconds; `maxrss` is the peak memory in KiB.
    """

    code: int
    time: float
    user: float
    system: float
    maxrss: int


@dataclass(frozen=True, slots=True)
class Completed:
    """The exit code of a command that has ended, and its output."""

    code: int
    stdout: str
    stderr: str


class Process:
    """A program running on a node."""

    def __init__(self, node: Node, pid: int, ended: asyncio.Future[Exit]) -> None:
        self.pid = pid
        self._node = node
        self._ended = ended

    @property
    def exit(self) -> Exit | None:
        """How the program ended; None while it runs, or if its node ended first."""
        return self._ended.result() if self._ended.done() and not self._ended.exception() else None

    async def wait(self) -> Exit:
        """Wait for the program's end and return how it ended. NodeGone if the node ends first."""
        return await asyncio.shield(self._ended)

    async def signal(self, number: int) -> None:
        """Send a signal to the program's process group; does nothing if the program has ended."""
        await self._node.request("signal", pid=self.pid, number=number)

    async def stop(self, patience: float = 2.0) -> Exit:
        """Send SIGTERM, and SIGKILL if the program runs on for `patience` seconds; return how it ended."""
        await self.signal(signal.SIGTERM)
        try:
            return await asyncio.wait_for(self.wait(), patience)
        except TimeoutError:
            await self.signal(signal.SIGKILL)
            return await self.wait()


class Node:
    """A host of the lab. All methods that ask its agent raise NodeGone if the node has ended."""

    def __init__(self, name: str, sock: socket.socket, *, elsewhere: str | None = None) -> None:
        """`sock` leads to the node's agent; `elsewhere` names the host of the node, None if that is this machine."""
        self.name = name
        self._elsewhere = elsewhere
        self._environment = ENVIRONMENT if elsewhere is None else ENVIRONMENT | {CLOCK: "the lab's"}
        self._pid = 0
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        self._loop = asyncio.get_running_loop()
        self._exits: dict[int, asyncio.Future[Exit]] = {}
        self._hello: asyncio.Future[None] = self._loop.create_future()
        self._agent = rpc.Client(
            sock,
            refused=lambda reason: LabError(f"node {name}: {reason}", hint=_REFUSED),
            gone=lambda reason: NodeGone(f"node {name} is gone: {reason}", hint=_GONE),
            on_notice=self._noticed,
            on_answer=self._answered,
            on_end=lambda: self._fail(NodeGone(f"node {name} ended by itself", hint=_GONE)),
        )

    @property
    def pid(self) -> int:
        """The process ID, on this machine, of the node's first process; 0 until `hello` returns.

        LabError if the node is on another host.
        """
        if self._elsewhere is not None:
            raise LabError(
                f"the process IDs of {self.name} are not known here: it runs on host {self._elsewhere}",
                hint="see docs/hosts.md (limits)",
            )
        return self._pid

    async def hello(self) -> None:
        """Wait until the node's agent runs."""
        await self._hello

    async def request(self, op: str, fds: Sequence[int] = (), **fields: Any) -> dict[str, Any]:
        """Send the agent a request (see `agent`), and return the answer; LabError if it refuses."""
        return await self._agent.request(op, fds, **fields)

    async def spawn(
        self,
        argv: Sequence[str],
        *,
        stdout: Path | IO[bytes] | None = None,
        stderr: Path | IO[bytes] | None = None,
        stdin: str | IO[bytes] = "",
        env: Mapping[str, str] | None = None,
    ) -> Process:
        """Start a program, and return it. LabError if the program cannot be started.

        `stdout`, `stderr`: a file on the command's machine to which the output is appended, or an open file. If
        `stdout` is None, standard output is discarded; if `stderr` is None, standard error goes where standard output
        goes. `stdin`: a text, or an open file such as the end of a pipe. The caller closes the open files that it
        passes. `env`: variables in addition to PATH, HOME and LANG (`ENVIRONMENT`).
        """
        with _opened(stdout) as out, _filled(stdin) as into, _opened(stderr if stderr is not None else out) as err:
            answer = await self.request(
                "spawn",
                [into.fileno(), out.fileno(), err.fileno()],
                argv=[str(word) for word in argv],
                env=self._environment | dict(env or {}),
            )
        return Process(self, answer["pid"], self._exits[answer["pid"]])

    async def run(
        self,
        argv: Sequence[str],
        *,
        timeout: float = 10.0,
        stdin: str = "",
        env: Mapping[str, str] | None = None,
    ) -> Completed:
        """Run a command to its end; after `timeout` seconds, kill it and raise LabError. Any exit code is accepted."""
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            process = await self.spawn(argv, stdout=out, stderr=err, stdin=stdin, env=env)
            try:
                ended = await asyncio.wait_for(process.wait(), timeout)
            except TimeoutError:
                await process.signal(signal.SIGKILL)
                raise LabError(
                    f"{argv[0]} on node {self.name} did not end within {timeout:g} s",
                    hint=f"it ran as: {' '.join(argv)}",
                ) from None
            return Completed(ended.code, _content(out), _content(err))

    async def write(self, path: str, content: str, mode: int = 0o600) -> None:
        """Write a text file on the node with that mode, and make its parent folders; an older file is replaced."""
        await self.request("write", path=str(path), content=content, mode=mode)

    async def read(self, path: str) -> str:
        """Read a text file of the node."""
        content: str = (await self.request("read", path=str(path)))["content"]
        return content

    async def forget(self, keep: Sequence[str]) -> None:
        """Remove all files that the node's programs wrote, except those directly in /run whose names are in `keep`.

        See `isolate.forget`.
        """
        await self.request("forget", keep=list(keep))

    async def until(self, condition: Mapping[str, Any], timeout: float) -> float:
        """Wait until a condition holds (see `conditions`); return the seconds waited. LabError after `timeout`
        seconds.
        """
        waited: float = (await self.request("await", condition=dict(condition), timeout=timeout))["waited"]
        return waited

    def close(self) -> None:
        """Close the channel: then the agent exits, and the node ends with it."""
        if self._agent.is_open:
            self._agent.close()
            self._fail(NodeGone(f"node {self.name} was ended", hint=_GONE))

    def _noticed(self, message: rpc.Message, pid: int | None) -> None:
        if "hello" in message:
            self._pid = pid or 0
            self._hello.set_result(None)
            return
        ended = self._exits.get(message.pop("exit"))  # None: not ours, a daemon's orphan
        if ended is not None and not ended.done():
            ended.set_result(Exit(**message))

    def _answered(self, message: rpc.Message) -> None:
        if "pid" in message:  # before anything else can run, or its end might come first
            self._exits[message["pid"]] = self._loop.create_future()

    def _fail(self, error: NodeGone) -> None:
        self._agent.fail(error, [self._hello, *self._exits.values()])
        self._exits.clear()


def _opened(file: Path | IO[bytes] | None) -> IO[bytes]:
    if file is None:
        return open(os.devnull, "ab")
    if isinstance(file, Path):
        return file.open("ab")
    return os.fdopen(os.dup(file.fileno()), "ab")


def _filled(stdin: str | IO[bytes]) -> IO[bytes]:
    if not isinstance(stdin, str):
        return os.fdopen(os.dup(stdin.fileno()), "rb", buffering=0)
    file = os.memfd_create("stdin")
    data = stdin.encode()
    while data:
        data = data[os.write(file, data) :]
    os.lseek(file, 0, os.SEEK_SET)
    return os.fdopen(file, "rb")


def _content(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode(errors="replace")
