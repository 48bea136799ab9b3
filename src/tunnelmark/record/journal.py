"""Writes and reads the append-only journal of a study: one JSON object per line, synced to the disk as each trial ends.

If the command is killed, every line that was completely written stays; an incomplete last line is cut off when the
study is resumed. A reserve file keeps space on the disk, so that the last line can be written even if the disk is full.

A finished journal may be compressed (gzip) to a sixth of its size; its name then ends in `.gz`, and nothing can be added.
"""

from __future__ import annotations

import errno
import gzip
import json
import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

from tunnelmark.errors import DiskFull, StoreError

FULL = (errno.ENOSPC, errno.EDQUOT)
"""The errors of a disk that has no space left, or none left for this user."""

_RESERVE = 1 << 20  # bytes; the line of a trial has about 20 KiB


class Journal:
    """A journal to which entries are appended. It is open while the body of a `with` statement runs.

    On entry the journal is made if it is missing, an incomplete last line is cut off, and the reserve file is made. At
    the end of the `with` statement the reserve file is removed. StoreError on entry if the journal is compressed, or if
    the reserve file cannot be written (DiskFull if the disk is full).
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._reserve = path.with_suffix(".reserve")

    def __enter__(self) -> Journal:
        if not self._path.exists() and compressed(self._path).exists():
            raise StoreError(
                f"{compressed(self._path)} is compressed, so nothing can be added to it",
                hint=f"run gunzip on it first, in a copy of {self._path.parent}",
            )
        self._cut_torn_line()
        self._fd = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        try:
            with self._reserve.open("wb") as reserve:
                os.posix_fallocate(reserve.fileno(), 0, _RESERVE)
        except OSError as error:
            os.close(self._fd)
            self._reserve.unlink(missing_ok=True)
            raise _told(error, self._path) from error
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._fd)
        self._reserve.unlink(missing_ok=True)

    def append(self, entry: dict[str, Any]) -> None:
        """Write one line, and wait until it is on the disk.

        DiskFull if the disk is full. The line is then still written, into the space of the reserve file, so that
        the measurement is not lost.
        """
        line = json.dumps(entry, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
        end = os.fstat(self._fd).st_size
        try:
            self._write(line)
        except OSError as error:
            os.ftruncate(self._fd, end)
            if error.errno in FULL and self._reserve.exists():
                self._reserve.unlink()
                self._write(line)
            raise _told(error, self._path) from error

    def _write(self, line: bytes) -> None:
        written = 0
        while written < len(line):
            written += os.write(self._fd, line[written:])
        os.fsync(self._fd)

    def _cut_torn_line(self) -> None:
        if not self._path.exists():
            return
        with self._path.open("r+b") as file:
            content = file.read()
            whole = content.rfind(b"\n") + 1
            if whole < len(content):
                file.truncate(whole)


def compressed(path: Path) -> Path:
    """Return the path that a journal has if it is compressed."""
    return path.with_name(f"{path.name}.gz")


def is_there(path: Path) -> bool:
    """Return whether there is a journal, compressed or not."""
    return path.is_file() or compressed(path).is_file()


def read(path: Path) -> bytes:
    """Return the content of a journal, decompressed. StoreError if it is missing, or compressed and damaged."""
    try:
        return path.read_bytes() if path.exists() else gzip.decompress(compressed(path).read_bytes())
    except FileNotFoundError:
        raise StoreError(f"{path.parent} holds no results", hint="name the folder that a run has written") from None
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise StoreError(f"{compressed(path)} is damaged: {error}", hint="take it from where it was copied") from error


def entries(path: Path) -> Iterator[dict[str, Any]]:
    """Yield every entry of a journal, in order. StoreError if a line is not JSON; an incomplete last line is ignored.

    A block that another machine has measured is a single line (`gathered`); each entry of the block is yielded.
    """
    content = read(path)
    for number, line in enumerate(content[: content.rfind(b"\n") + 1].splitlines(), start=1):
        try:
            entry = json.loads(line)
        except ValueError:
            raise StoreError(
                f"{path}: line {number} is damaged", hint="take that line out and resume the study"
            ) from None
        if "merged" in entry:
            yield from entry["merged"]
        else:
            yield entry


def _told(error: OSError, path: Path) -> StoreError:
    if error.errno in FULL:
        return DiskFull(
            f"no space is left for results in {path.parent}",
            hint=f"free some space, then go on with `tunnelmark run --resume {path.parent}`; no finished trial is lost",
        )
    return StoreError(f"{path} cannot be written: {error.strerror}", hint="check the folder's permissions")
