"""One connection to a host: ssh(1), with the host's relay at its other end.

It carries requests to the relay, and the channels of the nodes on that host.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shlex
import signal
import stat
from collections.abc import Mapping, Sequence
from typing import Any

from tunnelmark.errors import LabError, TunnelmarkError, again
from tunnelmark.lab import channel
from tunnelmark.lab.node import Node
from tunnelmark.lab.ssh import frames, places
from tunnelmark.lab.ssh.clocks import HostClocks
from tunnelmark.lab.ssh.file_streams import FileStreams
from tunnelmark.lab.ssh.inventory import InventoryHost
from tunnelmark.lab.ssh.node_channel import NodeChannel
from tunnelmark.lab.ssh.ssh_options import ALIVE, BATCH

_BEGIN = 60.0  # seconds for ssh to connect and the relay to begin
_ANSWER = 10.0  # seconds within which a host must answer; else the measurement on it is void
_LAST = 5  # lines of ssh's output that an error shows
_GONE = "look at the host and the network to it; `tunnelmark run --resume DIR` goes on with what is finished"
_NULL = os.stat(os.devnull).st_rdev


class HostConnection:
    """The connection to a host's relay. `lost`: the error with which it ended; None while it lasts.

    `about`: facts of the host, {} before `begin` returns: `tunnelmark` (its version), `release` (of the kernel),
    `record` (the facts that its lab server records), `mtu` (bytes, of the interface that carries links).
    """

    def __init__(self, host: InventoryHost) -> None:
        self.host = host
        self.lost: LabError | None = None
        self.about: dict[str, Any] = {}
        self.clocks = HostClocks()
        self._loop = asyncio.get_running_loop()
        self._answers: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._channels: dict[int, NodeChannel] = {}
        self._streams = FileStreams(self._say)
        self._waiting: set[asyncio.Task[None]] = set()
        self._next = 1
        self._ssh: asyncio.subprocess.Process | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._said: list[str] = []

    async def begin(self) -> None:
        """Connect, and start the relay. LabError, in the words of ssh or the host, if that fails or takes over 60 s."""
        line = shlex.join([*shlex.split(self.host.command), "lab", "relay"])
        self._ssh = await asyncio.create_subprocess_exec(
            "ssh",
            *("-T", *BATCH, *ALIVE),
            *shlex.split(self.host.ssh),
            line,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,  # Ctrl-C is ours
        )
        self._complaints = self._loop.create_task(self._listen())
        try:
            await asyncio.wait_for(self._until_ready(), _BEGIN)
        except TimeoutError:
            await self.end()
            raise LabError(
                f"host {self.host.name} did not begin within {_BEGIN:g} s", hint=f"try: ssh {self.host.ssh} true"
            ) from None
        except BaseException:
            await self.end()
            raise
        self._tasks.append(self._loop.create_task(self._read()))
        try:
            self.about = await self.request(
                "begin", places=places.here(), interface=self.host.interface, address=str(self.host.address)
            )
            await self.look_at_clock()
        except BaseException:
            await self.end()
            raise
        self._tasks.append(self._loop.create_task(self._keep()))

    async def end(self) -> None:
        """End the connection. The relay then ends as well, and with it all that it made on the host."""
        for task in (*self._tasks, *self._waiting):
            task.cancel()
        if self._ssh is None:
            return
        assert self._ssh.stdin is not None
        self._ssh.stdin.close()
        try:
            await asyncio.wait_for(self._ssh.wait(), 10.0)
        except TimeoutError:
            self._ssh.kill()
            await self._ssh.wait()
        self._complaints.cancel()
        self._end(LabError(f"the connection to host {self.host.name} was ended", hint=_GONE))

    def drop(self) -> None:
        """Kill ssh at once, without waiting for its end."""
        with contextlib.suppress(ProcessLookupError):
            assert self._ssh is not None
            self._ssh.send_signal(signal.SIGKILL)

    async def request(self, op: str, **fields: Any) -> dict[str, Any]:
        """Send the relay a request, and return the answer; raises the relay's error, or LabError if the connection is
        lost.
        """
        number, self._next = self._next, self._next + 1
        answer: asyncio.Future[dict[str, Any]] = self._loop.create_future()
        self._answers[number] = answer
        self._say({"op": op, "id": number, **fields})
        said = await answer
        if "error" in said:
            raise self._refusal(said["error"])
        return said

    def _refusal(self, said: Mapping[str, str]) -> TunnelmarkError:
        return again({**said, "message": f"host {self.host.name}: {said['message']}"})

    def node(self, name: str) -> tuple[Node, int]:
        """Open a channel for a node that does not exist yet; return the node's client and the channel's number.

        The caller then asks the relay to make the node (request `up`), with this number among its `numbers`.
        """
        ours, theirs = channel.pair()
        number, self._next = self._next, self._next + 1
        self._channels[number] = NodeChannel(theirs)
        theirs.setblocking(False)
        self._loop.add_reader(theirs.fileno(), self._from_node, number)
        return Node(name, ours, elsewhere=self.host.name), number

    async def answers(self) -> None:
        """Wait until the host answers; if it does not within 10 s, the connection counts as lost."""
        try:
            await asyncio.wait_for(self.request("check"), _ANSWER)
        except TimeoutError:
            self._end(LabError(f"host {self.host.name} did not answer within {_ANSWER:g} s", hint=_GONE))
            self.drop()
        except LabError as error:
            self._end(error)

    async def look_at_clock(self, times: int = 1) -> None:
        """Measure the offsets of the host's clocks `times` times in a row; `clocks.offset` then has the result."""
        for _ in range(times):
            async with self.clocks.look() as took:
                took(await self.request("clock"))

    async def _keep(self) -> None:
        """Look at the host's clock every `HostClocks.every` s; by that the relay also knows that the command lives."""
        with contextlib.suppress(LabError):
            while True:
                await asyncio.sleep(self.clocks.every)
                await self.look_at_clock()

    async def _until_ready(self) -> None:
        assert self._ssh is not None and self._ssh.stdout is not None
        try:
            await self._ssh.stdout.readuntil(frames.MARK)
        except asyncio.IncompleteReadError as error:
            raise await self._broken(error.partial) from None
        except asyncio.LimitOverrunError:
            raise LabError(
                f"host {self.host.name} prints much before it begins", hint="mend its shell's start-up files"
            ) from None
        self._unpacker = frames.Unpacker()
        while data := await self._ssh.stdout.read(1 << 16):
            for message, _ in self._unpacker.feed(data):
                if message["ready"]:
                    return
                raise self._refusal(message["error"])
        raise await self._broken(b"")

    async def _broken(self, printed: bytes) -> LabError:
        """Return the error for a relay that did not start, or that has ended, in the last words of ssh or the host."""
        assert self._ssh is not None
        code = await self._ssh.wait()
        await asyncio.wait({self._complaints}, timeout=1.0)
        said = self._said[-_LAST:] or printed.decode(errors="replace").strip().splitlines()[-_LAST:]
        return LabError(
            f"host {self.host.name}: {' / '.join(said) or f'ssh ended with code {code}'}",
            hint=f"try: ssh {self.host.ssh} {shlex.join([*shlex.split(self.host.command), '--version'])}",
        )

    async def _listen(self) -> None:
        assert self._ssh is not None and self._ssh.stderr is not None
        while line := await self._ssh.stderr.readline():
            self._said.append(line.decode(errors="replace").strip())
            del self._said[:-50]

    async def _read(self) -> None:
        assert self._ssh is not None and self._ssh.stdout is not None
        try:
            while data := await self._ssh.stdout.read(1 << 16):
                for message, content in self._unpacker.feed(data):
                    self._take(message, content)
        except (OSError, ValueError) as error:
            self._said.append(str(error))
            self.drop()
        broken = await self._broken(b"")
        self._end(
            LabError(f"the connection to host {self.host.name} ended: {broken.message.partition(': ')[2]}", hint=_GONE)
        )

    def _end(self, error: LabError) -> None:
        self.lost = self.lost or error
        for future in self._answers.values():
            if not future.done():
                future.set_exception(error)
                future.exception()
        self._answers.clear()
        for number in tuple(self._channels):
            self._close(number)
        self._streams.close()

    def _take(self, message: dict[str, Any], content: bytes) -> None:
        if "id" in message and "node" not in message:
            if (answer := self._answers.pop(message["id"], None)) is not None and not answer.done():
                answer.set_result(message)
        elif "node" in message:
            if "end" in message:
                self._close(message["node"])
            elif unwritten := self._streams.unwritten(message.get("after", ())):
                task = self._loop.create_task(self._hand_on_after(unwritten, message))
                self._waiting.add(task)
                task.add_done_callback(self._waiting.discard)
            else:
                self._hand_on(message)
        else:
            self._streams.take(message, content)

    def _hand_on(self, message: Mapping[str, Any]) -> None:
        if (held := self._channels.get(message["node"])) is not None:
            held.say(message["message"])

    async def _hand_on_after(self, unwritten: Sequence[asyncio.Event], message: Mapping[str, Any]) -> None:
        for written in unwritten:
            await written.wait()
        self._hand_on(message)

    def _from_node(self, number: int) -> None:
        """Pass a message of the command to a node's agent on to the host, with the files that belong to it."""
        try:
            received = channel.receive(self._channels[number].sock)
        except BlockingIOError:
            return
        if received is None:
            self._close(number)
            self._say({"node": number, "end": True})
            return
        message, fds, _ = received
        self._say({"node": number, "message": message, "files": self._files(fds)})

    def _files(self, fds: Sequence[int]) -> list[dict[str, Any]]:
        """Take over the files of a program, and return for each what the relay has to make: `file` and `way`, as in
        `relay`.

        The program reads the first file, and writes to the others.
        """
        found: list[dict[str, Any]] = []
        known: dict[tuple[int, int], int] = {}
        for place, fd in enumerate(fds):
            state = os.fstat(fd)
            if stat.S_ISCHR(state.st_mode) and state.st_rdev == _NULL:
                os.close(fd)
                found.append({"file": -1, "way": "none"})
                continue
            same = (state.st_dev, state.st_ino)
            if place and same in known:  # the program's messages go where its output goes
                os.close(fd)
                found.append({"file": known[same], "way": "out"})
                continue
            number, self._next = self._next, self._next + 1
            found.append({"file": number, "way": "out" if place else "in"})
            if place:
                known[same] = number
                self._streams.write(number, fd)
            else:
                self._streams.read(number, fd)
        return found

    def _say(self, message: Mapping[str, Any], data: bytes = b"") -> None:
        if self.lost is not None:
            self._end(self.lost)  # what is asked now gets no answer either
            return
        assert self._ssh is not None and self._ssh.stdin is not None
        self._ssh.stdin.write(frames.pack(message, data))

    def _close(self, number: int) -> None:
        if (held := self._channels.pop(number, None)) is not None:
            self._loop.remove_reader(held.sock.fileno())
            held.close()
