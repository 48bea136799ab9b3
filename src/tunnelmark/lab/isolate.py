"""Turns a forked process into the first process of a node: namespaces, private folders, host name.

What a node has of its own: network, mounts, host name, IPC, process numbers; `/run` and `/tmp` are
empty, `/etc` and `/var/lib` look like the host's but keep their changes to themselves, and `/proc`
and `/sys` show the node only.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping

from tunnelmark.lab import syscalls as sys

_PRIVATE = ("/run", "/tmp")
_COPY_ON_WRITE = ("/etc", "/var/lib")
_STORE = "/run/.lab"  # upper layers of the copy-on-write folders; hidden from the node's programs


def leave_host() -> None:
    """Leave the host's namespaces; children forked from now on are in the node."""
    sys.unshare(sys.NEWNET | sys.NEWNS | sys.NEWUTS | sys.NEWIPC | sys.NEWPID)


def become_host(name: str, sysctls: Mapping[str, str]) -> dict[str, str]:
    """Give this process's namespaces the looks of a host; returns the sysctls that were refused, and why."""
    socket.sethostname(name)
    sys.own_mounts()
    for folder in _PRIVATE:
        _empty(folder)
    if not os.path.islink("/var/run"):
        _empty("/var/run")
    for folder in _COPY_ON_WRITE:
        _shield(folder)
    sys.mount("proc", "/proc", "proc", sys.MS_NOSUID | sys.MS_NODEV | sys.MS_NOEXEC)
    sys.mount("sysfs", "/sys", "sysfs", sys.MS_NOSUID | sys.MS_NODEV | sys.MS_NOEXEC)
    os.makedirs("/run/lock", exist_ok=True)
    return {key: refusal for key, value in sysctls.items() if (refusal := _sysctl(key, value))}


def _empty(folder: str) -> None:
    sys.mount("tmpfs", folder, "tmpfs", sys.MS_NOSUID | sys.MS_NODEV, "mode=1777" if folder == "/tmp" else "mode=755")


def _shield(folder: str) -> None:
    upper, work = (os.path.join(_STORE, folder.strip("/").replace("/", "-"), part) for part in ("upper", "work"))
    os.makedirs(upper, mode=0o755)
    os.makedirs(work, mode=0o700)
    try:
        sys.mount("overlay", folder, "overlay", 0, f"lowerdir={folder},upperdir={upper},workdir={work}")
    except OSError:  # no overlayfs: the node then sees the host's folder but cannot change it
        sys.mount(folder, folder, "", sys.MS_BIND | sys.MS_REC)
        sys.mount("", folder, "", sys.MS_BIND | sys.MS_REMOUNT | sys.MS_RDONLY)


def _sysctl(key: str, value: str) -> str:
    try:
        with open("/proc/sys/" + key.replace(".", "/"), "w") as file:
            file.write(value)
    except OSError as error:
        return os.strerror(error.errno or 0)
    return ""
