"""Puts up a way through an emulator of others, as its makers ship it: rattan and Mahimahi's mm-delay.

Neither is part of the project. A program is what its variable names, else what stands on PATH; where there is none, that
is said. Both join a namespace of their own making with the one they are started in, which is node `b` here.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from _emulators_ways import Way, at, descendants, links, namespace, running, said, until, widen

RATTAN, MM_DELAY, MM_ROOT = "TUNNELMARK_RATTAN", "TUNNELMARK_MM_DELAY", "TUNNELMARK_MM_ROOT"
IDLE = ["sleep", "infinity"]  # what runs at the far end and holds its namespace
NOBODY = 65534  # Mahimahi refuses to be started by root
LOCKS = Path("/tmp/rattan")  # where rattan locks addresses; locks of a killed rattan stay


def named(variable: str, program: str) -> str | None:
    """What the variable names, else what is on PATH."""
    if (path := os.environ.get(variable)) is not None and not os.access(path, os.X_OK):
        raise SystemExit(f"error: {variable} names {path}, which is no program")
    return path or shutil.which(program)


def _far(process: subprocess.Popen[Any]) -> int:
    """The idle process at the far end, once it is in another network namespace than the emulator."""
    own = os.stat(f"/proc/{process.pid}/ns/net").st_ino
    for pid, name in descendants(process.pid).items():
        if name == IDLE[0]:
            with contextlib.suppress(OSError):
                if os.stat(f"/proc/{pid}/ns/net").st_ino != own:
                    return pid
    return 0


def _end(pid: int) -> tuple[str, str]:
    """The interface besides loopback that is up and has an IPv4 address, and the address."""
    for link in links(pid):
        for address in link["addr_info"]:
            if "UP" in link["flags"] and link["ifname"] != "lo" and address["family"] == "inet":
                return link["ifname"], address["local"]
    return "", ""


@contextlib.contextmanager
def _joined(argv: list[str]) -> Iterator[Way]:
    """The emulator is started in namespace `b`; `a` is where it runs its command."""
    with namespace() as b, tempfile.TemporaryFile() as complaints:
        said(
            at(b, ["sh", "-c", "echo 1 >/proc/sys/net/ipv4/ip_forward"])
        )  # Mahimahi asks for it; rattan has no use for it
        with running(at(b, argv), stdout=complaints, stderr=complaints, stdin=subprocess.DEVNULL) as process:
            try:
                a = until(f"{argv[0]} runs its command", lambda: _far(process), process)
                until(f"{argv[0]} has addressed both ends", lambda: _end(a)[0] and _end(b)[0], process)
            except RuntimeError as error:
                complaints.seek(0)
                raise RuntimeError(f"{error}: {complaints.read().decode(errors='replace')}") from None
            widen(a)
            theirs = tuple(pid for pid, name in descendants(process.pid).items() if name != IDLE[0])
            (device_a, address_a), (device_b, address_b) = _end(a), _end(b)
            yield Way(a, b, device_a, device_b, address_a, address_b, theirs)


def rattan(program: str, delay_ms: float) -> contextlib.AbstractContextManager[Way]:
    """rattan's `link`: without a delay it has no cell, else a delay cell for each direction."""
    delays = [f"--{way}link-delay={delay_ms:g}ms" for way in ("up", "down")] if delay_ms else []
    return _joined([program, "link", *delays, "--", *IDLE])


def rattan_version(program: str) -> str:
    return said([program, "--version"]).splitlines()[0]


def mm_delay(program: str, delay_ms: float) -> contextlib.AbstractContextManager[Way]:
    """Mahimahi's mm-delay, by a user other than root; within the root that TUNNELMARK_MM_ROOT names, if it does."""
    assert delay_ms == int(delay_ms), "Mahimahi knows whole milliseconds"
    user = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    if (root := os.environ.get(MM_ROOT)) is not None:
        user = ["chroot", f"--userspec={NOBODY}:{NOBODY}", root]
    return _joined([*user, program, f"{delay_ms:g}", *IDLE])


def mm_delay_version() -> str:
    """As Debian says, for the program does not."""
    query = ["dpkg-query", "-W", "-f=${Version}", "mahimahi"]
    done = subprocess.run([*_root(), *query], check=False, capture_output=True, text=True)
    return f"mahimahi {done.stdout or 'of unknown version'}"


def _root() -> list[str]:
    root = os.environ.get(MM_ROOT)
    return ["chroot", root] if root is not None else []


def find_mm_delay() -> str | None:
    if (root := os.environ.get(MM_ROOT)) is None:
        return named(MM_DELAY, "mm-delay")
    program = os.environ.get(MM_DELAY, "/usr/bin/mm-delay")  # within that root
    return program if (Path(root) / program.lstrip("/")).exists() else None


def settle() -> None:
    """What both need of the mount namespace, which must be the caller's own: named namespaces, locks, devices."""
    said(["mount", "-t", "tmpfs", "tmpfs", "/run"])
    LOCKS.mkdir(exist_ok=True)
    said(["mount", "-t", "tmpfs", "tmpfs", str(LOCKS)])
    if (root := os.environ.get(MM_ROOT)) is not None:
        for folder in ("/proc", "/dev"):
            said(["mount", "--rbind", folder, root + folder])
