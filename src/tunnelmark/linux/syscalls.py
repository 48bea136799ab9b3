"""Makes the few Linux system calls that Python 3.11 lacks: for namespaces, mounts, prctl. OSError if one fails."""

from __future__ import annotations

import ctypes
import errno
import os
from pathlib import Path

# <linux/sched.h>
NEWTIME = 0x00000080
NEWNS = 0x00020000
NEWUTS = 0x04000000
NEWIPC = 0x08000000
NEWPID = 0x20000000
NEWNET = 0x40000000

# <linux/mount.h>
MS_RDONLY = 1
MS_NOSUID = 2
MS_NODEV = 4
MS_NOEXEC = 8
MS_REMOUNT = 32
MS_BIND = 4096
MS_REC = 16384
MS_PRIVATE = 1 << 18

_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE = 1, 4  # <linux/prctl.h>
_AT_FDCWD, _RENAME_EXCHANGE = -100, 2  # <fcntl.h>, <linux/fs.h>

_libc = ctypes.CDLL(None, use_errno=True)


def unshare(flags: int) -> None:
    """Leave the namespaces named by `flags`; OSError if unshare(2) fails."""
    _check(_libc.unshare(flags), "unshare")


def shift_monotonic(nanoseconds: int) -> None:
    """Let CLOCK_MONOTONIC show `nanoseconds` more for processes that this one forks from now on (time_namespaces(7)).

    OSError if the kernel lacks time namespaces (before Linux 5.6, or without CONFIG_TIME_NS).
    """
    if not os.path.exists("/proc/self/timens_offsets"):
        raise OSError(errno.ENOSYS, "this kernel has no time namespaces (Linux 5.6), which give all nodes one clock")
    shown = {line.split()[0]: line.split()[1:] for line in Path("/proc/self/timens_offsets").read_text().splitlines()}
    seconds, rest = (int(word) for word in shown["monotonic"])  # offsets are those to the machine's own clock
    wanted = seconds * 10**9 + rest + nanoseconds
    unshare(NEWTIME)
    Path("/proc/self/timens_offsets").write_text(f"monotonic {wanted // 10**9} {wanted % 10**9}\n")


def exchange(one: Path, other: Path) -> None:
    """Swap two paths of one file system in one step; OSError if renameat2(2) fails."""
    _check(_libc.renameat2(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _RENAME_EXCHANGE), "renameat2")


def enter(pid: int, kind: str) -> None:
    """Enter a namespace of another process: `kind` as in /proc/PID/ns (net, mnt, ...)."""
    with open(f"/proc/{pid}/ns/{kind}") as namespace:
        reenter(namespace.fileno())


def reenter(namespace: int) -> None:
    """Enter the namespace that an open file refers to."""
    _check(_libc.setns(namespace, 0), "setns")


def mount(source: str, target: str, kind: str, flags: int = 0, data: str = "") -> None:
    """Mount a file system as mount(2) does. If that fails, the OSError names the target."""
    _check(
        _libc.mount(source.encode(), target.encode(), kind.encode(), ctypes.c_ulong(flags), data.encode()),
        f"mount {kind} on {target}",
    )


def own_mounts() -> None:
    """Keep mounts that are made in this process's mount namespace from now on private to it (mount_namespaces(7))."""
    try:
        mount("", "/", "", MS_REC | MS_PRIVATE)
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
        raise OSError(
            error.errno, "/ is not a mount point, as in a plain chroot: bind the folder to itself first"
        ) from None


def die_with_parent(signal: int) -> None:
    """Have the kernel send `signal` to this process when the thread that made it ends."""
    _check(_libc.prctl(_PR_SET_PDEATHSIG, signal, 0, 0, 0), "prctl")


def own_files_again() -> None:
    """Let this process open its own files in /proc again after it has become another user.

    Until the call, these files belong to root. OSError if prctl(2) fails.
    """
    _check(_libc.prctl(_PR_SET_DUMPABLE, 1, 0, 0, 0), "prctl")


def _check(result: int, what: str) -> None:
    if result != 0:
        error = ctypes.get_errno()
        raise OSError(error, f"{what}: {os.strerror(error)}")
