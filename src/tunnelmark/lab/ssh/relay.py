"""Runs on a host of an inventory: an ordinary lab server, which a command elsewhere uses over standard input and
output.

The command starts it by ssh(1). It ends when its input ends, or when nothing has come for SILENCE seconds; the lab
server, its nodes and everything on them end with it, as they end with any command. Frames (see `frames`), from the
command:

    {op, id, ...}            a request to the relay, see `Relay._asked`
    {node, message, files}   a message to a node's agent; `files` are its files in order: {file, way}, where `way` is
                             `in` for a file that the agent reads, `out` for one that it writes, `none` for /dev/null
    {node, end}              the command has closed the node's channel

and back:

    {id, ...}                an answer
    {node, message, after}   a message of an agent; data that has come for the files `after` is to be written first
    {node, end}              the agent has ended

and in both directions the data of such files, see `file_streams`.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import platform
import signal
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import astuple, dataclass, field
from pathlib import Path
from typing import Any

import tunnelmark
from tunnelmark.errors import LabError, TunnelmarkError, plain
from tunnelmark.host.pauses import PausesSeen
from tunnelmark.lab import channel
from tunnelmark.lab.client import LabClient
from tunnelmark.lab.labs import in_time
from tunnelmark.lab.link_spec import LinkSpec
from tunnelmark.lab.ssh import frames, interfaces, places
from tunnelmark.lab.ssh.file_streams import FileStreams
from tunnelmark.lab.ssh.host_lab import Collect, HostLab
from tunnelmark.lab.ssh.segments import Segment

SILENCE = 30.0
"""Seconds without a frame from the command after which the relay ends; the command asks for the clock more often."""

Facts = Callable[[Mapping[str, Any]], Mapping[str, Any]]
"""Returns the environment in which this host would measure a study; it blocks while it looks."""


@dataclass(slots=True)
class _Node:
    """A node's agent: our end of its channel, its process ID (`hello`), and the files that its programs write to."""

    sock: socket.socket
    hello: asyncio.Future[int]
    asked: dict[int, list[int]] = field(default_factory=dict)  # by request: the files that its program writes
    writes: dict[int, list[int]] = field(default_factory=dict)  # by process ID of the program: the same


class Relay:
    """Carries requests and messages between a tunnelmark command on another machine and the lab on this host.

    It also carries the contents of the files that programs on the nodes read and write. It serves until its standard
    input is closed.
    """

    def __init__(self, labs: LabClient, facts: Facts, collect: Collect, scratch: Path) -> None:
        self._labs, self._facts, self._collect = labs, facts, collect
        self._here: dict[str, HostLab] = {}
        self._scratch = scratch
        self._loop = asyncio.get_running_loop()
        self._nodes: dict[int, _Node] = {}
        self._streams = FileStreams(say)
        self._moves: places.Moves = ()
        self._tasks: set[asyncio.Task[None]] = set()
        self.heard = time.monotonic()

    async def serve(self) -> None:
        """Answer the command's requests until standard input ends."""
        reader = asyncio.StreamReader()
        await self._loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(0, "rb", 0))
        unpacker = frames.Unpacker()
        while data := await reader.read(1 << 16):
            self.heard = time.monotonic()
            for message, content in unpacker.feed(data):
                self._take(message, content)

    def _take(self, message: dict[str, Any], content: bytes) -> None:
        if "op" in message:
            task = self._loop.create_task(self._answer(message))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        elif "node" in message:
            self._to_node(message)
        else:
            self._streams.take(message, content)

    async def _answer(self, message: dict[str, Any]) -> None:
        try:
            answer = await self._asked(message)
        except TunnelmarkError as error:
            answer = {"error": plain(error)}
        except Exception as error:  # whatever the kernel or pyroute2 says is the command's to tell
            answer = {"error": plain(LabError(f"{type(error).__name__}: {error}"))}
        say({**answer, "id": message["id"]})

    async def _asked(self, message: dict[str, Any]) -> dict[str, Any]:
        match message["op"]:
            case "begin":
                self._labs.watch()
                self._moves = places.moves(message["places"], places.here())
                return {
                    "tunnelmark": tunnelmark.__version__,
                    "release": platform.release(),
                    "record": self._labs.record,
                    "mtu": await asyncio.to_thread(interfaces.mtu_of, message["interface"], message["address"]),
                }
            case "clock":
                return {"realtime": time.time_ns(), "monotonic": time.monotonic_ns()}
            case "seen":
                return _seen(await self._labs.seen(), message["since"])
            case "facts":
                return {"facts": dict(await asyncio.to_thread(self._facts, message["asked"]))}
            case "up":
                return await self._up(message)
            case "collect":
                return dict(await self._collect(message, self._here[message["lab"]]))
            case "down" | "count" as op:
                if op == "down" and (ending := self._here.pop(message["lab"], None)) is not None:
                    # First: what looks into a node keeps its network from ending.
                    await self._collect({"what": "give up"}, ending)
                return await self._labs.request(op, lab=message["lab"])
            case "check":
                await self._labs.check()
                return {}
            case unknown:
                raise ValueError(f"unknown request {unknown!r}")

    async def _up(self, message: dict[str, Any]) -> dict[str, Any]:
        """Make a lab's nodes, then the segments to other hosts, then the links; return the lab server's answer."""
        pairs = [channel.pair() for _ in message["nodes"]]
        try:
            for number, (ours, _) in zip(message["numbers"], pairs, strict=True):
                self._nodes[number] = self._listen(number, ours)
            answer = await self._labs.request(
                "up",
                [theirs.fileno() for _, theirs in pairs],
                lab=message["lab"],
                middle=message["middle"],
                nodes=message["nodes"],
            )
        finally:
            for _, theirs in pairs:
                theirs.close()
        born = [self._nodes[number].hello for number in message["numbers"]]
        pids = await in_time(asyncio.gather(*born), "not every node began", len(born))
        agents = {node["name"]: pid for node, pid in zip(message["nodes"], pids, strict=True)}
        for segment in message["segments"]:
            made = Segment(**segment["end"])
            await interfaces.make(interfaces.Wanted(made, agents[made.node], **segment["way"]))
        joined = await self._labs.request("join", lab=message["lab"], links=message["links"])
        links = [LinkSpec.read(each) for each in message["links"]]
        self._here[message["lab"]] = HostLab(
            message["lab"], agents, links, self._labs.unified, self._scratch, self._labs.seen
        )
        return {"refused": answer["refused"], "timings": answer["timings"] | joined["timings"]}

    def _listen(self, number: int, ours: socket.socket) -> _Node:
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        ours.setblocking(False)
        self._loop.add_reader(ours.fileno(), self._from_node, number)
        return _Node(ours, self._loop.create_future())

    def _from_node(self, number: int) -> None:
        node = self._nodes[number]
        try:
            received = channel.receive(node.sock)
        except BlockingIOError:
            return
        if received is None:
            self._forget(number)
            say({"node": number, "end": True})
            return
        message, _, pid = received
        if "hello" in message and not node.hello.done():
            node.hello.set_result(pid or 0)
        if "id" in message and (files := node.asked.pop(message["id"], None)) is not None and "pid" in message:
            node.writes[message["pid"]] = files
        after = node.writes.pop(message["exit"], []) if "exit" in message else []
        self._streams.drain(after)  # all that it wrote comes before its end
        say({"node": number, "message": message, **({"after": after} if after else {})})

    def _forget(self, number: int) -> None:
        node = self._nodes.pop(number)
        self._loop.remove_reader(node.sock.fileno())
        node.sock.close()

    def _to_node(self, frame: dict[str, Any]) -> None:
        node = self._nodes.get(frame["node"])
        if node is None:
            return
        if "end" in frame:
            self._forget(frame["node"])
            return
        message = places.request(frame["message"], self._moves)
        fds: dict[int, int] = {}
        outs: list[int] = []
        given: list[int] = []
        for each in frame.get("files", ()):
            file, way = each["file"], each["way"]
            if file not in fds:
                fds[file] = self._opened(file, way)
                if way == "out":
                    outs.append(file)
            given.append(fds[file])
        if outs:
            node.asked[message["id"]] = outs
        try:
            channel.send(node.sock, message, given)
        except OSError:  # it has ended, which is reported
            pass
        finally:
            for fd in fds.values():
                os.close(fd)

    def _opened(self, file: int, way: str) -> int:
        """Return the end of a new pipe that the agent gets for a file; /dev/null if `way` is `none`."""
        if way == "none":
            return os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        read, write = os.pipe2(os.O_CLOEXEC)
        if way == "in":
            self._streams.write(file, write)
            return read
        self._streams.read(file, read)
        return write


def _seen(seen: PausesSeen | None, since: int) -> dict[str, Any]:
    """Return the pauses that ended after `since` (ns), for `SshLabs.seen`; {} if nothing watches for pauses."""
    if seen is None:
        return {}
    return {"until": seen.until, "pauses": [astuple(each) for each in seen.pauses if each.woke > since]}


def say(message: Mapping[str, Any], data: bytes = b"") -> None:
    """Write a whole frame to standard output. It blocks until the command has read enough to make room for it."""
    frame = memoryview(frames.pack(message, data))
    while frame:
        frame = frame[os.write(1, frame) :]


async def serve(facts: Facts, collect: Collect, held: Callable[[], AbstractContextManager[None]]) -> None:
    """Be this host's relay until the command that started it is gone.

    `facts` and `collect` answer the command's requests of these names. `held` keeps other commands off the host
    meanwhile. If it raises an error, because another command measures there, the error is sent to the command.
    """
    os.write(1, frames.MARK)
    with contextlib.suppress(BrokenPipeError):
        try:
            with held():
                await _serve(facts, collect)
        except TunnelmarkError as error:
            say({"ready": False, "error": plain(error)})


async def _serve(facts: Facts, collect: Collect) -> None:
    with tempfile.TemporaryDirectory(prefix="tunnelmark-relay-") as scratch:
        async with LabClient((Path(scratch),)) as labs:
            relay = Relay(labs, facts, collect, Path(scratch))
            threading.Thread(target=_end_in_silence, args=(relay,), daemon=True).start()
            say({"ready": True})
            await relay.serve()


def _end_in_silence(relay: Relay) -> None:
    """Kill this process when no frame has come for `SILENCE` seconds: ssh notices a lost connection only much later."""
    while time.monotonic() - relay.heard < SILENCE:
        time.sleep(1.0)
    os.kill(os.getpid(), signal.SIGKILL)  # as after any kill, nothing is left
