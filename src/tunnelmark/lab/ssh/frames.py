"""Messages with data behind them, as bytes of one connection. Pure."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Mapping
from typing import Any

MARK = b"\0tunnelmark relay 1\n"
"""What a relay says first: before it, a shell's start-up files may have printed something."""

PIECE = 1 << 17
"""Bytes of a file that travel in one frame."""

_HEAD = struct.Struct("!II")  # bytes of the message and of the data
_MOST = 1 << 24  # bytes of either


def pack(message: Mapping[str, Any], data: bytes = b"") -> bytes:
    """A message, which is a JSON object, and its data."""
    text = json.dumps(message).encode()
    return _HEAD.pack(len(text), len(data)) + text + data


class Unpacker:
    """Takes bytes as they come and gives whole frames."""

    def __init__(self) -> None:
        self._held = bytearray()

    def feed(self, data: bytes) -> Iterator[tuple[dict[str, Any], bytes]]:
        """Return the frames that are complete with these bytes; ValueError for a frame larger than any that a relay
        sends.
        """
        self._held += data
        while len(self._held) >= _HEAD.size:
            text, more = _HEAD.unpack_from(self._held)
            if max(text, more) > _MOST:
                raise ValueError(f"a frame of {text} and {more} bytes")
            if len(self._held) < _HEAD.size + text + more:
                return
            begin, middle = _HEAD.size, _HEAD.size + text
            message = json.loads(bytes(self._held[begin:middle]))
            content = bytes(self._held[middle : middle + more])
            del self._held[: middle + more]
            yield message, content
