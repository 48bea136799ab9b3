"""A machine with cores to spare, which most test machines are not: the links' work is done on a core of no node."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import pytest

from tunnelmark.host.keep_awake import VARIABLE
from tunnelmark.lab.node import Completed
from tunnelmark.lab.vm import Guest, Hardware
from vm.accounts import ROOT
from vm.agreement import needs_qemu
from vm.test_machine import in_guest

pytestmark = [
    pytest.mark.root,
    pytest.mark.slow,
    pytest.mark.timeout(1800),
    needs_qemu,
    pytest.mark.proof("with cores to spare links and command run on none of a node's, and are an account of their own"),
]


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """A pair of nodes in a guest with four cores, while one TCP stream fills a slow link."""
    folder = tmp_path_factory.mktemp("many")
    paths = os.pathsep.join((str(ROOT / "src"), str(ROOT / "tests")))

    async def body(machine: Guest) -> Completed:
        argv = [sys.executable, "-m", "vm.many", "5", str(folder)]
        # Loops that keep four emulated cores awake would take the host's from the rest of the guest.
        return await machine.run(argv, 900, env={"PYTHONPATH": paths, VARIABLE: "1"})

    done = in_guest(body, folder, Hardware(cores=4, memory=2048))
    assert done.code == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    print(json.dumps(found, indent=1))
    return found


def test_nodes_links_and_command_have_cores_of_their_own(seen: dict[str, Any]) -> None:
    assert seen["inside"] == {"a": [0], "b": [1], "middle": [2], "command": [3], "usable": [0, 1, 2, 3]}
    assert seen["placement"]["links_apart"]
    assert seen["restored"], "the command is kept to its cores for the labs' time only"


def test_the_links_receive_on_their_core(seen: dict[str, Any]) -> None:
    """Each packet enters a port of the middle node there; without a core of their own that would be the sender's work."""
    node_a, node_b, links, _ = seen["received"]
    assert links > 0.5 * max(node_a, node_b), seen["received"]


def test_what_belongs_to_the_laboratory_is_told_apart(seen: dict[str, Any]) -> None:
    assert seen["values"]["cpu_per_gb_lab"] > 0
    assert "cpu_per_gb_lab" not in seen["notes"]
    assert "cpu_per_gb_shared" not in seen["values"]
