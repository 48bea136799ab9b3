"""A scheduler and workers as processes of their own, started by the command as a user starts them, so that they can be killed."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType

from support.command import command, environment

TESTS = Path(__file__).resolve().parents[1]
"""Where workers find what a test has them carry out."""

_PATIENCE = 120.0  # seconds for a process to come up


class ClusterNodes:
    """A scheduler on a port that stays the same, and workers. `apart`: each worker has a host name of its own, and a lock of measurements.

    `keys`: a folder of the cluster's keys.
    """

    def __init__(self, keys: Path | None = None, *, apart: bool = False) -> None:
        self._tls, self._apart = [] if keys is None else ["--tls", str(keys)], apart
        self.port = _free_port()
        self.address = f"{'tcp' if keys is None else 'tls'}://127.0.0.1:{self.port}"
        self.workers: list[subprocess.Popen[bytes]] = []
        self.logs = Path(tempfile.mkdtemp(prefix="tunnelmark-test-"))
        self._count = 0

    def __enter__(self) -> ClusterNodes:
        self.start_scheduler()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in (*self.workers, self.scheduler):
            if process.poll() is None:
                kill(process)
        if kind is not None:
            for log in sorted(self.logs.iterdir()):
                print(f"--- {log.name}\n{log.read_text()[-3000:]}")
        subprocess.run(["rm", "-rf", str(self.logs)], check=True)

    def start_scheduler(self) -> None:
        """Start it; returns when it listens."""
        self.scheduler = self._start("scheduler", "--listen", f"127.0.0.1:{self.port}")
        deadline = time.monotonic() + _PATIENCE
        while time.monotonic() < deadline:
            with socket.socket() as tried:
                if tried.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            assert self.scheduler.poll() is None, "the scheduler has ended"
            time.sleep(0.05)
        raise AssertionError("the scheduler does not listen")

    def add(self) -> subprocess.Popen[bytes]:
        """One more worker, which comes when it comes."""
        name = f"w{self._count + 1}"
        prefix = (
            [
                "unshare",
                "--uts",
                "--mount",
                "sh",
                "-c",
                f'hostname {name}; mount -t tmpfs tmpfs /run/tunnelmark; exec "$@"',
                "sh",
            ]
            if self._apart
            else []
        )
        self.workers.append(self._start("worker", self.address, "--name", name, prefix=prefix))
        return self.workers[-1]

    def _start(self, *arguments: str, prefix: list[str] | None = None) -> subprocess.Popen[bytes]:
        self._count += arguments[0] == "worker"
        log = self.logs / f"{arguments[0]}.{self._count}"
        with log.open("ab") as output:
            return subprocess.Popen(
                [*(prefix or []), *command("cluster", *arguments, *self._tls)],
                env={**environment(), "PYTHONPATH": os.pathsep.join([str(TESTS), environment()["PYTHONPATH"]])},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )


def kill(process: subprocess.Popen[bytes]) -> None:
    """End a process at once, as a machine's failure does."""
    process.send_signal(signal.SIGKILL)
    process.wait()


@contextmanager
def nodes(workers: int) -> Iterator[ClusterNodes]:
    """A scheduler with so many workers, until the end of the block."""
    with ClusterNodes() as made:
        for _ in range(workers):
            made.add()
        yield made


def _free_port() -> int:
    with socket.socket() as tried:
        tried.bind(("127.0.0.1", 0))
        return int(tried.getsockname()[1])
