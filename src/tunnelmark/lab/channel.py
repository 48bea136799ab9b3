"""Sends messages between the processes of a lab: JSON objects with open files, over Unix SEQPACKET sockets.

A message keeps its boundaries, and arrives whole or not at all. If one side dies, the other reads an end of file, so
nothing else is needed to know that a peer is gone.
"""

from __future__ import annotations

import array
import json
import os
import socket
import struct
from collections.abc import Sequence
from typing import Any

LIMIT = 150_000  # bytes of one message; below Linux's default send buffer of 212,992
_MAX_FDS = 253  # SCM_MAX_FD of <linux/net/scm.h>: as many as the kernel passes at once
_UCRED = struct.Struct("3i")  # pid, uid, gid: struct ucred of unix(7)


def pair() -> tuple[socket.socket, socket.socket]:
    """Return the two ends of a new channel; both are closed on exec."""
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)


def send(sock: socket.socket, message: dict[str, Any], fds: Sequence[int] = ()) -> None:
    """Send one message with copies of open files; ValueError if it is larger than LIMIT."""
    data = json.dumps(message).encode()
    if len(data) > LIMIT:
        raise ValueError(f"message of {len(data)} bytes is larger than {LIMIT}")
    socket.send_fds(sock, [data], list(fds))


def receive(sock: socket.socket) -> tuple[dict[str, Any], list[int], int | None] | None:
    """Receive one message: return its content, its file descriptors, and the sender's PID in our PID namespace.

    The caller must close the files. The PID is None unless SO_PASSCRED is set on the socket. At the end of file, return
    None in place of the three. BlockingIOError if the socket is non-blocking and no message has come.
    """
    space = socket.CMSG_SPACE(_MAX_FDS * array.array("i").itemsize) + socket.CMSG_SPACE(_UCRED.size)
    try:
        data, ancillary, _, _ = sock.recvmsg(LIMIT + 1, space, socket.MSG_CMSG_CLOEXEC)
    except ConnectionResetError:
        return None
    fds: list[int] = []
    pid = None
    for level, kind, content in ancillary:
        if level != socket.SOL_SOCKET:
            continue
        if kind == socket.SCM_RIGHTS:
            held = array.array("i")
            held.frombytes(content[: len(content) - len(content) % held.itemsize])
            fds.extend(held)
        elif kind == socket.SCM_CREDENTIALS:
            pid = _UCRED.unpack(content)[0]
    if not data:
        for fd in fds:
            os.close(fd)
        return None
    return json.loads(data), fds, pid
