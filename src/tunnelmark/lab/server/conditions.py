"""Checks conditions on a node that the next step waits for: a bound port, an interface, a file, a socket that answers.

A condition travels as a JSON object `{"kind": ..., ...}` and is checked inside the node:

    udp-port      port    a UDP socket is bound to this port
    tcp-port      port    a TCP socket listens on this port
    interface     name    the interface exists
    file          path    the file exists and is not empty
    unix-socket   path    the socket accepts connections
"""

from __future__ import annotations

import os
import socket
from typing import Any

_LISTEN = "0A"  # TCP_LISTEN in /proc/net/tcp (proc_pid_net(5))


def holds(condition: dict[str, Any]) -> bool:
    """Return whether the condition is true on this node now; ValueError if its kind is unknown."""
    match condition["kind"]:
        case "udp-port":
            return any(_bound(f"/proc/net/{table}", condition["port"], None) for table in ("udp", "udp6"))
        case "tcp-port":
            return any(_bound(f"/proc/net/{table}", condition["port"], _LISTEN) for table in ("tcp", "tcp6"))
        case "interface":
            return os.path.exists(f"/sys/class/net/{condition['name']}")
        case "file":
            return _filled(condition["path"])
        case "unix-socket":
            return _accepts(condition["path"])
    raise ValueError(f"unknown condition {condition['kind']!r}")


def _bound(table: str, port: int, state: str | None) -> bool:
    try:
        with open(table) as file:
            rows = file.readlines()[1:]
    except FileNotFoundError:  # a kernel without IPv6
        return False
    wanted = f":{port:04X}"
    for row in rows:
        fields = row.split()
        if fields[1].endswith(wanted) and (state is None or fields[3] == state):
            return True
    return False


def _filled(path: str) -> bool:
    try:
        return os.stat(path).st_size > 0
    except OSError:
        return False


def _accepts(path: str) -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        probe.settimeout(1)
        try:
            probe.connect(path)
        except OSError:
            return False
    return True
