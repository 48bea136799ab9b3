"""The laboratory on other hosts (`--backend ssh`): what each of them is, and what of it goes into the record."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

import click
from rich.console import Console

from tunnelmark.cli import measurement_lock
from tunnelmark.cluster.tasks import differing, study_of, task_of
from tunnelmark.errors import LabError, UsageError
from tunnelmark.lab.ssh import inventory
from tunnelmark.lab.ssh.client import SshLabs
from tunnelmark.lab.ssh.inventory import Inventory
from tunnelmark.plan.load import write_inputs
from tunnelmark.plan.model import Study
from tunnelmark.record import store

INVENTORY = "inventory"
"""The key of an environment that has the inventory, where a study ran on the hosts of one."""

_Command = TypeVar("_Command", bound=Callable[..., Any])


def option(command: _Command) -> _Command:
    """Adds `--inventory` to a command."""
    return click.option(
        "--inventory",
        type=click.Path(path_type=Path, exists=True, dir_okay=False),
        metavar="FILE",
        help="With --backend ssh: the hosts that the nodes run on (docs/hosts.md).",
    )(command)


def chosen(backend: str | None, file: Path | None) -> Inventory | None:
    """The hosts of `--backend ssh --inventory FILE`; None for other backends. UsageError if the two do not fit."""
    if backend == "ssh" and file is None:
        raise UsageError(
            "nothing says which hosts to use", hint="name them in a file, and add --inventory FILE (docs/hosts.md)"
        )
    if backend != "ssh" and file is not None:
        raise UsageError("an inventory is for other hosts", hint="add --backend ssh")
    return inventory.read(file) if file is not None else None


def of_results(folder: Path) -> Inventory | None:
    """The hosts on which results were begun; None: they were begun on one machine."""
    held = store.load_environment(folder).get(INVENTORY)
    return Inventory.model_validate(held) if held is not None else None


async def environment(labs: SshLabs, study: Study, lab: Mapping[str, Any]) -> dict[str, Any]:
    """The environment of a study on the hosts: that of the first node's, and each host's own facts. LabError where programs differ.

    Everything that the workloads need beforehand is made on each host meanwhile.
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
    kept = ("machine", "tools", "host_sysctls", "socket_buffer")
    hosts = {name: {key: facts[key] for key in kept} for name, facts in found.items()}
    clocks = labs.clocks()
    return {
        **{key: value for key, value in first.items() if key != "socket_buffer"},
        "command": ["tunnelmark", *sys.argv[1:]],
        "lab": dict(lab) | {"backend": "ssh", "clocks": clocks},
        INVENTORY: labs.inventory.model_dump(mode="json"),
        "hosts": hosts,
    }


def facts(asked: Mapping[str, Any]) -> Mapping[str, Any]:
    """On a host: what it would measure a study with, and what the study needs beforehand made; the error that says what it lacks."""
    import tempfile

    from tunnelmark import registry
    from tunnelmark.cli import measuring
    from tunnelmark.plan.order import order
    from tunnelmark.record import environment as record
    from tunnelmark.run.runner import RunContext

    with tempfile.TemporaryDirectory(prefix="tunnelmark-study-") as folder:
        write_inputs(asked["inputs"], Path(folder))
        study = study_of(asked, Path(folder), registry.catalogue())
    context = RunContext(registry.vpns(), registry.workloads(), record.socket_buffer_limit())
    plan, quiet = order(study), Console(file=sys.stderr)
    measuring.require(plan, context, quiet)
    measuring.prepare(plan, context, quiet)
    parts = [context.part(arm) for arm in study.arms if context.missing(arm) is None]
    used = [context.workloads[use.workload].part for use in study.workloads]
    captured = record.capture(dict.fromkeys(parts), workloads=dict.fromkeys(used))
    return captured | {"socket_buffer": context.socket_buffer}


@contextmanager
def held() -> Iterator[None]:
    """On a host: no other command measures there meanwhile. LabError if one does already."""
    if (other := measurement_lock.measuring()) is not None:
        raise LabError(f"another command measures there: {other.what}", hint="wait for its end, or stop it")
    with measurement_lock.alone(Console(file=sys.stderr), "a study on several hosts"):
        yield
