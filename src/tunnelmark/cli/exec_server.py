"""Serves `lab exec` in the process that holds a lab on other hosts: runs programs on its nodes for clients.

A client connects to a Unix socket (SEQPACKET, see `lab.channel`). It sends

    {node, argv, env} + files           run a program; the files are its input, output and error output, all pipes
    {signal}                            pass a signal on to it

and receives one answer, after all that the program wrote: {exit} with the code (negative: the signal), or {error}.
A program is ended if its client disconnects.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import ExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from tunnelmark.errors import LabError, NodeGone, plain
from tunnelmark.lab import channel
from tunnelmark.lab.node import Node, Process

Lost = Callable[[], Awaitable[str | None]]
"""A function that returns in words why a lab is gone; None if the lab is still there."""


@asynccontextmanager
async def serving(nodes: Mapping[str, Node], lost: Lost, door: Path) -> AsyncIterator[None]:
    """Run programs on `nodes` for clients, until the body of the `with` statement ends; then end these programs.

    `nodes`: by name. `door`: the path at which the socket for clients is made; only this process's user can connect.
    `lost`: called if a node is gone; the client gets the reason that it returns.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.setblocking(False)
        before = os.umask(0o177)
        try:
            listener.bind(str(door))
        finally:
            os.umask(before)
        listener.listen()
        accepting = asyncio.create_task(_accept(listener, nodes, lost))
        try:
            yield
        finally:
            accepting.cancel()
            with suppress(asyncio.CancelledError):
                await accepting


async def _accept(listener: socket.socket, nodes: Mapping[str, Node], lost: Lost) -> None:
    served: set[asyncio.Task[None]] = set()
    try:
        while True:
            sock, _ = await asyncio.get_running_loop().sock_accept(listener)
            task = asyncio.create_task(_serve(sock, nodes, lost))
            served.add(task)
            task.add_done_callback(served.discard)
    finally:
        for task in served:
            task.cancel()
        await asyncio.gather(*served, return_exceptions=True)


async def _serve(sock: socket.socket, nodes: Mapping[str, Node], lost: Lost) -> None:
    with sock:
        if (asked := await _receive(sock)) is None:
            return
        message, fds = asked
        try:
            with ExitStack() as files:
                given = [
                    files.enter_context(os.fdopen(fd, mode, 0))
                    for fd, mode in zip(fds, ("rb", "wb", "wb"), strict=True)
                ]
                process = await nodes[message["node"]].spawn(
                    message["argv"], stdin=given[0], stdout=given[1], stderr=given[2], env=message["env"]
                )
            answer = await _ended(sock, process)
        except LabError as error:
            why = await lost() if isinstance(error, NodeGone) else None
            answer = {"error": plain(LabError(why, hint="`tunnelmark lab up` makes the lab again") if why else error)}
        with suppress(OSError):
            channel.send(sock, answer)


async def _ended(sock: socket.socket, process: Process) -> dict[str, Any]:
    """Return how a program ended; stop it if its client disconnects first."""
    ended = asyncio.ensure_future(process.wait())
    heard = asyncio.create_task(_hear(sock, process))
    try:
        await asyncio.wait({ended, heard}, return_when=asyncio.FIRST_COMPLETED)
        end = await ended if ended.done() else await process.stop()
        return {"exit": end.code}
    finally:
        for task in (ended, heard):
            task.cancel()
        await asyncio.gather(ended, heard, return_exceptions=True)


async def _hear(sock: socket.socket, process: Process) -> None:
    """Pass the client's signals on to the program until the client disconnects."""
    while (said := await _receive(sock)) is not None:
        await process.signal(said[0]["signal"])


async def _receive(sock: socket.socket) -> tuple[dict[str, Any], list[int]] | None:
    """Return the next message with its files; None when the client has disconnected."""
    loop = asyncio.get_running_loop()
    sock.setblocking(False)
    while True:
        try:
            received = channel.receive(sock)
        except BlockingIOError:
            come = asyncio.Event()
            loop.add_reader(sock.fileno(), come.set)
            try:
                await come.wait()
            finally:
                loop.remove_reader(sock.fileno())
            continue
        return None if received is None else received[:2]
