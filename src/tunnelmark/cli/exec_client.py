"""The client of `lab exec` for labs on other hosts: carries input, output, signals and exit code (`exec_server`)."""

from __future__ import annotations

import os
import select
import signal
import socket
import termios
import tty
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from tunnelmark.errors import LabError, UsageError, again
from tunnelmark.lab import channel
from tunnelmark.lab.ssh import node_terminal
from tunnelmark.lab.ssh.file_streams import bytes_in

_PIECE = 1 << 16  # bytes read at once
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def run(door: Path, node: str, command: Sequence[str], env: Mapping[str, str]) -> int:
    """Run a command on a node of the lab with the socket `door`. Return its exit code, or 128 + n if signal n ended it.

    The command has a terminal if our input, output and error output are all terminals. LabError if the command cannot
    be started, or if the lab ends meanwhile. UsageError if the command is longer than `channel.LIMIT` bytes.
    """
    in_terminal = all(map(os.isatty, (0, 1, 2)))
    if in_terminal:
        columns, rows = os.get_terminal_size(0)
        command = node_terminal.wrapped(command, rows, columns)
    with ExitStack() as held:
        sock = held.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET))
        try:
            sock.connect(str(door))
        except OSError as error:
            raise LabError(
                f"the lab does not answer: {error.strerror}",
                hint="see `tunnelmark lab list`; `tunnelmark lab down` ends it",
            ) from None
        carried = _Carried(sock)
        held.callback(carried.close)
        carried.begin({"node": node, "argv": list(command), "env": dict(env)}, together=in_terminal)
        held.enter_context(_passed_on(sock))
        if in_terminal:
            held.enter_context(_raw())
        return carried.until_end()


class _Carried:
    """The pipes to a program's input and from its outputs.

    Our own files are not passed on: they may be of any kind, and other programs may have them open, too.
    """

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._into = -1
        self._from: dict[int, int] = {}  # pipe -> our file descriptor

    def begin(self, message: Mapping[str, Any], *, together: bool) -> None:
        """Ask the lab's process to run a program; `message` has its `node`, `argv` and `env` (see `exec_server`).

        With `together`, the program's error output goes to our standard output, otherwise to our error output.
        """
        theirs, self._into = os.pipe()
        os.set_blocking(self._into, False)
        given = [theirs]
        for ours in (1,) if together else (1, 2):
            reading, writing = os.pipe()
            self._from[reading] = ours
            given.append(writing)
        try:
            channel.send(self._sock, dict(message), [*given, given[-1]] if together else given)
        except ValueError:
            raise UsageError(
                f"the command is longer than {channel.LIMIT} bytes",
                hint="have the program read what is long as its input",
            ) from None
        finally:
            for fd in given:
                os.close(fd)

    def until_end(self) -> int:
        """Carry data until the program has ended and all its output has arrived. Return its exit code."""
        unsent = b""
        while True:
            poll = select.poll()
            poll.register(self._sock, select.POLLIN)
            for fd in self._from:
                poll.register(fd, select.POLLIN)
            if self._into >= 0:
                poll.register(self._into, select.POLLOUT if unsent else 0)  # poll always reports a reader that has gone
                if not unsent:
                    poll.register(0, select.POLLIN)
            ready = dict(poll.poll())
            for fd in [fd for fd in self._from if fd in ready]:
                self._show(fd)
            if ready.get(self._into, 0) & select.POLLERR:
                self._end_input()
                unsent = b""
            elif self._into in ready:
                unsent = self._send(unsent)
            elif 0 in ready:
                unsent = self._typed()
            if self._sock.fileno() in ready:
                return self._ended()

    def close(self) -> None:
        """Close the pipes."""
        self._end_input()
        for fd in self._from:
            os.close(fd)
        self._from.clear()

    def _show(self, fd: int, most: int = _PIECE) -> int:
        """Wait for data in a pipe, write it to our output, and return the number of bytes; 0 at the pipe's end."""
        data = os.read(fd, most)
        if data:
            _write(self._from[fd], data)
        else:
            os.close(fd)
            del self._from[fd]
        return len(data)

    def _typed(self) -> bytes:
        try:
            data = os.read(0, _PIECE)
        except OSError:  # there is no input
            data = b""
        if not data:
            self._end_input()
        return self._send(data)

    def _send(self, data: bytes) -> bytes:
        """Send as many bytes as the pipe takes, and return the rest."""
        try:
            return data[os.write(self._into, data) :] if data else data
        except BlockingIOError:
            return data
        except OSError:  # the program reads no more
            self._end_input()
            return b""

    def _end_input(self) -> None:
        if self._into >= 0:
            os.close(self._into)
            self._into = -1

    def _ended(self) -> int:
        received = channel.receive(self._sock)
        for fd in tuple(self._from):  # all output is in the pipe; its end may not come, if other programs hold it
            left = bytes_in(fd)
            while left:
                left -= self._show(fd, min(left, _PIECE))
        if received is None:
            raise LabError("the lab ended meanwhile", hint="see `tunnelmark lab list`")
        said = received[0]
        if "error" in said:
            raise again(said["error"])
        code: int = said["exit"]
        return code if code >= 0 else 128 - code


def _write(fd: int, data: bytes) -> None:
    """Write all bytes, even if another program has made the file non-blocking."""
    left = memoryview(data)
    while left:
        try:
            left = left[os.write(fd, left) :]
        except BlockingIOError:
            select.select([], [fd], [])


@contextmanager
def _passed_on(sock: socket.socket) -> Iterator[None]:
    """Pass signals on to the program instead of ending us; an ignored one, as after a shell's `&`, stays ignored."""

    def pass_on(number: int, _: object) -> None:
        with suppress(OSError):
            channel.send(sock, {"signal": number})

    before = {number: signal.getsignal(number) for number in _SIGNALS}
    heard = [number for number in _SIGNALS if before[number] is not signal.SIG_IGN]
    try:
        for number in heard:
            signal.signal(number, pass_on)
        yield
    finally:
        for number in heard:
            signal.signal(number, before[number])


@contextmanager
def _raw() -> Iterator[None]:
    """Put our terminal into raw mode: the terminal on the node interprets the keys."""
    before = termios.tcgetattr(0)
    try:
        tty.setraw(0)
        yield
    finally:
        termios.tcsetattr(0, termios.TCSADRAIN, before)
