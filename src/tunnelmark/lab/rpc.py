"""Sends numbered requests over a channel, and receives their answers, in any order, and the other side's notices.

A notice is a message that answers no request, such as one that a program has ended. Both the lab's server and the
agents of nodes answer such requests (see `lab.server`).
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from tunnelmark.errors import LabError
from tunnelmark.lab import channel

Message = dict[str, Any]


def _nothing(_: Message) -> None:
    pass


class Client:
    """The requesting side of one socket, which it owns from now on; create it inside a running event loop."""

    def __init__(
        self,
        sock: socket.socket,
        *,
        refused: Callable[[str], LabError],
        gone: Callable[[str], LabError],
        on_notice: Callable[[Message, int | None], None],
        on_end: Callable[[], None],
        on_answer: Callable[[Message], None] = _nothing,
    ) -> None:
        """`refused` makes the error of a request that the other side refuses, `gone` that of one that cannot be sent.

        Both get the reason. `on_notice` gets each message that is not an answer, with the sender's process ID where the
        socket reports it (SO_PASSCRED). `on_answer` sees each answer before the caller that waits for it. `on_end` is called
        once if the other side ends.
        """
        self._sock = sock
        self._refused, self._gone = refused, gone
        self._on_notice, self._on_answer, self._on_end = on_notice, on_answer, on_end
        self._answers: dict[int, asyncio.Future[Message]] = {}
        self._next = 1
        self._loop = asyncio.get_running_loop()
        sock.setblocking(False)
        self._loop.add_reader(sock.fileno(), self._receive)

    async def request(self, op: str, fds: Sequence[int] = (), **fields: Any) -> Message:
        """Send a request with copies of the open files `fds`, and return the answer.

        Raises LabError. The class's parameter `refused` makes the error if the other side refuses, and `gone` makes it
        if the request cannot be sent. If `fail` is called meanwhile, its error is raised.
        """
        number, self._next = self._next, self._next + 1
        answer: asyncio.Future[Message] = self._loop.create_future()
        self._answers[number] = answer
        try:
            channel.send(self._sock, {"op": op, "id": number, **fields}, fds)
        except OSError as error:
            del self._answers[number]
            raise self._gone(error.strerror or str(error)) from error
        return await answer

    def fail(self, error: LabError, others: Iterable[asyncio.Future[Any]] = ()) -> None:
        """End every open request, and every open future of `others`, with an error."""
        for future in (*self._answers.values(), *others):
            if not future.done():
                future.set_exception(error)
                future.exception()  # not every caller waits; silence "never retrieved"
        self._answers.clear()

    @property
    def is_open(self) -> bool:
        """Whether the socket is open: true until `close` is called, even if the other side has ended."""
        return self._sock.fileno() >= 0

    def close(self) -> None:
        """Close the socket; the other side then reads an end of file."""
        if self.is_open:
            self._loop.remove_reader(self._sock.fileno())
            self._sock.close()

    def _receive(self) -> None:
        try:
            received = channel.receive(self._sock)
        except BlockingIOError:
            return
        if received is None:
            self._loop.remove_reader(self._sock.fileno())
            self._on_end()
            return
        message, _, pid = received
        if "id" not in message:
            self._on_notice(message, pid)
            return
        self._on_answer(message)
        answer = self._answers.pop(message["id"])
        if answer.done():  # the caller was cancelled
            return
        if "error" in message:
            answer.set_exception(self._refused(message["error"]))
        else:
            answer.set_result(message)
