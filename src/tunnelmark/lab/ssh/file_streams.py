"""Carries the content of programs' files over a connection, with a bound on the bytes that are on their way.

Both ends have a `FileStreams`. For each file, one end reads and the other end writes; frames (see `frames`) name the
file by its number. The end that reads sends:

    {file} + data      data that it has read
    {file, end}        the file has no more data

The end that writes sends:

    {file, took}       the number of bytes that it has written since the last such frame
    {file, closed}     the program that read the pipe has closed it, so no more data is wanted

So a program on a host that writes faster than its reader reads has to wait, as it would at a pipe.
"""

from __future__ import annotations

import array
import asyncio
import fcntl
import os
import stat
import termios
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from tunnelmark.lab.ssh import frames

WINDOW = 1 << 20
"""How many bytes of a file may be between its two ends; with a round-trip time of 100 ms that allows 10 MB/s."""

_REPORT = WINDOW // 4
"""After so many bytes written, the other end gets a report: rarely, because a measurement may be going on meanwhile."""

Say = Callable[[Mapping[str, Any], bytes], None]
"""Sends a frame: a message and the data behind it."""


def bytes_in(pipe: int) -> int:
    """Return how many bytes are in a pipe now."""
    there = array.array("i", [0])
    fcntl.ioctl(pipe, termios.FIONREAD, there)
    return there[0]


class FileStreams:
    """The files of one end of a connection, by their numbers, which both ends know."""

    def __init__(self, say: Say) -> None:
        self._say = say
        self._sources: dict[int, _Source] = {}
        self._sinks: dict[int, _Sink] = {}

    def read(self, number: int, fd: int) -> None:
        """Send the content of a file, or all that comes out of a pipe, to the other end. Takes over the descriptor."""
        self._sources[number] = _Source(fd, lambda data, last: self._was_read(number, data, last=last))

    def write(self, number: int, fd: int) -> None:
        """Write the data that the other end sends for this file. Takes over the descriptor."""
        self._sinks[number] = _Sink(
            fd,
            lambda count: self._say({"file": number, "took": count}, b""),
            lambda early: self._was_closed(number, early=early),
        )

    def take(self, message: Mapping[str, Any], data: bytes) -> None:
        """Handle a received frame about a file. OSError if a file on a disk cannot be written (a full disk, say)."""
        number = message["file"]
        if "took" in message:
            if (source := self._sources.get(number)) is not None:
                source.took(message["took"])
        elif "closed" in message:
            if (source := self._sources.pop(number, None)) is not None:
                source.close()
        elif (sink := self._sinks.get(number)) is not None:
            sink.write(data)
            if "end" in message:
                sink.end()

    def drain(self, numbers: Iterable[int]) -> None:
        """Send all that is in these pipes now, even if more than `WINDOW` bytes are then on their way.

        Call it when a program has ended: these bytes are what the program wrote before its end.
        """
        for number in numbers:
            if (source := self._sources.get(number)) is not None:
                source.drain()

    def unwritten(self, numbers: Iterable[int]) -> list[asyncio.Event]:
        """Return, for each of these files with data still to be written, an event that is set when all of it is
        written.
        """
        sinks = [self._sinks[number] for number in numbers if number in self._sinks]
        return [sink.written for sink in sinks if not sink.written.is_set()]

    def close(self) -> None:
        """Close all files."""
        for source in self._sources.values():
            source.close()
        for sink in self._sinks.values():
            sink.close()
        self._sources.clear()
        self._sinks.clear()

    def _was_read(self, number: int, data: bytes, *, last: bool) -> None:
        if last:
            self._sources.pop(number, None)
        self._say({"file": number, "end": True} if last else {"file": number}, data)

    def _was_closed(self, number: int, *, early: bool) -> None:
        self._sinks.pop(number, None)
        if early:
            self._say({"file": number, "closed": True}, b"")


class _Source:
    """Reads a file or a pipe, as long as fewer than `WINDOW` bytes are between the two ends."""

    def __init__(self, fd: int, was_read: Callable[[bytes, bool], None]) -> None:
        self._fd, self._was_read = fd, was_read
        self._between, self._watched = 0, False
        self._pipe = stat.S_ISFIFO(os.fstat(fd).st_mode)
        self._loop = asyncio.get_running_loop()
        if self._pipe:
            os.set_blocking(fd, False)
        self._loop.call_soon(self._go_on)  # not before the other end has heard of the file

    def took(self, count: int) -> None:
        """Note that the other end has written `count` bytes, so that as many more may be sent."""
        self._between -= count
        self._go_on()

    def drain(self) -> None:
        """Read the bytes that are in the pipe now, and no more, because another program may go on writing."""
        if self._fd < 0 or not self._pipe:
            return
        left = bytes_in(self._fd)
        while left > 0 and (count := self._read(min(left, frames.PIECE))):
            left -= count

    def close(self) -> None:
        """Close the file; a program that writes into the pipe then gets SIGPIPE or EPIPE."""
        if self._fd >= 0:
            self._watch(wanted=False)
            os.close(self._fd)
            self._fd = -1

    def _go_on(self) -> None:
        while self._fd >= 0 and self._between < WINDOW and self._read(frames.PIECE):
            pass
        if self._fd >= 0:
            self._watch(wanted=self._pipe and self._between < WINDOW)

    def _read(self, most: int) -> int:
        try:
            data = os.read(self._fd, most)
        except BlockingIOError:
            return 0
        self._between += len(data)
        if not data:
            self.close()
        self._was_read(data, not data)
        return len(data)

    def _watch(self, *, wanted: bool) -> None:
        if wanted and not self._watched:
            self._loop.add_reader(self._fd, self._go_on)
        elif self._watched and not wanted:
            self._loop.remove_reader(self._fd)
        self._watched = wanted


class _Sink:
    """Writes to a file or a pipe in order, and keeps what does not fit into the pipe yet."""

    def __init__(self, fd: int, took: Callable[[int], None], closed: Callable[[bool], None]) -> None:
        """`took` is called with the number of bytes written; `closed` at the end, with True if the reader closed it."""
        self._fd, self._took, self._closed = fd, took, closed
        self._pipe = stat.S_ISFIFO(os.fstat(fd).st_mode)
        self._waiting, self._unsaid = bytearray(), 0
        self._last, self._watched = False, False
        self._loop = asyncio.get_running_loop()
        self.written = asyncio.Event()
        self.written.set()
        if self._pipe:
            os.set_blocking(fd, False)

    def write(self, data: bytes) -> None:
        """Write bytes, as early as the pipe takes them."""
        if self._fd >= 0 and data:
            self._waiting += data
            self.written.clear()
            self._go_on()

    def end(self) -> None:
        """Close the file once all waiting bytes are written: the other end sends no more."""
        self._last = True
        self._go_on()

    def close(self) -> None:
        """Close the file at once; bytes that still wait are lost."""
        if self._fd >= 0:
            self._watch(wanted=False)
            os.close(self._fd)
            self._fd = -1
        self._waiting.clear()
        self.written.set()

    def _go_on(self) -> None:
        if self._fd < 0:
            return
        try:
            while self._waiting:
                count = os.write(self._fd, self._waiting[: frames.PIECE])
                del self._waiting[:count]
                self._count(count)
        except BlockingIOError:
            self._watch(wanted=True)
            return
        except OSError:
            if not self._pipe:
                raise
            self.close()  # its reader has closed it
            self._closed(True)
            return
        self._watch(wanted=False)
        self.written.set()
        if self._last:
            self.close()
            self._closed(False)

    def _count(self, written: int) -> None:
        self._unsaid += written
        if self._unsaid >= _REPORT:
            self._took(self._unsaid)
            self._unsaid = 0

    def _watch(self, *, wanted: bool) -> None:
        if wanted and not self._watched:
            self._loop.add_writer(self._fd, self._go_on)
        elif self._watched and not wanted:
            self._loop.remove_writer(self._fd)
        self._watched = wanted
