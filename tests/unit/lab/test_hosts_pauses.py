"""Pauses of the host that carries the links are on the clock of the lab's nodes, which is the command's."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any, cast

from tunnelmark.errors import LabError
from tunnelmark.host.pauses import Pause, PausesSeen
from tunnelmark.lab.client import LabClient
from tunnelmark.lab.ssh import inventory
from tunnelmark.lab.ssh.connection import HostConnection
from tunnelmark.lab.ssh.relay import Relay
from tunnelmark.lab.ssh.ssh_labs import SshLabs

HOST = """
[[hosts]]
name = "alpha"
ssh = "root@192.0.2.1"
address = "198.51.100.1"
interface = "eth1"
"""
SHIFT = 7_000  # the nodes' CLOCK_MONOTONIC shows so many nanoseconds more than the host's
SEEN = PausesSeen(9_000, (Pause(0, 100, 110, 900), Pause(1, 4_000, 4_100, 5_000)))


class Host:
    """A host whose relay answers, as over a connection."""

    def __init__(self, folder: Path, seen: PausesSeen | None, *, lost: bool = False) -> None:
        self.about: dict[str, Any] = {"record": {}}
        self._folder, self._seen, self._lost = folder, seen, lost

    async def seen(self) -> PausesSeen | None:
        return self._seen

    async def request(self, op: str, **fields: Any) -> Any:
        if self._lost:
            raise LabError("the host is lost", hint="look at it")

        async def nothing(*_: object) -> dict[str, Any]:
            return {}

        relay = Relay(cast(LabClient, self), lambda _: {}, nothing, self._folder)
        return json.loads(json.dumps(await relay._asked({"op": op, **fields})))


def seen(folder: Path, host: Host, made: int) -> PausesSeen | None:
    file = folder / "hosts.toml"
    file.write_text(HOST)
    labs = SshLabs(inventory.read(file))
    labs._connections = {"alpha": cast(HostConnection, host)}
    labs._shifts, labs._made = {"lab1": {"alpha": SHIFT}}, {"lab1": made}
    return asyncio.run(labs.seen("lab1"))


def test_they_are_moved_to_the_nodes_clock_and_those_before_the_lab_are_left_out(tmp_path: Path):
    assert seen(tmp_path, Host(tmp_path, SEEN), 0) == PausesSeen(
        16_000, (Pause(0, 7_100, 7_110, 7_900), Pause(1, 11_000, 11_100, 12_000))
    )
    later = seen(tmp_path, Host(tmp_path, SEEN), SHIFT + 2_000)
    assert later is not None and [each.core for each in later.pauses] == [1]


def test_where_nothing_sees_them_or_the_host_is_lost_nothing_is_excused(tmp_path: Path):
    assert seen(tmp_path, Host(tmp_path, None), 0) is None
    assert seen(tmp_path, Host(tmp_path, SEEN, lost=True), 0) is None


def test_a_host_that_refuses_clocks_is_named_in_the_record(tmp_path: Path):
    (tmp_path / "hosts.toml").write_text(HOST)
    labs, host = SshLabs(inventory.read(tmp_path / "hosts.toml")), Host(tmp_path, None)
    host.about = {"record": {"clocks_not": "no real-time priority"}}
    labs._connections = {"alpha": cast(HostConnection, host)}
    labs.watch()
    assert labs.record["clocks_not"] == "host alpha: no real-time priority"
