"""What the process of a lab over hosts asks of them before it makes a node."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import pytest

from support import plain_hosts
from tunnelmark import registry
from tunnelmark.cli import lab_commands, lab_daemon
from tunnelmark.errors import LabError
from tunnelmark.lab.ssh import inventory
from tunnelmark.lab.ssh.ssh_labs import SshLabs
from tunnelmark.plan.files import Files
from tunnelmark.plan.load import load_topology


class Hosts:
    """Two hosts, whose programs have these hashes."""

    def __init__(self, folder: Path, *hashes: str) -> None:
        self.inventory = inventory.read(plain_hosts.inventory(folder, len(hashes)))
        self.asked: Mapping[str, Any] = {}
        self._hashes = hashes

    async def facts(self, asked: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
        self.asked = asked
        return {
            f"h{number}": {"vpns": {"tinc": {"programs": {"tincd": {"sha256": each}}}}}
            for number, each in enumerate(self._hashes, start=1)
        }


def require(hosts: Hosts) -> None:
    labs = cast(SshLabs, hosts)
    asyncio.run(lab_daemon._require_alike(labs, "tinc", Files.standard(), "wifi-good", "behind-nat"))


def test_hosts_with_other_programs_are_an_error_before_a_node_is_made(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="host h2 differs from host h1: tinc is not the same program"):
        require(Hosts(tmp_path, "one", "other"))


def test_hosts_are_asked_for_what_the_vpn_needs_on_such_a_lab(tmp_path: Path) -> None:
    hosts = Hosts(tmp_path, "one", "one")
    require(hosts)
    text = "".join(hosts.asked["inputs"].values())
    assert all(f'"{name}"' in text for name in ("tinc", "wifi-good", "behind-nat"))


@pytest.mark.parametrize("topology", ["pair", "lan-30"])
@pytest.mark.parametrize("hosts", [False, True])
def test_a_lab_is_waited_for_longer_than_its_vpn_may_take(topology: str, *, hosts: bool) -> None:
    files = Files.standard()
    driver, _ = registry.arm("zerotier")
    allowed = lab_daemon.READY_TIMEOUT + driver.start_of(len(load_topology(topology, files).nodes))
    assert lab_commands._patience("zerotier", topology, hosts=hosts) >= allowed + 30
    assert lab_commands._patience("", topology, hosts=hosts) < lab_commands._patience("zerotier", topology, hosts=hosts)
