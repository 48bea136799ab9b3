"""OpenSSH servers of our own, each with its own network, /run, CLOCK_MONOTONIC and keys, as another host has them; a client reaches one by its ProxyCommand."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType

SERVER = shutil.which("sshd", path="/usr/sbin:/usr/local/sbin:/usr/bin")


class SshHost:
    """A host of that name with a server that takes one key; `options` are what a client needs to reach it.

    It was started `uptime` seconds before this machine, by its CLOCK_MONOTONIC. What is said to it, and what it says, arrives `far` seconds
    later.
    """

    def __init__(self, folder: Path, name: str, uptime: int = 0, far: float = 0.0) -> None:
        folder.mkdir(mode=0o700)
        self._far = [sys.executable, str(Path(__file__).with_name("far.py")), str(far)] if far else []
        self.name, self._folder, self._uptime = name, folder, uptime
        for each in ("host", "user"):
            _make_key(folder / each)
        (folder / "authorized").write_bytes((folder / "user.pub").read_bytes())
        self._know(folder / "host.pub")

    @property
    def options(self) -> Sequence[str]:
        """What ssh(1) takes, the destination last."""
        assert SERVER is not None
        settings = {
            "HostKey": self._folder / "host",
            "AuthorizedKeysFile": self._folder / "authorized",
            "PasswordAuthentication": "no",
            "PermitRootLogin": "prohibit-password",
            "StrictModes": "no",
            "UsePAM": "no",
            # bash(1) reads a start-up file in HOME, and who runs the tests may have slow ones. What a restart leaves in TMPDIR goes with the host.
            "SetEnv": f"HOME={self._folder} TMPDIR={self._folder}",
        }
        server = [SERVER, "-i", "-f", "/dev/null", *(f"-o{key}={value}" for key, value in settings.items())]
        reached = shlex.join([*self._far, "nsenter", "-t", str(self.pid), "--net", "--mount", "--time", *server])
        known, key = self._folder / "known", self._folder / "user"
        return (
            *("-F", "none", "-i", str(key), "-o", "IdentitiesOnly=yes"),
            *("-o", f"UserKnownHostsFile={known}", "-o", f"ProxyCommand={reached}", f"root@{self.name}"),
        )

    @property
    def pid(self) -> int:
        """A process of the host, which lasts as long as the host does."""
        return self._first

    @property
    def own(self) -> tuple[int, int]:
        """The processes that are the host itself."""
        return self._network.pid, self._first

    def run(self, *words: str) -> str:
        """What a command prints that runs in the host's network."""
        line = ["nsenter", "-t", str(self.pid), "--net", "--mount", "--time", *words]
        return subprocess.run(line, check=True, capture_output=True, text=True).stdout

    def change_key(self) -> None:
        """Have the client know another host key than the server's."""
        _make_key(self._folder / "other")
        self._know(self._folder / "other.pub")

    def __enter__(self) -> SshHost:
        # Only children of the process that unshares it have the new clock.
        begin = "mount -t tmpfs tmpfs /run && mkdir -m 755 /run/sshd && ip link set lo up && { sleep infinity & echo $!; wait; }"
        line = ["unshare", "--net", "--mount", "--propagation", "private", "--time", "--monotonic", str(self._uptime)]
        self._network = subprocess.Popen([*line, "sh", "-c", begin], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        assert self._network.stdout is not None
        self._first = int(self._network.stdout.readline())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.cut()
        self._network.kill()
        os.kill(self._first, signal.SIGKILL)
        self._network.wait()
        assert self._network.stdout is not None
        self._network.stdout.close()

    def cut(self) -> None:
        """Kill everything on the host, as a restart does."""
        for process in self.processes():
            with suppress(OSError):
                os.kill(int(process.name), signal.SIGKILL)

    def processes(self) -> Iterator[Path]:
        """The folder in /proc of each process on the host that is not the host itself: a lab server leaves its network, but keeps its clock."""
        namespaces = {os.readlink(f"/proc/{self.pid}/ns/{kind}") for kind in ("net", "time")}
        for folder in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                own = {os.readlink(folder / "ns" / kind) for kind in ("net", "time")}
                if own & namespaces and int(folder.name) not in self.own:
                    yield folder

    def _know(self, key: Path) -> None:
        kind, value, *_ = key.read_text().split()
        (self._folder / "known").write_text(f"{self.name} {kind} {value}\n")


def _make_key(file: Path) -> None:
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(file)], check=True)
