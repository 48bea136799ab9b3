"""Packs messages, with data behind them, into the bytes of one connection, and unpacks them. Pure."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Mapping
from typing import Any

MARK = b"\0tunnelmark relay 1\n"
"""The first words of a relay; a shell's start-up files may have printed something before them."""

PIECE = 1 << 17
"""The largest number of bytes of a file that one frame carries."""

_HEAD = struct.Struct("!II")  # bytes of the message and of the data
_MOST = 1 << 24  # bytes of either


def pack(message: Mapping[str, Any], data: bytes = b"") -> bytes:
    """Return the frame of a message, which is a JSON object, and of its data."""
    text = json.dumps(message).encode()
    return _HEAD.pack(len(text), len(data)) + text + data


class Unpacker:
    """Collects received bytes, and gives whole frames."""

    def __init__(self) -> None:
        self._held = bytearray()

    def feed(self, data: bytes) -> Iterator[tuple[dict[str, Any], bytes]]:
        """Yield each frame (message, data) that these bytes complete. ValueError if a part is longer than 16 MiB."""
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
