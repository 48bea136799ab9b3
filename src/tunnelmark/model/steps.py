"""Describes as plain data what is done on a node: files, commands and daemons, and the conditions to wait for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath


@dataclass(frozen=True, slots=True)
class UdpPort:
    """The condition that a UDP socket is bound to `port` on the node."""

    port: int

    def __str__(self) -> str:
        return f"a socket at UDP port {self.port}"


@dataclass(frozen=True, slots=True)
class TcpPort:
    """The condition that a TCP socket listens on `port` on the node."""

    port: int

    def __str__(self) -> str:
        return f"a socket that listens at TCP port {self.port}"


@dataclass(frozen=True, slots=True)
class Interface:
    """The condition that the node has a network interface of that name."""

    name: str

    def __str__(self) -> str:
        return f"the interface {self.name}"


@dataclass(frozen=True, slots=True)
class UnixSocket:
    """The condition that the Unix socket at `path` accepts a connection (its file alone proves nothing)."""

    path: PurePosixPath

    def __str__(self) -> str:
        return f"a socket that accepts connections at {self.path}"


@dataclass(frozen=True, slots=True)
class LogMatch:
    """The condition that a daemon's log matches `pattern` (a regular expression, MULTILINE).

    The daemon is the one that has this condition as its `ready`.
    """

    pattern: str

    def __str__(self) -> str:
        return f"a line in its log that matches {self.pattern!r}"


ReadyWhen = UdpPort | TcpPort | Interface | UnixSocket | LogMatch


@dataclass(frozen=True, slots=True)
class File:
    """A file written to a node, with its folders, before any step; mode 0600 unless the driver sets another.

    `content` is its text. If `from_staging` is not empty, a file of the staging folder is copied instead:
    `from_staging` is its path in that folder, where the commands of `Deployment.staging` have made the file.
    """

    node: str
    path: PurePosixPath
    content: str = field(default="", repr=False)
    from_staging: str = ""
    mode: int = 0o600


@dataclass(frozen=True, slots=True)
class Command:
    """A command on a node that must end with exit code 0 before the next phase of `Deployment.phases` begins."""

    node: str
    argv: tuple[str, ...]
    stdin: str = field(default="", repr=False)
    timeout: float = 20.0  # seconds that it may take


@dataclass(frozen=True, slots=True)
class CopyFile:
    """Copies a text file from the node `source` to another node: an invitation, a key, an address.

    A command or a daemon of the node `source` makes the file, and the copying waits until the file exists. An operator
    would carry such a file from machine to machine.
    """

    source: str
    path: PurePosixPath
    node: str  # the node that gets the file
    to: PurePosixPath
    mode: int = 0o600


@dataclass(frozen=True, slots=True)
class Daemon:
    """A process that runs as long as the deployment, in the foreground; it logs to stdout and stderr.

    The deployment's next phase (`Deployment.phases`) begins when the condition `ready` is true (at once if None); that
    does not prove that the VPN works.
    `control`: True for the VPN's control service (a control server, a supernode), through which nodes find each other,
    but which carries none of their data.
    """

    node: str
    name: str
    argv: tuple[str, ...]
    ready: ReadyWhen | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    control: bool = False


@dataclass(frozen=True, slots=True)
class CommandSucceeds:
    """A command that is run again and again until it ends with exit code 0. It must only look, and change nothing.

    In `Deployment.converged` it shows that the VPN reached the path it keeps. As a step it delays the next phase.
    """

    node: str
    argv: tuple[str, ...]


Step = Command | Daemon | CopyFile | CommandSucceeds
