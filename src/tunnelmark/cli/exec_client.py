"""The command's side of `lab exec` on a lab over other hosts: carries input, output, signals and the exit code (see `exec_server`)."""

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
    """Run a command on a node of the lab whose socket that is; its exit code, as a shell has it: 128 and the number for a signal.

    It has a terminal if all of our input, output and error output are one. LabError if it cannot be started, or the lab ends meanwhile.
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
    """The pipes to a program's input and from its outputs: our own files may be of any kind, and others may have them open, too."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._into = -1
        self._from: dict[int, int] = {}  # pipe -> ours

    def begin(self, message: Mapping[str, Any], *, together: bool) -> None:
        """Ask for the program; both its outputs go to ours `together`, or each to its own."""
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
        """Carry until the program has ended, and all that it wrote has come; its exit code."""
        unsent = b""
        while True:
            poll = select.poll()
            poll.register(self._sock, select.POLLIN)
            for fd in self._from:
                poll.register(fd, select.POLLIN)
            if self._into >= 0:
                poll.register(self._into, select.POLLOUT if unsent else 0)  # that its reader has gone is always said
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
        """Let go of the pipes."""
        self._end_input()
        for fd in self._from:
            os.close(fd)
        self._from.clear()

    def _show(self, fd: int, most: int = _PIECE) -> int:
        """Show what a pipe has, once there is something; how many bytes that were, 0 at its end."""
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
        """Send what fits; what is left of it."""
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
        for fd in tuple(self._from):  # what it wrote is there, and another program may have the pipe open
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
    """Write all of it, also where another program has made the file one that does not wait."""
    left = memoryview(data)
    while left:
        try:
            left = left[os.write(fd, left) :]
        except BlockingIOError:
            select.select([], [fd], [])


@contextmanager
def _passed_on(sock: socket.socket) -> Iterator[None]:
    """Have signals passed on to the program in place of ending us; one that is ignored, as after a shell's `&`, stays so."""

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
    """Have our terminal pass keys on as they are: the other one knows what they mean."""
    before = termios.tcgetattr(0)
    try:
        tty.setraw(0)
        yield
    finally:
        termios.tcsetattr(0, termios.TCSADRAIN, before)
