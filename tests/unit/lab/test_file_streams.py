"""Files of programs over a connection: all of it arrives in order, however slow its reader is, and little is on the way."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Mapping
from typing import Any

import pytest

from tunnelmark.lab.ssh import frames
from tunnelmark.lab.ssh.file_streams import WINDOW, FileStreams

PIPE = 1 << 16  # bytes that fit into a pipe


class Ends:
    """The two ends of a connection; `sent` is how many bytes have been sent, `said` what else."""

    def __init__(self) -> None:
        self.sent, self.said = 0, list[Mapping[str, Any]]()
        self.near, self.far = FileStreams(self._to_far), FileStreams(self._to_near)

    def pipe(self) -> tuple[int, int]:
        """A pipe from far to near as file 1: what a program there writes to, and what its output is read from here."""
        (program, output), (reading, writing) = os.pipe(), os.pipe()
        self.far.read(1, program)
        self.near.write(1, writing)
        return output, reading

    def _to_far(self, message: Mapping[str, Any], data: bytes) -> None:
        self._carry(self.far, message, data)

    def _to_near(self, message: Mapping[str, Any], data: bytes) -> None:
        self._carry(self.near, message, data)

    def _carry(self, to: FileStreams, message: Mapping[str, Any], data: bytes) -> None:
        self.sent += len(data)
        self.said.append(message)
        asyncio.get_running_loop().call_soon(to.take, message, data)


async def rest() -> None:
    """Until nothing happens any more."""
    for _ in range(200):
        await asyncio.sleep(0)


def some(size: int) -> bytes:
    return bytes(range(251)) * (size // 251) + bytes(range(size % 251))


async def fill(output: int) -> int:
    """Write to a pipe as fast as a program can, until nothing fits any more; how many bytes that were."""
    os.set_blocking(output, False)
    written, idle = 0, 0
    while idle < 5:
        try:
            written += os.write(output, some(PIPE))
            idle = 0
        except BlockingIOError:
            idle += 1
        await rest()
    return written


async def read_all(fd: int) -> bytes:
    return await asyncio.to_thread(lambda: os.fdopen(fd, "rb").read())


@pytest.mark.parametrize("size", [0, 1, PIPE, 3 * WINDOW + 7])
def test_a_file_arrives_whole(size: int):
    async def go() -> bytes:
        ends = Ends()
        source, (reading, writing) = os.memfd_create("source"), os.pipe()
        with os.fdopen(os.dup(source), "wb") as file:
            file.write(some(size))
        os.lseek(source, 0, os.SEEK_SET)
        ends.near.read(7, source)
        ends.far.write(7, writing)
        return await read_all(reading)

    assert asyncio.run(go()) == some(size)


def test_what_is_not_read_is_not_sent():
    async def go() -> None:
        ends = Ends()
        output, reading = ends.pipe()
        written = await fill(output)
        assert WINDOW <= ends.sent <= WINDOW + frames.PIECE
        assert written <= ends.sent + PIPE, "so the program waits"
        os.close(output)
        assert len(await read_all(reading)) == written, "nothing is lost when it is read at last"

    asyncio.run(go())


def test_what_was_written_before_an_end_is_sent_although_too_much_is_on_the_way():
    async def go() -> None:
        ends = Ends()
        output, reading = ends.pipe()
        written = await fill(output)
        assert ends.sent < written
        ends.far.drain([1])
        assert ends.sent == written
        (unwritten,) = ends.near.unwritten([1])
        assert not unwritten.is_set()
        os.close(output)
        assert len(await read_all(reading)) == written
        await asyncio.wait_for(unwritten.wait(), 5)
        await rest()
        assert ends.near.unwritten([1]) == []

    asyncio.run(go())


def test_a_reader_that_has_gone_ends_the_writer():
    async def go() -> None:
        ends = Ends()
        output, reading = ends.pipe()
        os.close(reading)
        os.write(output, b"some words")
        await rest()
        assert {"file": 1, "closed": True} in ends.said
        with pytest.raises(BrokenPipeError):
            os.write(output, b"more")
        os.close(output)

    asyncio.run(go())


def test_a_file_on_a_disk_has_all_at_once():
    async def go() -> None:
        ends = Ends()
        program, output = os.pipe()
        with tempfile.TemporaryFile() as file:
            ends.far.read(1, program)
            ends.near.write(1, os.dup(file.fileno()))
            os.write(output, b"some words")
            await rest()
            assert ends.near.unwritten([1]) == []
            os.close(output)
            await rest()
            file.seek(0)
            assert file.read() == b"some words"

    asyncio.run(go())


def test_an_end_of_the_connection_lets_go_of_all_files():
    async def go() -> None:
        ends = Ends()
        output, reading = ends.pipe()
        ends.far.close()
        ends.near.close()
        assert os.read(reading, 1) == b""
        with pytest.raises(BrokenPipeError):
            os.write(output, b"x")
        await rest()
        for fd in (reading, output):
            os.close(fd)

    asyncio.run(go())
