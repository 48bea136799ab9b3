"""Turns a forked process into the first process of a node: namespaces, private folders, host name.

A node has its own network, mounts, host name, IPC and process IDs. `/run` and `/tmp` are empty, except for the folders
with the lab's programs (see `shared_files`), which are there read-only under their names on the host. `/etc` and
`/var/lib` begin with the host's content, but changes stay within the node; a name server is not available. `/proc` and
`/sys` show the node only.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import stat
from collections.abc import Collection, Iterable, Mapping, Sequence

from tunnelmark.linux import syscalls as sys

_PRIVATE = ("/run", "/tmp")
_VAR_RUN = "/var/run"  # mostly a link to /run
_COPY_ON_WRITE = ("/etc", "/var/lib")
_RESOLVER = "/etc/resolv.conf"
_STORE = "/run/.lab"  # upper layers of the copy-on-write folders; hidden from the node's programs


def leave_host(monotonic: int = 0) -> None:
    """Leave the host's namespaces; children forked from now on are in the node.

    Their CLOCK_MONOTONIC shows `monotonic` nanoseconds more than the host's. OSError if the kernel cannot do that.
    """
    if monotonic:
        sys.shift_monotonic(monotonic)
    sys.unshare(sys.NEWNET | sys.NEWNS | sys.NEWUTS | sys.NEWIPC | sys.NEWPID)


def become_host(name: str, sysctls: Mapping[str, str], seen: Sequence[str] = ()) -> dict[str, str]:
    """Make this process's namespaces look like a host; return the sysctls that were refused, each with the reason.

    The paths `seen`, below private folders, stay readable and executable under their names, but cannot be changed.
    """
    socket.sethostname(name)
    sys.own_mounts()
    held = [(path, os.open(path, os.O_PATH | os.O_CLOEXEC)) for path in seen if os.path.exists(path)]
    for folder in private():
        _empty(folder)
    for path, file in held:
        _show(path, file)
        os.close(file)
    for folder in _COPY_ON_WRITE:
        _shield(folder)
    _without_name_server()
    sys.mount("proc", "/proc", "proc", sys.MS_NOSUID | sys.MS_NODEV | sys.MS_NOEXEC)
    sys.mount("sysfs", "/sys", "sysfs", sys.MS_NOSUID | sys.MS_NODEV | sys.MS_NOEXEC)
    os.makedirs("/run/lock", exist_ok=True)
    return {key: refusal for key, value in sysctls.items() if (refusal := _sysctl(key, value))}


def private() -> tuple[str, ...]:
    """Return the folders of which every node has its own."""
    return _PRIVATE if os.path.islink(_VAR_RUN) else (*_PRIVATE, _VAR_RUN)


def forget(keep: Collection[str]) -> None:
    """Remove what the node's programs have written. Called on the node.

    In the private folders, all is removed but `keep` (names directly below /run) and the host's files that are shown
    there. A file or folder directly in /var/lib is removed as a whole if the programs wrote to it.
    """
    for folder in private():
        names = (name for name in os.listdir(folder) if not (folder == "/run" and (name in keep or name[0] == ".")))
        _remove((os.path.join(folder, name) for name in names), os.lstat(folder).st_dev)
    with contextlib.suppress(FileNotFoundError):  # no overlayfs: nothing could be written there
        for name in os.listdir(_upper("/var/lib")):
            path = os.path.join("/var/lib", name)
            if os.path.isdir(path) and not os.path.islink(path):
                shutil.rmtree(path)
            elif os.path.lexists(path):  # else it is the sign that it was removed
                os.unlink(path)


def _remove(paths: Iterable[str], device: int) -> None:
    """Remove files and folders of one file system, but not what is mounted among them: that belongs to others."""
    for path in paths:
        if (found := os.lstat(path)).st_dev != device:
            continue
        if not stat.S_ISDIR(found.st_mode):
            os.unlink(path)
            continue
        _remove([entry.path for entry in os.scandir(path)], device)
        with contextlib.suppress(OSError):  # a place of the host is in it
            os.rmdir(path)


def _show(path: str, file: int) -> None:
    """Show a file or folder of the host, which is open as `file`, at its path in a private folder, read-only."""
    source = f"/proc/self/fd/{file}"
    if os.path.isdir(source):
        os.makedirs(path, exist_ok=True)
    else:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
    sys.mount(source, path, "", sys.MS_BIND | sys.MS_REC)
    kept = os.statvfs(path).f_flag & (os.ST_NOSUID | os.ST_NODEV | os.ST_NOEXEC)  # the same bits as mount(2)'s
    sys.mount("", path, "", sys.MS_BIND | sys.MS_REMOUNT | sys.MS_RDONLY | kept)


def _upper(folder: str) -> str:
    return os.path.join(_STORE, folder.strip("/").replace("/", "-"), "upper")


def _empty(folder: str) -> None:
    sys.mount("tmpfs", folder, "tmpfs", sys.MS_NOSUID | sys.MS_NODEV, "mode=1777" if folder == "/tmp" else "mode=755")


def _shield(folder: str) -> None:
    upper = _upper(folder)
    work = os.path.join(os.path.dirname(upper), "work")
    os.makedirs(upper, mode=0o755)
    os.makedirs(work, mode=0o700)
    try:
        sys.mount("overlay", folder, "overlay", 0, f"lowerdir={folder},upperdir={upper},workdir={work}")
    except OSError:  # no overlayfs: the node then sees the host's folder but cannot change it
        sys.mount(folder, folder, "", sys.MS_BIND | sys.MS_REC)
        sys.mount("", folder, "", sys.MS_BIND | sys.MS_REMOUNT | sys.MS_RDONLY)


def _without_name_server() -> None:
    """Make every name unknown at once: the host's name server is out of reach here.

    How long a program would wait for it depends on the host and the topology: NetBird's management server asks for a
    file of its makers before it starts, and was 20 s late behind a router.
    """
    with contextlib.suppress(OSError):  # without overlayfs the host's file is seen, and cannot be changed
        os.unlink(_RESOLVER)
        with open(_RESOLVER, "w") as file:
            file.write("# a node of a lab knows no name server\nnameserver 127.0.0.1\noptions attempts:1\n")


def _sysctl(key: str, value: str) -> str:
    try:
        with open("/proc/sys/" + key.replace(".", "/"), "w") as file:
            file.write(value)
    except OSError as error:
        return os.strerror(error.errno or 0)
    return ""
