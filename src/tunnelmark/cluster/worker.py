"""Carries out tasks on a worker, each in a process that ends with the worker: measures a block, or collects facts."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any

from tunnelmark.cluster.tasks import HOST, BlockDone, BlockTask, WorkerFacts, programs_hash
from tunnelmark.errors import LabError, again
from tunnelmark.linux import scratch
from tunnelmark.plan.load import write_inputs
from tunnelmark.record.results import ENVIRONMENT, JOURNAL, PLAN, RAW

MODULE = "tunnelmark.cli.block_run"
REQUEST, ERROR, FACTS, RESULTS = "request.json", "error.json", "facts.json", "results"
"""Names of the files in the folder that the worker and the process of a task share."""

_LOOK = 1.0  # seconds between two checks whether a block's result is still wanted

_lives: set[IO[bytes]] = set()
"""Pipes that the processes of blocks have as input: a process ends when its pipe is closed."""


def stop() -> None:
    """End all blocks that this worker measures now, because their results are not awaited any more."""
    while _lives:
        _lives.pop().close()


def listening(line: Sequence[str], files: Sequence[int] = ()) -> subprocess.CompletedProcess[str]:
    """Run the command `line`, a process that ends when its input ends; return its exit code and output.

    It inherits the file descriptors `files`. Its input ends when this worker ends, or when the scheduler no longer
    wants the result.
    """
    wanted = _wanted()
    theirs, ours = os.pipe2(os.O_CLOEXEC)
    with open(ours, "wb") as life:
        _lives.add(life)
        try:
            try:
                process = subprocess.Popen(
                    line, stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, pass_fds=files
                )
            finally:
                os.close(theirs)
            while True:
                try:
                    output, errors = process.communicate(timeout=_LOOK)
                    return subprocess.CompletedProcess(line, process.returncode, output, errors)
                except subprocess.TimeoutExpired:
                    if not wanted():
                        life.close()
        finally:
            _lives.discard(life)


def _wanted() -> Callable[[], bool]:
    """Return a function that says whether the result of the task that this thread carries out is still wanted.

    If the command is gone or has given the task up, Dask changes the task's state but lets the thread go on.
    """
    from distributed import get_worker

    try:
        here = get_worker()
    except ValueError:  # not in a worker
        return lambda: True
    key = here.get_current_task()

    def wanted() -> bool:
        known = here.state.tasks.get(key)
        return known is not None and known.state in ("executing", "long-running")

    return wanted


def measure(task: BlockTask, name: str) -> BlockDone:
    """Measure one block here, and return its results. Raises the block's error. `name`: the worker's name."""
    begun = time.monotonic()
    assert task.number is not None
    with _Shared(task) as shared:
        shared.carry_out()
        folder = shared.folder / RESULTS
        environment = _placed(json.loads((folder / ENVIRONMENT).read_text()))
        return BlockDone(
            task.number,
            name,
            (folder / PLAN).read_text(),
            json.dumps(environment),
            tuple((folder / JOURNAL).read_text().splitlines()),
            _packed(folder / RAW),
            time.monotonic() - begun,
        )


def facts(task: BlockTask, name: str) -> WorkerFacts:
    """Return this worker's facts. Raises an error, such as MissingPart, if it cannot measure the study."""
    with _Shared(task) as shared:
        shared.carry_out()
        environment = _placed(json.loads((shared.folder / FACTS).read_text()))
    return WorkerFacts(name, environment, programs_hash(environment))


class _Shared:
    """A folder for one process, removed at the end: the process finds its request there, and leaves its answer."""

    def __init__(self, task: BlockTask) -> None:
        self._task = task

    def __enter__(self) -> _Shared:
        self.folder = Path(tempfile.mkdtemp(prefix="tunnelmark-block-"))
        self._held = scratch.hold(self.folder)
        write_inputs(self._task.inputs, self.folder / "inputs")
        request = {key: value for key, value in asdict(self._task).items() if key != "inputs"}
        (self.folder / REQUEST).write_text(json.dumps(request))
        return self

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        os.close(self._held)

    def carry_out(self) -> None:
        """Run the process of the task (`MODULE`) as root, and raise the error that the process reports, if any.

        The process ends by itself when this worker ends.
        """
        line = [sys.executable, "-m", MODULE, str(self.folder)]
        if os.geteuid() != 0:  # by the program that the one sudo rule is for (`privileges.sudo_rule`)
            line = [
                "sudo",
                "-n",
                str(Path(sys.executable).with_name("tunnelmark").resolve()),
                "cluster",
                "block",
                str(self.folder),
            ]
        done = listening(line, [self._held])
        if (self.folder / ERROR).exists():
            raise again(json.loads((self.folder / ERROR).read_text()))
        if done.returncode:
            last = "\n".join((done.stderr or done.stdout).strip().splitlines()[-10:])
            raise LabError(
                f"the process of a block ended with code {done.returncode}: {last}",
                hint="a worker runs as root, or may run it by `sudo -n` (docs/cluster.md)",
            )


def _placed(environment: Mapping[str, Any]) -> dict[str, Any]:
    return {**environment, HOST: os.uname().nodename}


def _packed(folder: Path) -> bytes:
    held = io.BytesIO()
    with tarfile.open(fileobj=held, mode="w:gz", compresslevel=3) as archive:
        for path in sorted(folder.iterdir()):
            archive.add(path, path.name)
    return held.getvalue()
