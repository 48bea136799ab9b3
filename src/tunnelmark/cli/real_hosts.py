"""Makes labs on other hosts (`--backend ssh`), and compares the hosts' environments before they are recorded."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console

from tunnelmark import registry
from tunnelmark.cli import measurement_lock
from tunnelmark.cluster.tasks import differing, task_of
from tunnelmark.errors import LabError, UsageError
from tunnelmark.lab.client import LabClient
from tunnelmark.lab.ssh.inventory import Inventory
from tunnelmark.lab.ssh.ssh_labs import SshLabs
from tunnelmark.plan.model import Study
from tunnelmark.record import store

INVENTORY = "inventory"
"""The key of the inventory in the recorded environment of a study that ran on other hosts."""


def labs(on: Inventory | None, *, node_cores: int = 1) -> SshLabs | LabClient:
    """Return labs on the hosts of an inventory; if None, on this machine, with `node_cores` cores for each node."""
    return SshLabs(on) if on is not None else LabClient(node_cores=node_cores)


def alone(
    on: Inventory | None,
    console: Console,
    what: str,
    results: Path | None = None,
    seconds: float | None = None,
    *,
    counted: bool = False,
) -> AbstractContextManager[measurement_lock.HeldLock | None]:
    """Hold the measurement lock (see `measurement_lock.alone`); do nothing if the study runs on the hosts `on`.

    On each of those hosts, the process `lab.ssh.relay` holds the host's own lock.
    """
    if on is not None:
        return nullcontext()
    return measurement_lock.alone(console, what, results, seconds, counted=counted)


def of_results(folder: Path) -> Inventory | None:
    """Return the inventory with which results were begun; None if their lab was on one machine."""
    held = store.load_environment(folder).get(INVENTORY)
    return Inventory.model_validate(held) if held is not None else None


async def alike(labs: SshLabs, study: Study) -> dict[str, dict[str, Any]]:
    """Return the environment in which each host would measure a study, by the host's name.

    Each host also makes the files that the workloads need. UsageError if a workload needs all nodes on one machine,
    LabError if a host lacks a part, or if the nodes' hosts differ in their programs.
    """
    for use in study.workloads:
        if why := registry.workloads()[use.workload].one_machine:
            raise UsageError(
                f"the workload {use.name} cannot run on several hosts: {why}",
                hint="measure it on one machine, without --inventory; docs/hosts.md has the limits",
            )
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
    """Return the environment to record: that of the first node's host, with `lab` and with facts of each host.

    `lab`: facts on how the lab and its links are made, to be recorded under the key "lab". LabError if the study cannot
    be measured on these hosts (see `alike`).
    """
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
