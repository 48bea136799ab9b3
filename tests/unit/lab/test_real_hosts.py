"""What goes over a connection to a host, and how an inventory is read: no host is needed for it."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Mapping
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any, cast

import pytest

from tunnelmark.errors import PlanError, UsageError
from tunnelmark.lab.client import LabClient
from tunnelmark.lab.link_spec import LinkSpec
from tunnelmark.lab.ssh import frames, inventory, places
from tunnelmark.lab.ssh.clocks import DRIFT, HostClocks
from tunnelmark.lab.ssh.host_lab import HostLab
from tunnelmark.lab.ssh.interfaces import fits
from tunnelmark.lab.ssh.node_hosts import node_hosts
from tunnelmark.lab.ssh.relay import Relay
from tunnelmark.lab.ssh.segments import Segment, segments
from tunnelmark.model.clock_offsets import ClockOffset

HOSTS = """
[[hosts]]
name = "alpha"
ssh = "-p 2222 root@192.0.2.1"
address = "198.51.100.1"
interface = "eth1"

[[hosts]]
name = "beta"
ssh = "root@192.0.2.2"
address = "198.51.100.2"
interface = "eth1"
roles = ["middle"]
"""


def written(folder: Path, text: str) -> Path:
    file = folder / "hosts.toml"
    file.write_text(text)
    return file


def test_frames_come_whole_however_they_are_cut():
    sent: list[tuple[dict[str, Any], bytes]] = [
        ({"op": "clock", "id": 1}, b""),
        ({"file": 7}, bytes(range(256)) * 40),
        ({"file": 7, "end": True}, b""),
    ]
    stream = b"".join(frames.pack(message, data) for message, data in sent)
    for size in (1, 3, 7, 1000, len(stream)):
        unpacker = frames.Unpacker()
        got: list[tuple[dict[str, Any], bytes]] = []
        for begin in range(0, len(stream), size):
            got += unpacker.feed(stream[begin : begin + size])
        assert got == sent


def test_what_no_relay_sends_is_refused():
    with pytest.raises(ValueError, match="a frame of"):
        list(frames.Unpacker().feed(b"Welcome to this machine"))


def test_an_inventory_has_defaults(tmp_path: Path):
    found = inventory.read(written(tmp_path, HOSTS))
    assert [host.name for host in found.nodes] == ["alpha"] and found.middle.name == "beta"
    assert found.hosts[0].address == IPv4Address("198.51.100.1") and found.hosts[0].command == "tunnelmark"
    assert found.network.kind == "vxlan" and found.network.numbers == (3000, 3999)


def test_without_a_middle_host_links_run_through_the_first(tmp_path: Path):
    text = HOSTS.replace('roles = ["middle"]', "")
    assert inventory.read(written(tmp_path, text)).middle.name == "alpha"


@pytest.mark.parametrize(
    ("several", "nodes", "expected"),
    [
        ((1, 1, 1), "abc", "xyz"),  # in order
        ((1, 1, 1), "ab", "xy"),
        ((2, 2, 1), "abcd", "xzxy"),  # a and d first, then b and c
        ((3, 1), "abcd", "xxxy"),
        ((9,), "abcdefghi", "xxxxxxxxx"),
    ],
)
def test_the_ends_of_the_path_are_on_hosts_of_their_own(several: tuple[int, ...], nodes: str, expected: str):
    hosts = [
        inventory.InventoryHost(
            name=name, ssh="root@host", address=IPv4Address(f"192.0.2.{n}"), interface="eth1", nodes=most
        )
        for n, (name, most) in enumerate(zip("xyz", several, strict=False), start=1)
    ]
    assert node_hosts(nodes, hosts) == dict(zip(nodes, expected, strict=True))
    with pytest.raises(UsageError, match=f"may have {sum(several)}"):
        node_hosts("n" * (sum(several) + 1), hosts)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (HOSTS.replace('name = "beta"', 'name = "alpha"'), "alpha is another host's, too"),
        (HOSTS.replace("198.51.100.2", "198.51.100.1"), "198.51.100.1 is another host's, too"),
        (HOSTS.replace("interface", "card", 1), "card"),
        (HOSTS.replace('"-p 2222 root@192.0.2.1"', '""'), "must not be empty"),
        (HOSTS.replace("198.51.100.2", "beta.example"), "address"),
        (HOSTS + '[network]\nkind = "vlan"\nnumbers = [4000, 5000]\n', "vlan has the numbers 1 to 4094"),
        (HOSTS.replace('interface = "eth1"\n\n', 'interface = "eth1"\nroles = ["middle"]\n\n'), "role node"),
    ],
)
def test_a_wrong_inventory_is_refused_with_the_place(tmp_path: Path, text: str, words: str):
    with pytest.raises(PlanError) as error:
        inventory.read(written(tmp_path, text))
    assert words in error.value.message + error.value.hint and "hosts.toml" in error.value.message


def test_an_inventory_that_is_not_there_is_a_usage_error(tmp_path: Path):
    with pytest.raises(UsageError, match="cannot be read"):
        inventory.read(tmp_path / "none.toml")


def test_programs_are_found_where_a_host_has_them():
    there = {"prefix": "/srv/mine/.venv", "built": "/srv/mine/target/release", "data": "/same"}
    mine = {"prefix": "/opt/lab", "built": "/opt/lab/bin", "data": "/same"}
    changes = places.moves(there, mine)
    assert places.moved("/srv/mine/.venv/bin/python", changes) == "/opt/lab/bin/python"
    said = {
        "op": "spawn",
        "argv": ["/srv/mine/target/release/tunnelmark-probe", "-n"],
        "env": {"PATH": "/srv/mine/.venv/bin:/bin"},
    }
    assert places.request(said, changes) == {
        "op": "spawn",
        "argv": ["/opt/lab/bin/tunnelmark-probe", "-n"],
        "env": {"PATH": "/opt/lab/bin:/bin"},
    }


def test_a_place_is_replaced_once():
    """The host's place of one thing may be the command's place of another."""
    changes = places.moves({"prefix": "/a", "data": "/b"}, {"prefix": "/b", "data": "/c"})
    assert places.moved("/a /b", changes) == "/b /c"


def test_each_end_on_another_host_gets_a_segment_of_its_own():
    links = [
        LinkSpec("link0", {"a": "10.50.0.1/24", "b": "10.50.0.2/24"}),
        LinkSpec("link1", {"b": "10.50.1.2/24", "r": "10.50.1.3/24"}, mtu=1400),
    ]
    found = segments(links, {"a": "one", "b": "two", "r": "mid"}, "mid", "middle", itertools.count(10))
    macs = links[0].macs(0), links[1].macs(1)
    assert found == {
        "one": [Segment("a", "eth0", 10, "mid", 1500, macs[0]["a"])],
        "two": [
            Segment("b", "eth0", 11, "mid", 1500, macs[0]["b"]),
            Segment("b", "eth1", 12, "mid", 1400, macs[1]["b"]),
        ],
        "mid": [
            Segment("middle", "a.0", 10, "one", 1500),
            Segment("middle", "b.0", 11, "two", 1500),
            Segment("middle", "b.1", 12, "two", 1400),
        ],
    }, "a router on the middle host needs none"


def test_a_vxlan_needs_room_for_its_headers():
    assert fits("vxlan", 1550, 1500) and not fits("vxlan", 1549, 1500) and fits("vlan", 1500, 1500)


async def look(clocks: HostClocks, ahead: int, wait: float) -> None:
    async with clocks.look() as took:
        time.sleep(wait)
        took({"realtime": time.time_ns() + ahead, "monotonic": time.monotonic_ns() + ahead})


def test_the_quickest_answer_says_how_far_a_clock_is_ahead():
    clocks, ahead = HostClocks(), 5_000_000_000
    assert clocks.offset == ClockOffset(0, 0, 0)
    for wait in (0.02, 0.0, 0.0, 0.0, 0.02):
        asyncio.run(look(clocks, ahead, wait))
    offset = clocks.offset
    assert offset.error < 10_000_000, "the slow answers do not count"
    assert abs(offset.realtime - ahead) <= offset.error + 1000 and abs(offset.monotonic - ahead) <= offset.error + 1000


def test_an_offset_is_the_less_certain_the_older_it_is():
    clocks = HostClocks()
    asyncio.run(look(clocks, 0, 0.0))
    first = clocks.offset.error
    time.sleep(0.05)
    assert clocks.offset.error >= first + 0.05e9 * DRIFT


def test_what_looks_into_a_lab_is_given_up_before_its_nodes_end(tmp_path: Path):
    asked: list[str] = []

    class Server:
        unified = None
        seen = None

        async def request(self, op: str, *_: object, **__: object) -> dict[str, Any]:
            asked.append(op)
            return {"refused": {}, "timings": {}}

    async def collect(message: Mapping[str, Any], lab: HostLab) -> Mapping[str, Any]:
        asked.append(f"{message['what']} {lab.name}")
        return {}

    async def life() -> None:
        relay = Relay(cast(LabClient, Server()), lambda _: {}, collect, tmp_path)
        nothing: dict[str, Any] = {key: [] for key in ("nodes", "numbers", "segments", "links")}
        await relay._asked({"op": "up", "lab": "one", "middle": "m", **nothing})
        await relay._asked({"op": "down", "lab": "one"})
        await relay._asked({"op": "down", "lab": "one that did not come up"})

    asyncio.run(life())
    assert asked == ["up", "join", "give up one", "down", "down"]
