"""What is done on a node, as plain data: files, commands and daemons of VPNs and workloads, and the conditions they wait for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath


@dataclass(frozen=True, slots=True)
class UdpPort:
    """True as soon as a UDP socket is bound to `port` on the node."""

    port: int

    def __str__(self) -> str:
        return f"a socket at UDP port {self.port}"


@dataclass(frozen=True, slots=True)
class TcpPort:
    """True as soon as a TCP socket listens on `port` on the node."""

    port: int

    def __str__(self) -> str:
        return f"a socket that listens at TCP port {self.port}"


@dataclass(frozen=True, slots=True)
class Interface:
    """True as soon as the node has a network interface of that name."""

    name: str

    def __str__(self) -> str:
        return f"the interface {self.name}"


@dataclass(frozen=True, slots=True)
class UnixSocket:
    """True as soon as the Unix socket at `path` accepts a connection (its file alone proves nothing)."""

    path: PurePosixPath

    def __str__(self) -> str:
        return f"a socket that accepts connections at {self.path}"


@dataclass(frozen=True, slots=True)
class LogMatch:
    """True as soon as the daemon's log holds a match of `pattern` (a regular expression, MULTILINE); of its own daemon only."""

    pattern: str

    def __str__(self) -> str:
        return f"a line in its log that matches {self.pattern!r}"


Condition = UdpPort | TcpPort | Interface | UnixSocket | LogMatch


@dataclass(frozen=True, slots=True)
class File:
    """A file on a node, written with its folders before any step; private (0600) unless the driver says otherwise.

    Its content is given here, or is read from the operator's staging folder (`from_staging`, a path relative to it).
    """

    node: str
    path: PurePosixPath
    content: str = field(default="", repr=False)
    from_staging: str = ""
    mode: int = 0o600


@dataclass(frozen=True, slots=True)
class Command:
    """A command that must end with exit code 0 before the next phase begins."""

    node: str
    argv: tuple[str, ...]
    stdin: str = field(default="", repr=False)
    timeout: float = 20.0  # seconds that it may take


@dataclass(frozen=True, slots=True)
class CopyFile:
    """A text file that one node's steps made is handed to another: an invitation, a key, an address.

    It waits for the file. Whatever the operator would carry from machine to machine is carried like this.
    """

    source: str
    path: PurePosixPath
    node: str  # that gets it
    to: PurePosixPath
    mode: int = 0o600


@dataclass(frozen=True, slots=True)
class Daemon:
    """A process kept for the life of the deployment; it runs in the foreground and logs to stdout/stderr.

    `ready` is what the following phases may rely on; it does not prove that the VPN works. `control` says that nodes meet
    through it but that it carries none of their data: a control server, a supernode, a controller.
    """

    node: str
    name: str
    argv: tuple[str, ...]
    ready: Condition | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    control: bool = False


@dataclass(frozen=True, slots=True)
class CommandSucceeds:
    """A command of the VPN's own that ends with 0 once something is true: it is asked again and again until then.

    As `settled` it says that the path is the one that will be kept; as a step it holds the next phase up until then.
    It must only look.
    """

    node: str
    argv: tuple[str, ...]


Step = Command | Daemon | CopyFile | CommandSucceeds
