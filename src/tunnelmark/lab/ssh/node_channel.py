"""Hands an agent's messages from another host to its node's client here, in order, as fast as the socket takes them."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

from tunnelmark.lab import channel


class NodeChannel:
    """The agent's end of a node's channel: messages that the socket does not take at once wait, in order."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self._waiting: list[dict[str, Any]] = []
        self._loop = asyncio.get_running_loop()

    def say(self, message: dict[str, Any]) -> None:
        """Send a message of the node's agent to its client. If the socket is full, keep the message and return."""
        self._waiting.append(message)
        if len(self._waiting) == 1:
            self._go_on()

    def close(self) -> None:
        """Close the channel; the node's client then reads an end of file."""
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
