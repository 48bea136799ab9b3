"""What does not fit into a socket or a pipe at once waits, in order: for a node's client here, for a program there."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable
from typing import Any

from tunnelmark.lab import channel
from tunnelmark.lab.ssh import frames


class NodeChannel:
    """The host's end of a node's channel, as the node's client here has it: what does not fit into the socket waits."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self._waiting: list[dict[str, Any]] = []
        self._loop = asyncio.get_running_loop()

    def say(self, message: dict[str, Any]) -> None:
        """Hand on what the node's agent says."""
        self._waiting.append(message)
        if len(self._waiting) == 1:
            self._go_on()

    def close(self) -> None:
        """End it, which the node's client sees."""
        self._loop.remove_writer(self.sock.fileno())
        self.sock.close()

    def _go_on(self) -> None:
        self._loop.remove_writer(self.sock.fileno())
        while self._waiting:
            try:
                channel.send(self.sock, self._waiting[0])
            except BlockingIOError:
                self._loop.add_writer(self.sock.fileno(), self._go_on)
                return
            except OSError:  # the command has let go of the node
                self._waiting.clear()
                return
            del self._waiting[0]


class ProgramInput:
    """A pipe to a program: what does not fit into it waits."""

    def __init__(self, fd: int, closed: Callable[[], object]) -> None:
        os.set_blocking(fd, False)
        self._fd, self._closed = fd, closed
        self._waiting, self._last, self._watched = bytearray(), False, False
        self._loop = asyncio.get_running_loop()

    def write(self, data: bytes, *, last: bool) -> None:
        """Write bytes; after the `last` ones the program finds the end of its input."""
        self._waiting += data
        self._last |= last
        self._go_on()

    def _go_on(self) -> None:
        try:
            while self._waiting:
                del self._waiting[: os.write(self._fd, self._waiting[: frames.PIECE])]
        except BlockingIOError:
            if not self._watched:
                self._loop.add_writer(self._fd, self._go_on)
                self._watched = True
            return
        except OSError:  # the program has closed it
            self._last = True
        if self._watched:
            self._loop.remove_writer(self._fd)
            self._watched = False
        if self._last:
            self._closed()
            os.close(self._fd)
