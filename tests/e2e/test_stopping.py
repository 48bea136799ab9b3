"""Ctrl-C in the phases of a run and of a lab in hand: it ends, says how to go on, and leaves nothing."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.command import command, complete, environment, journal, planned, run, small_study
from tunnelmark.cli import measurement_lock
from tunnelmark.cli.lab_states import own

pytestmark = pytest.mark.root

PATIENCE = 60  # seconds: far more than the two that are promised, for a machine that stands still


@contextmanager
def started(*arguments: str | Path, path: Path | None = None, **more: str) -> Iterator[subprocess.Popen[str]]:
    """The command, with Ctrl-C as a shell gives it and `more` in its environment; what it prints is read line by line."""
    with subprocess.Popen(
        command(*arguments, path=path),
        env=environment() | {"PYTHONUNBUFFERED": "1"} | more,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def stop(process: subprocess.Popen[str]) -> str:
    """Press Ctrl-C; what is said then."""
    process.send_signal(signal.SIGINT)
    return ended(process)


def ended(process: subprocess.Popen[str]) -> str:
    """What a command says that was told to stop. Nothing of a lab that it made is left."""
    _, said = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130, said
    assert "Traceback" not in said
    no_groups(process.pid)
    return said


def no_groups(pid: int) -> None:
    """No control group of a command's labs is left, and so no process in one."""
    deadline = time.monotonic() + PATIENCE
    while left := groups_of(pid):
        assert time.monotonic() < deadline, left
        time.sleep(0.05)


def groups_of(pid: int) -> list[str]:
    """Control groups of a command's labs. Those of other tests vanish while one looks, which `os.walk` does not mind."""
    begin = f"tunnelmark-{pid}-"
    return [
        f"{folder}/{name}" for folder, names, _ in os.walk("/sys/fs/cgroup") for name in names if name.startswith(begin)
    ]


def until(process: subprocess.Popen[str], words: str) -> None:
    assert process.stdout is not None
    said = []
    for line in process.stdout:
        said.append(line)
        if words in line:
            return
    pytest.fail(f"it never said {words!r}: {''.join(said)}")


def test_while_it_waits_for_another_run(tmp_path: Path) -> None:
    measurement_lock.LOCK.parent.mkdir(exist_ok=True)
    with measurement_lock.LOCK.open("a+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        now = time.time()
        lock.truncate(0)
        lock.write(json.dumps({"pid": 1, "what": "the study x", "since": now - 5430, "until": now + 7200}))
        lock.flush()
        with started("run", small_study(tmp_path), "--out", tmp_path / "results") as process:
            # The words stay the same for nine minutes, however long the command takes to get there.
            until(process, "waiting for a run on this machine to end: the study x (process 1, for 1 h 3")
            assert "same command" in stop(process)
        with started("lab", "up", "--name", "waiting-lab", TUNNELMARK_NO_WAIT="") as process:
            until(process, "waiting for the study x (process 1, for 1 h 3")
            assert "same command" in stop(process)
        lock.truncate(0)
    assert not (tmp_path / "results").exists()
    assert not own("waiting-lab").state.exists()


@pytest.mark.parametrize(
    "words", ["results", pytest.param("[1/", marks=pytest.mark.proof("Ctrl-C ends a run at any moment"))]
)
def test_while_it_looks_at_the_link_or_measures(words: str, tmp_path: Path) -> None:
    """The link's look begins soon after the heading, whose last lines these are; `[1/` ends the first trial."""
    results = tmp_path / "results"
    study = small_study(tmp_path, arms=["tinc"], profile="fast-ethernet", tcp=True)
    with started("run", study, "--out", results) as process:
        until(process, words)
        if words == "results":
            while not (results / "journal.jsonl").exists():  # set-up is over
                assert process.poll() is None
                time.sleep(0.01)
        said = stop(process)
    assert f"every finished trial is kept. Go on with: tunnelmark run --resume {results}" in said
    assert len(journal(results)) >= (words == "[1/")
    kept = journal(results)
    done = run("run", "--resume", results)
    assert done.returncode in (0, 1), done.stderr  # 1: a gate may fail on a busy machine
    assert journal(results)[: len(kept)] == kept
    assert len(planned(results)) == 6
    complete(journal(results), planned(results))


def test_while_a_lab_is_made(tmp_path: Path) -> None:
    """A tinc that nobody tells its peers' addresses answers no ping, so that its lab is waited for."""
    (tmp_path / "vpns").mkdir()
    (tmp_path / "vpns" / "mute.py").write_text(
        "from dataclasses import replace\n"
        "from tunnelmark.vpns import tinc\n"
        "from tunnelmark.vpns.base import CommandSucceeds\n"
        "def deploy(mesh, options):\n"
        "    there = tinc.deploy(mesh, options)\n"
        "    return replace(there, phases=(*there.phases, (CommandSucceeds(mesh.hub.name, ('false',)),)))\n"
        "DRIVER = replace(tinc.DRIVER, name='mute', deploy=deploy, variants={}, builds={})\n"
    )
    with started("lab", "up", "--name", "stopped-lab", "--vpn", "mute", path=tmp_path) as process:
        while not any(own("stopped-lab").logs.glob("daemon.*")):
            assert process.poll() is None
            time.sleep(0.01)
        (holder,) = map(int, Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split())
        assert "no lab is left" in stop(process)
    no_groups(holder)
    deadline = time.monotonic() + PATIENCE
    while own("stopped-lab").logs.exists():  # the janitor's, which ends a moment later
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert not own("stopped-lab").state.exists()
    assert not os.path.exists(f"/proc/{holder}")


def test_while_it_makes_the_report(tmp_path: Path) -> None:
    """Its journal is a pipe from which nothing comes, so that it stands in the middle.

    The pipe ends after Ctrl-C: a read that begins between the signal and Python's own look for signals waits for bytes or
    for the end of the file, which a real one has.
    """
    results = tmp_path / "results"
    assert run("run", small_study(tmp_path), "--out", results).returncode in (0, 1)
    kept = (results / "journal.jsonl").rename(tmp_path / "kept")
    os.mkfifo(results / "journal.jsonl")
    with started("report", results) as process:
        while (writer := _writer(results / "journal.jsonl")) is None:
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        os.close(writer)
        assert "same command" in ended(process)
    kept.replace(results / "journal.jsonl")
    assert run("report", results).returncode in (0, 1)


def _writer(pipe: Path) -> int | None:
    """The end of a named pipe to write to, as soon as somebody reads."""
    try:
        return os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
    except OSError:
        return None
