"""Builds the first file system of a guest: a newc archive with busybox, modules, and two scripts that are its init.
Pure.

The format is that of cpio(5), "newc", which the kernel's own documentation (driver-api/early-userspace/buffer-format)
asks for. It is written here so that no cpio is needed and the same input gives the same bytes.
"""

from __future__ import annotations

import shlex
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

GUEST_FOLDER = "/run/tunnelmark-vm"  # in the guest; a tmpfs
HOST_TAG, SHARE_TAG = "host", "share"  # mount tags of the two 9p folders
CONTROL = "/dev/ttyS1"  # QEMU's second serial port


@dataclass(frozen=True, slots=True)
class Entry:
    """A file or a folder of the archive. The `mode` marks a folder, and a folder has no content."""

    path: str
    content: bytes = b""
    mode: int = stat.S_IFREG | 0o755


def archive(entries: Sequence[Entry]) -> bytes:
    """Return the entries as a newc archive; a folder must come before its content."""
    parts = [_record(number, entry) for number, entry in enumerate(entries, 1)]
    return b"".join([*parts, _record(0, Entry("TRAILER!!!", mode=0))])


def _record(inode: int, entry: Entry) -> bytes:
    name = entry.path.encode() + b"\0"
    # inode mode uid gid links mtime size, device numbers (2 + 2), length of the name, checksum
    fields = (inode, entry.mode, 0, 0, 1, 0, len(entry.content), 0, 0, 0, 0, len(name), 0)
    header = b"070701" + b"".join(b"%08X" % field for field in fields)
    return _padded(header + name) + _padded(entry.content)


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 4)


def build(
    busybox: bytes, modules: Mapping[str, bytes], release: str, module_folder: str, share: str, commands: str
) -> bytes:
    """Return the archive for one guest.

    `modules` (content by file name) are loaded in their order. `module_folder` is the host's folder with the kernel's
    modules, like `/lib/modules/RELEASE`; `share` is the folder that the guest may write. Both keep their path in the
    guest. `commands` is the folder in the share from which the guest's agent takes its commands.
    """
    folders = ("bin", "modules", "proc", "sys", "dev", "host", "ram", "new")
    loads = "\n".join(f"insmod /modules/{name}" for name in modules)
    first = _FIRST.format(
        loads=loads,
        release=shlex.quote(release),
        module_folder=shlex.quote(module_folder),
        share=shlex.quote(share),
        folder=GUEST_FOLDER,
        host_tag=HOST_TAG,
        share_tag=SHARE_TAG,
    )
    second = _SECOND.format(folder=GUEST_FOLDER, control=CONTROL, commands=shlex.quote(commands))
    return archive(
        [
            *(Entry(folder, mode=stat.S_IFDIR | 0o755) for folder in folders),
            Entry("bin/busybox", busybox),
            *(Entry(f"modules/{name}", content) for name, content in modules.items()),
            Entry("agent", second.encode()),
            Entry("init", first.encode()),
        ]
    )


# The host's files are cached without asking again (`loose`): they do not change for this purpose, and Python starts in
# seconds instead of a minute. Results are not cached, so that they are on the host when a command has ended. The node of
# tun is there before its module, which the kernel loads when the node is opened; elsewhere udev makes such nodes.
_FIRST = """\
#!/bin/busybox sh
set -e
/bin/busybox --install -s /bin
export PATH=/bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
{loads}
mount -t 9p -o trans=virtio,version=9p2000.L,ro,cache=loose,msize=512000 {host_tag} /host
mount -t tmpfs -o mode=755 ram /ram
mkdir /ram/upper /ram/work
mount -t overlay -o lowerdir=/host,upperdir=/ram/upper,workdir=/ram/work root /new
for part in proc sys dev; do mount -o move /$part /new/$part; done
mkdir -p /new/dev/pts /new/dev/shm
mount -t devpts -o mode=620,ptmxmode=666 pts /new/dev/pts
mount -t tmpfs -o mode=1777 shm /new/dev/shm
mount -t tmpfs -o mode=755 run /new/run
mount -t cgroup2 groups /new/sys/fs/cgroup
for number in 0 1 2; do
    ln -sf /proc/self/fd/$number /new/dev/$(echo stdin stdout stderr | cut -d' ' -f$((number + 1)))
done
ln -sfn /proc/self/fd /new/dev/fd
mkdir -p /new/dev/net
mknod -m 666 /new/dev/net/tun c 10 200
mkdir -p /new{folder} /new/lib/modules
mount -t tmpfs -o mode=755 modules /new/lib/modules
ln -s {module_folder} /new/lib/modules/{release}
mkdir -p /new{share}
mount -t 9p -o trans=virtio,version=9p2000.L,msize=512000 {share_tag} /new{share}
cp /bin/busybox /agent /new{folder}/
ln -s busybox /new{folder}/modprobe
exec switch_root /new {folder}/busybox sh {folder}/agent
"""

# One line a command in, one line a command out; what a command prints goes to files next to it. Each runs in a session
# of its own and in the background, so that a server may run while a client does. The commands get the host's shell:
# busybox's would run its own applets in place of ip, tc and ping.
_SECOND = """\
busybox={folder}/busybox
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8
echo {folder}/modprobe >/proc/sys/kernel/modprobe
$busybox hostname tunnelmark-vm
$busybox ip link set lo up
$busybox stty -F {control} raw -echo
exec 3<>{control}
echo "ready $($busybox uname -r)" >&3
while read -r word number <&3; do
    case $word in
    run)
        (
            cd {commands}/$number || exit 1
            $busybox setsid /bin/sh ./command </dev/null >stdout 2>stderr
            echo "done $number $?" >&3
        ) &
        ;;
    end)
        $busybox poweroff -f
        ;;
    esac
done
"""
