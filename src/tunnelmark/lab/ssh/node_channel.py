"""What an agent on a host says to its node's client here: what does not fit into the socket at once waits, in order."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

from tunnelmark.lab import channel


class NodeChannel:
    """The host's end of a node's channel, as the node's client here has it: what does not fit into the socket waits."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self._waiting: list[dict[str, Any]] = []
        self._loop = asyncio.get_running_loop()

    def say(self, message: dict[str, Any]) -> None:
        """Send a message of the node's agent to its client; it waits while the socket is full."""
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
