"""The laboratory on other hosts (`--backend ssh`): what each of them is, and what of it goes into the record."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console

from tunnelmark.cli import measurement_lock
from tunnelmark.cluster.tasks import differing, task_of
from tunnelmark.errors import LabError
from tunnelmark.lab.client import LabClient
from tunnelmark.lab.ssh.inventory import Inventory
from tunnelmark.lab.ssh.ssh_labs import SshLabs
from tunnelmark.plan.model import Study
from tunnelmark.record import store

INVENTORY = "inventory"
"""The key of the inventory in the environment of a study that ran on the hosts of one."""


def labs(on: Inventory | None, *, node_cores: int = 1) -> SshLabs | LabClient:
    """Labs on the hosts of an inventory; on this machine without one, with so many cores a node."""
    return SshLabs(on) if on is not None else LabClient(node_cores=node_cores)


def alone(
    on: Inventory | None, console: Console, what: str, results: Path | None = None, seconds: float | None = None
) -> AbstractContextManager[measurement_lock.HeldLock | None]:
    """As `measurement_lock.alone`. On the hosts of an inventory their relays keep others out, and this yields None."""
    return nullcontext() if on is not None else measurement_lock.alone(console, what, results, seconds)


def of_results(folder: Path) -> Inventory | None:
    """The hosts on which results were begun; None if they were begun on one machine."""
    held = store.load_environment(folder).get(INVENTORY)
    return Inventory.model_validate(held) if held is not None else None


async def alike(labs: SshLabs, study: Study) -> dict[str, dict[str, Any]]:
    """The environment in which each host would measure a study, by the host's name.

    Each host also makes what the workloads need beforehand. LabError if a host lacks something, or nodes' hosts differ.
    """
    found = await labs.facts(asdict(task_of(study, None)))
    nodes = [host.name for host in labs.inventory.nodes]
    first = found[nodes[0]]
    for name in nodes[1:]:
        if wrong := differing(first, found[name]):
            raise LabError(
                f"host {name} differs from host {nodes[0]}: {'; '.join(wrong)}",
                hint="install the same versions on all hosts: `tunnelmark packages list` shows them",
            )
    return found


async def environment(labs: SshLabs, study: Study, lab: Mapping[str, Any]) -> dict[str, Any]:
    """The environment of a study on the hosts: that of the first node's, and each host's own facts (see `alike`)."""
    found = await alike(labs, study)
    first = found[labs.inventory.nodes[0].name]
    kept = ("machine", "tools", "host_sysctls", "socket_buffer", "clock")
    hosts = {name: {key: facts[key] for key in kept} for name, facts in found.items()}
    clocks = labs.clocks_record()
    return {
        **{key: value for key, value in first.items() if key not in ("socket_buffer", "clock")},
        "command": ["tunnelmark", *sys.argv[1:]],
        "lab": dict(lab) | {"backend": "ssh", "clocks": clocks},
        INVENTORY: labs.inventory.model_dump(mode="json"),
        "hosts": hosts,
    }
