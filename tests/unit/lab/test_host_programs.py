"""Programs on nodes of other hosts: what goes in and comes out, with a real relay and real agents, but without namespaces."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from support import plain_hosts
from tunnelmark.errors import NodeGone
from tunnelmark.lab.labs import Lab
from tunnelmark.lab.ssh import inventory
from tunnelmark.lab.ssh.ssh_labs import SshLabs
from tunnelmark.plan.files import Files
from tunnelmark.plan.load import load_profile, load_topology

FILES = Files.standard()
LARGE = 3_000_000  # bytes, more than may be on the way
PIPE = 1 << 16  # bytes that fit into a pipe


@pytest.fixture
def hosts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> inventory.Inventory:
    monkeypatch.setenv("PATH", plain_hosts.ssh_first(tmp_path))
    return inventory.read(plain_hosts.inventory(tmp_path, 2))


def on_a_lab(hosts: inventory.Inventory, work: Callable[[Lab], Awaitable[None]]) -> None:
    async def go() -> None:
        what = load_topology("pair", FILES), load_profile("gigabit", FILES)
        async with SshLabs(hosts) as labs, labs.lab(*what) as lab:
            await asyncio.wait_for(work(lab), 60)

    asyncio.run(go())


def test_what_a_program_reads_and_writes_travels_whole(hosts: inventory.Inventory):
    async def work(lab: Lab) -> None:
        done = await lab.nodes["b"].run(["sh", "-c", "cat; echo wrong >&2; exit 7"], stdin="x" * LARGE)
        assert (done.code, len(done.stdout), done.stderr) == (7, LARGE, "wrong\n")

    on_a_lab(hosts, work)


def test_a_program_whose_output_is_not_read_waits_and_its_end_comes_behind_what_it_wrote(hosts: inventory.Inventory):
    async def work(lab: Lab) -> None:
        reading, writing = os.pipe()
        with os.fdopen(writing, "wb", 0) as out:
            # Another one keeps the output open, so that there is no end of it to wait for.
            argv = ["sh", "-c", f"sleep 20 & head -c {LARGE} /dev/zero"]
            process = await lab.nodes["a"].spawn(argv, stdout=out)
        with os.fdopen(reading, "rb", 0) as output:
            left = LARGE
            while left:
                other = await lab.nodes["a"].run(["echo", "I am not held up"])
                assert other.stdout == "I am not held up\n"
                if left > 2 * PIPE:
                    assert process.exit is None
                left -= len(await asyncio.to_thread(output.read, min(left, LARGE // 6)))
            assert (await process.wait()).code == 0

    on_a_lab(hosts, work)


def test_a_program_whose_reader_has_gone_ends(hosts: inventory.Inventory):
    async def work(lab: Lab) -> None:
        reading, writing = os.pipe()
        with os.fdopen(writing, "wb", 0) as out:
            process = await lab.nodes["a"].spawn(["yes"], stdout=out)
        os.close(reading)
        assert (await process.wait()).code == -13, "SIGPIPE"

    on_a_lab(hosts, work)


def test_a_program_on_a_host_that_is_lost_has_ended(hosts: inventory.Inventory):
    async def work(lab: Lab) -> None:
        process = await lab.nodes["a"].spawn(["sleep", "20"])
        relay = (await lab.nodes["a"].run(["sh", "-c", "ps -o ppid= -p $PPID"])).stdout  # the parent of our agent
        os.kill(int(relay), 9)
        with pytest.raises(NodeGone):
            await process.wait()
        assert "host h1" in (await lab.lost() or "")

    on_a_lab(hosts, work)
