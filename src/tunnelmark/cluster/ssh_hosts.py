"""Runs workers on hosts that OpenSSH reaches. There they listen on the loopback address only, and no file is copied.

Each connection forwards the worker's connections to our scheduler and back (`-R` and `-L`), and gives the worker its
keys on standard input. When the connection or this command ends, that input ends, and the worker with it. Host keys,
users, agents and jump hosts are OpenSSH's own matter.
"""

from __future__ import annotations

import json
import shlex
import socket
import subprocess
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from tunnelmark.cluster import certificates
from tunnelmark.errors import UsageError
from tunnelmark.lab.ssh.ssh_options import ALIVE, BATCH

if TYPE_CHECKING:
    from distributed.security import Security

LACKS = "lacks: "
"""A worker's line on standard error that begins so says why it cannot join; the command at the other end shows it."""

_SAID = 50  # lines that are kept of ssh's and a worker's output
_RETRY = 5.0  # seconds until a host whose connection has ended is tried again
_OPTIONS = ("-T", *BATCH, "-o", "ExitOnForwardFailure=yes", *ALIVE)


@dataclass(frozen=True, slots=True)
class Host:
    """A host on which a worker is started, from one line of a file of hosts.

    `ssh`: the arguments of ssh(1), of which the last one is the destination. `command`: the words that start tunnelmark
    on the host.
    """

    ssh: tuple[str, ...]
    command: tuple[str, ...] = ("tunnelmark",)

    @property
    def name(self) -> str:
        """The destination of ssh, such as `user@host`."""
        return self.ssh[-1]


def read(file: Path) -> tuple[Host, ...]:
    """Return the hosts of a file, one in each line; `#` begins a comment.

    UsageError if the file cannot be read or names no host, if a line has no destination, or if two have the same one.
    """
    found: list[Host] = []
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{file} cannot be read: {error}", hint="name a file with one host a line") from None
    for number, line in enumerate(lines, start=1):
        try:
            words = shlex.split(line, comments=True)
        except ValueError as error:
            raise UsageError(f"{file}, line {number}: {error}", hint="quote as in a shell") from None
        if not words:
            continue
        split = words.index("--") if "--" in words else len(words)
        host = Host(tuple(words[:split]), tuple(words[split + 1 :]) or ("tunnelmark",))
        if not host.ssh or host.name.startswith("-"):
            raise UsageError(f"{file}, line {number} names no host", hint="such as `user@host` or `-p 2222 user@host`")
        found.append(host)
    if not found:
        raise UsageError(f"{file} names no host", hint="one a line, such as `user@host`")
    names = [host.name for host in found]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise UsageError(f"{file} names {twice[0]} twice", hint="a machine measures one block at a time")
    return tuple(found)


@contextmanager
def workers(
    hosts: tuple[Host, ...], scheduler: str, security: Security, said: Callable[[str, str], object]
) -> Iterator[None]:
    """Run a worker on each host during the body of the `with` statement.

    If a host cannot be reached, or its worker ends, another try begins after 5 s. `said` is called with the host's name
    and the reason when that happens, or when the worker cannot connect to the scheduler.
    """
    with ExitStack() as stack:
        for host in hosts:
            stack.enter_context(_Connection(host, scheduler, security, said))
        yield


class _Connection:
    """Runs one host's worker in a thread: it connects, and connects again when the connection has ended."""

    def __init__(self, host: Host, scheduler: str, security: Security, said: Callable[[str, str], object]) -> None:
        self._host, self._scheduler, self._said = host, scheduler, said
        self._keys = json.dumps(keys(security)) + "\n"
        self._ends = threading.Event()
        self._process: subprocess.Popen[str] | None = None
        self._thread = threading.Thread(target=self._keep, daemon=True)

    def __enter__(self) -> _Connection:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.set()
        if self._process is not None:
            self._process.terminate()
        self._thread.join(_RETRY)

    def _keep(self) -> None:
        while not self._ends.is_set():
            with subprocess.Popen(
                self._line(),
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
                errors="replace",
                start_new_session=True,  # Ctrl-C is ours
            ) as self._process:
                assert self._process.stdin is not None and self._process.stderr is not None
                try:
                    self._process.stdin.write(self._keys)
                    self._process.stdin.flush()
                except OSError:  # it has ended, and says why
                    pass
                lines = self._heard(self._process.stderr)
            if not self._ends.is_set():
                self._said(self._host.name, reason(lines) or f"ssh ended with code {self._process.returncode}")
                self._ends.wait(_RETRY)

    def _heard(self, stderr: Iterable[str]) -> Sequence[str]:
        """Read lines until ssh and the worker end; return the last ones. A line with `LACKS` is reported at once."""
        lines: deque[str] = deque(maxlen=_SAID)
        for line in map(str.strip, stderr):
            if line.startswith(LACKS) and not self._ends.is_set():
                self._said(self._host.name, line.removeprefix(LACKS))
            elif line:
                lines.append(line)
        return [*lines]

    def _line(self) -> list[str]:
        with socket.socket() as tried:  # the same number on both sides, as a worker says itself where it listens
            tried.bind(("127.0.0.1", 0))
            port = tried.getsockname()[1]
        there = urlsplit(self._scheduler)
        back = f"127.0.0.1:{there.port}:{there.hostname}:{there.port}"
        asked = ["cluster", "worker", f"tls://127.0.0.1:{there.port}", "--name", self._host.name]
        asked += ["--listen", f"127.0.0.1:{port}", "--keys-from-input"]
        forward = ("-R", back, "-L", f"127.0.0.1:{port}:127.0.0.1:{port}")
        return ["ssh", *_OPTIONS, *forward, *self._host.ssh, shlex.join([*self._host.command, *asked])]


def reason(lines: Sequence[str]) -> str:
    """Return why a connection to a host has ended.

    `lines`: what ssh and the worker printed on standard error. The result is the message of the last line
    `error: ...`, with the text of the next `hint: ...` in brackets. Without an error it is the last line, or "" if
    there are no lines.
    """
    places = [place for place, line in enumerate(lines) if line.startswith("error: ")]
    if not places:
        return lines[-1] if lines else ""
    message = lines[places[-1]].removeprefix("error: ")
    hints = [line.removeprefix("hint: ") for line in lines[places[-1] :] if line.startswith("hint: ")]
    return f"{message} ({hints[0]})" if hints else message


def keys(security: Security) -> dict[str, str]:
    """Return the part of a cluster's keys that a worker needs, as PEM texts: `ca`, `certificate`, `key`."""
    held: Any = security
    return {"ca": held.tls_ca_file, "certificate": held.tls_worker_cert, "key": held.tls_worker_key}


def security(line: str) -> Security:
    """Return Dask's TLS settings from a line of JSON with the result of `keys`."""
    said = json.loads(line)
    return certificates.settings(said["ca"], said["certificate"], said["key"])
