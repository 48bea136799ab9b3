"""A host that was lost in the middle of a run: it may come back as what it was, with a real relay, but without namespaces."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from support import plain_hosts
from tunnelmark.errors import LabError
from tunnelmark.lab.ssh import inventory, ssh_labs
from tunnelmark.lab.ssh.ssh_labs import SshLabs


@pytest.fixture
def hosts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> inventory.Inventory:
    monkeypatch.setenv("PATH", plain_hosts.ssh_first(tmp_path))
    monkeypatch.setattr(ssh_labs, "_BACK", 0.0)
    return inventory.read(plain_hosts.inventory(tmp_path, 2))


def lose(hosts: inventory.Inventory, then: Callable[[SshLabs], Awaitable[None]]) -> None:
    async def go() -> None:
        async with SshLabs(hosts) as labs:
            lost = labs._connections["h2"]
            lost.drop()
            while lost.lost is None:
                await asyncio.sleep(0.01)
            await asyncio.wait_for(then(labs), 60)

    asyncio.run(go())


def test_a_host_that_comes_back_as_it_was_takes_part_again(hosts: inventory.Inventory) -> None:
    async def then(labs: SshLabs) -> None:
        assert "host h2" in (await labs.check() or "")
        assert await labs.check() is None

    lose(hosts, then)


def test_a_host_that_comes_back_with_another_kernel_ends_the_run(hosts: inventory.Inventory) -> None:
    async def then(labs: SshLabs) -> None:
        labs.record["hosts"]["h2"]["release"] = "5.10.0"
        with pytest.raises(LabError, match=r"host h2 came back with Linux .*, and had 5\.10\.0"):
            await labs.check()

    lose(hosts, then)
