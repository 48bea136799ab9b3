"""`lab exec` and `lab shell` on a lab over other hosts: a real relay and real agents without namespaces, and the command as a process of its own."""

from __future__ import annotations

import asyncio
import os
import pty
import signal
import subprocess
import sys
import termios
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from support import plain_hosts
from support.command import environment
from tunnelmark.cli import exec_server
from tunnelmark.lab.labs import Lab
from tunnelmark.lab.ssh import inventory
from tunnelmark.lab.ssh.ssh_labs import SshLabs
from tunnelmark.plan.files import Files
from tunnelmark.plan.load import load_profile, load_topology

FILES = Files.standard()
LARGE = 3_000_000  # bytes, more than may be on the way
_CODE = """
import sys
from pathlib import Path
from tunnelmark.cli import exec_client
from tunnelmark.errors import TunnelmarkError
try:
    sys.exit(exec_client.run(Path(sys.argv[1]), "a", sys.argv[2:], {"MINE": "yes"}))
except TunnelmarkError as error:
    print(error.message, "/", error.hint, file=sys.stderr)
    sys.exit(2)
"""


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[Lab], Awaitable[None]]], None]:
    """Does some work while a lab over such hosts is served."""
    monkeypatch.setenv("PATH", plain_hosts.ssh_first(tmp_path))
    monkeypatch.chdir(tmp_path)
    hosts = inventory.read(plain_hosts.inventory(tmp_path, 2))

    def serve(work: Callable[[Lab], Awaitable[None]]) -> None:
        async def go() -> None:
            what = load_topology("pair", FILES), load_profile("gigabit", FILES)
            async with (
                SshLabs(hosts) as labs,
                labs.lab(*what) as lab,
                exec_server.serving(lab.nodes, lab.lost, Path("door")),
            ):
                assert Path("door").stat().st_mode & 0o077 == 0, "it is its user's alone"
                await asyncio.wait_for(work(lab), 60)

        asyncio.run(go())

    return serve


async def started(*command: str, files: int = subprocess.PIPE) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable,
        *("-c", _CODE, "door", *command),
        env=environment(),
        start_new_session=True,
        stdin=files,
        stdout=files,
        stderr=files,
    )


async def ran(*command: str, given: bytes = b"") -> tuple[int | None, bytes, bytes]:
    process = await started(*command)
    out, err = await process.communicate(given)
    return process.returncode, out, err


def test_input_output_and_the_exit_code_travel(served: Callable) -> None:
    async def work(_: Lab) -> None:
        assert await ran("sh", "-c", "cat; echo wrong >&2; exit 7", given=b"x" * LARGE) == (7, b"x" * LARGE, b"wrong\n")
        assert await ran("sh", "-c", "echo $MINE; pwd; kill -9 $$") == (128 + 9, b"yes\n/\n", b"")
        # Another program may keep the output open.
        assert await ran("sh", "-c", "sleep 20 & seq 3") == (0, b"1\n2\n3\n", b"")
        code, out, said = await ran("no-such-program")
        long = await ran("echo", *["x" * 100_000] * 2)
        assert long[0] == 2 and b"the command is longer than 150000 bytes" in long[2]
        assert (code, out) == (2, b"") and b"No such file or directory: 'no-such-program'" in said

    served(work)


def test_a_program_reads_what_is_there_and_no_more_than_it_wants(served: Callable) -> None:
    async def work(_: Lab) -> None:
        assert await ran("sh", "-c", "exec <&-; echo done", given=b"x" * LARGE) == (0, b"done\n", b"")
        process = await started("head", "-n", "1")
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(b"a line\n")
        assert await process.stdout.readline() == b"a line\n"
        assert await process.wait() == 0, "though our input goes on"

    served(work)


def test_a_signal_is_the_programs(served: Callable) -> None:
    async def work(_: Lab) -> None:
        process = await started("sh", "-c", "trap 'echo caught; exit 5' INT; echo ready; while :; do sleep 0.1; done")
        assert process.stdout is not None
        assert await process.stdout.readline() == b"ready\n"
        process.send_signal(signal.SIGINT)
        assert await process.stdout.readline() == b"caught\n"
        assert await process.wait() == 5

    served(work)


def test_a_program_ends_with_its_command(served: Callable) -> None:
    async def work(_: Lab) -> None:
        process = await started("sh", "-c", "echo $$; exec sleep 30")
        assert process.stdout is not None
        program = int(await process.stdout.readline())
        ended = os.pidfd_open(program)
        process.kill()
        await process.wait()
        gone = asyncio.Event()
        asyncio.get_running_loop().add_reader(ended, gone.set)
        await asyncio.wait_for(gone.wait(), 20)
        os.close(ended)

    served(work)


def test_in_a_terminal_it_has_a_terminal(served: Callable) -> None:
    async def work(_: Lab) -> None:
        ours, theirs = pty.openpty()
        termios.tcsetwinsize(theirs, (33, 99))
        process = await started("sh", "-c", "test -t 2 && stty size && read x && echo got $x", files=theirs)
        os.close(theirs)
        shown = b""
        while b"33 99" not in shown:
            shown += await asyncio.to_thread(os.read, ours, 1000)
        os.write(ours, b"words\r")
        while b"got words" not in shown:
            shown += await asyncio.to_thread(os.read, ours, 1000)
        assert await process.wait() == 0
        os.close(ours)

    served(work)


def test_a_lost_host_is_said(served: Callable) -> None:
    async def work(lab: Lab) -> None:
        process = await started("sh", "-c", "echo ready; exec sleep 20")
        assert process.stdout is not None and process.stderr is not None
        assert await process.stdout.readline() == b"ready\n"
        relay = (await lab.nodes["a"].run(["sh", "-c", "ps -o ppid= -p $PPID"])).stdout
        os.kill(int(relay), 9)
        assert b"the connection to host h1 ended" in await process.stderr.read()
        assert await process.wait() == 2

    served(work)
