"""Ctrl-C ends a command whatever it does, with a word on how to go on; real signals to real processes."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest

from tunnelmark.cli import interrupts
from tunnelmark.cli.package_verify import _Suites

LONG = 300  # seconds that nothing here would wait for
PATIENCE = 60  # seconds: far more than the two that are promised, for a machine that stands still

BEGIN = """
import asyncio, signal, sys, time
from pathlib import Path
from tunnelmark.cli import command, interrupts

def ready():
    print("ready", flush=True)

def wait():
    while True:
        signal.pause()  # a call that nothing but a signal ends

def work():
    interrupts.goes_on("go on like this")
{body}

command.tunnelmark.main = lambda *_, **__: work()
sys.exit(command.main([]))
"""


IN_A_TASK = f"""
async def busy():
    while True:
        time.sleep(0.01)
        await asyncio.sleep(0)

async def main():
    task = asyncio.create_task(busy())
    ready()
    await asyncio.sleep({LONG})

asyncio.run(main())
"""


def started(body: str) -> subprocess.Popen[str]:
    """A command that does this, with Ctrl-C as a shell gives it; returns once it has said that it is ready."""
    process = subprocess.Popen(
        [sys.executable, "-c", BEGIN.format(body=textwrap.indent(textwrap.dedent(body), "    "))],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


@pytest.mark.parametrize(
    "body",
    [
        "ready(); wait()",
        f"async def main(): ready(); await asyncio.sleep({LONG})\nasyncio.run(main())",
        "async def main(): ready(); wait()  # work that awaits nothing\nasyncio.run(main())",
        IN_A_TASK,
        f"async def main(): ready(); await asyncio.to_thread(time.sleep, {LONG})\nasyncio.run(main())",
        "try:\n    ready(); wait()\nfinally:\n    wait()  # an end that takes too long",
    ],
)
def test_whatever_it_does_it_ends_with_a_word(body: str) -> None:
    with started(body) as process:
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert "stopped; go on like this" in said
    assert "Traceback" not in said


def test_the_end_is_orderly_where_it_can_be() -> None:
    body = f"""
    interrupts._PATIENCE = {LONG}
    async def main():
        try:
            ready()
            await asyncio.sleep({LONG})
        finally:
            await asyncio.sleep(0.01)
            print("taken down", flush=True)
    asyncio.run(main())
    """
    with started(body) as process:
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=PATIENCE)
    assert out == "taken down\n"


def test_a_second_time_it_ends_at_once() -> None:
    body = f"""
    try:
        ready()
        wait()
    finally:
        interrupts._PATIENCE = {LONG}
        print("ending", flush=True)
        wait()
    """
    with started(f"interrupts._PATIENCE = {LONG}\n" + textwrap.dedent(body)) as process:
        assert process.stdout is not None
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == "ending\n"
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert "stopped; go on like this" in said


def test_where_it_is_ignored_it_stays_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with interrupts.heard():
            assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)
    with interrupts.heard():
        assert signal.getsignal(signal.SIGINT) is not before
    assert signal.getsignal(signal.SIGINT) is before


def running(*argv: str) -> list[int]:
    """The processes that were started with exactly these words, once there are any: a shell's child has the shell's words until it has begun."""
    deadline = time.monotonic() + PATIENCE
    while not (found := _running(*argv)) and time.monotonic() < deadline:
        time.sleep(0.01)
    return found


def _running(*argv: str) -> list[int]:
    wanted, found = "".join(f"{word}\0" for word in argv).encode(), []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if (folder / "cmdline").read_bytes() == wanted:
                found.append(int(folder.name))
    return found


def test_an_asset_that_is_being_made_leaves_nothing(tmp_path: Path) -> None:
    begun, unlike_others = tmp_path / "begun", f"{LONG}.{os.getpid()}"
    os.mkfifo(begun)
    body = f"""
    import os, threading
    interrupts._PATIENCE = {LONG}
    os.environ["XDG_CACHE_HOME"] = {str(tmp_path)!r}
    from tunnelmark.run import assets
    from tunnelmark.workloads.base import Asset
    threading.Thread(target=lambda: print(open({str(begun)!r}).read(), end="", flush=True), daemon=True).start()
    making = "sleep {unlike_others} & echo ready >{begun}; wait"  # it has process numbers of its own
    assets.make(Asset("slow", commands=(("sh", "-c", making),)))
    """
    with started(body) as process:
        (child,) = running("sleep", unlike_others)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert not list((tmp_path / "tunnelmark" / "assets").iterdir())
    pidfd_gone(child)


def test_one_that_comes_while_a_program_is_started_ends_the_program(tmp_path: Path) -> None:
    body = f"""
    import os, subprocess, time
    interrupts._PATIENCE = {LONG}
    os.environ["XDG_CACHE_HOME"] = {str(tmp_path)!r}
    from tunnelmark.run import assets
    from tunnelmark.workloads.base import Asset

    class Interrupted(subprocess.Popen):
        def __init__(self, *arguments, **words):
            super().__init__(*arguments, **words)
            (assets.Path({str(tmp_path)!r}) / "child").write_text(str(self.pid))
            print("ready", flush=True)
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.05)

    subprocess.Popen = Interrupted
    assets.make(Asset("slow", commands=(("sleep", "{LONG}"),)))
    """
    with started(body) as process:
        process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    pidfd_gone(int((tmp_path / "child").read_text()))


def test_suites_that_run_end_with_all_they_started(tmp_path: Path) -> None:
    suites, codes = _Suites(), []
    fifo = tmp_path / "begun"
    os.mkfifo(fifo)
    argv = ["sh", "-c", f"sleep {LONG} & echo $! >{fifo}; wait"]
    with (tmp_path / "log").open("wb") as log:
        thread = threading.Thread(target=lambda: codes.append(suites.run(argv, tmp_path, log)))
        thread.start()
        child = int(fifo.read_text())
        suites.kill()
        thread.join(PATIENCE)
        assert codes == [-signal.SIGKILL]
        assert suites.run(argv, tmp_path, log) == -signal.SIGKILL  # none begins any more
    pidfd_gone(child)


def pidfd_gone(pid: int) -> None:
    """Wait until a process has ended; a test's time limit ends the wait."""
    import select

    try:
        file = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    assert select.select([file], [], [], PATIENCE)[0]
    os.close(file)
