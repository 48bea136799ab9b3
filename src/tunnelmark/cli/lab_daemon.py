"""The process behind `tunnelmark lab up`: holds one lab until a request to end, a kill, or the loss of a host.

`python -m tunnelmark.cli.lab_daemon NAME TOPOLOGY PROFILE VPN INVENTORY` starts the process, apart from the terminal
(setsid(2)); VPN and INVENTORY may be empty. The process prints one JSON object on stdout: the lab that is up, or the
error. It also writes a lab that is up to a state file, by which `lab exec` and `lab down` find the lab.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tunnelmark import registry
from tunnelmark.cli import exec_server, lab_states, link_capacities, other_work, real_hosts
from tunnelmark.errors import TunnelmarkError
from tunnelmark.lab.client import LabClient
from tunnelmark.lab.labs import MIDDLE, Lab
from tunnelmark.lab.ssh import inventory
from tunnelmark.lab.ssh.inventory import Inventory
from tunnelmark.lab.ssh.ssh_labs import SshLabs
from tunnelmark.linux import scratch
from tunnelmark.plan.compose import comparison
from tunnelmark.plan.files import Files
from tunnelmark.plan.load import load_profile, load_topology, parse_study
from tunnelmark.plan.model import Topology
from tunnelmark.plan.study_arms import DIRECT
from tunnelmark.run.deploy import RunningDeployment, log_end, prepare

READY_TIMEOUT = 20.0  # seconds a VPN may take to answer in every direction
_LOOK_AGAIN = 2.0  # seconds between two checks that every host can be reached


@dataclass(frozen=True, slots=True)
class LabAsked:
    """What `lab up` asks for. `vpn` is "" for a lab without a VPN, `inventory` is "" for a lab on this machine."""

    name: str
    topology: str
    profile: str
    vpn: str = ""
    inventory: str = ""

    @property
    def words(self) -> str:
        """The request in words, such as `the lab 'one' (lan-3, home-fibre, nebula)`."""
        return f"the lab {self.name!r} ({', '.join(filter(None, (self.topology, self.profile, self.vpn)))})"


async def hold(asked: LabAsked) -> None:
    """Bring the lab up, print its state, hold it until SIGTERM or SIGINT, and take it down.

    If one of the lab's hosts is lost, the lab ends earlier, and the reason is stored. Raises a TunnelmarkError if the
    lab cannot be made, or if its VPN does not start; then the daemons' logs are kept.
    """
    files, profile = Files.standard().with_paths("profile", asked.profile)
    files, topology = files.with_paths("topology", asked.topology)
    own = lab_states.own(asked.name)
    driver, options = registry.arm(asked.vpn) if asked.vpn else (None, None)
    what = load_topology(topology, files), load_profile(profile, files)
    on = inventory.read(Path(asked.inventory)) if asked.inventory else None
    own.folder.mkdir(mode=0o755, parents=True, exist_ok=True)
    shutil.rmtree(own.kept, ignore_errors=True)
    begun = time.monotonic()
    async with _labs(on, own, what[0]) as labs:
        timings = {"server": time.monotonic() - begun}
        if isinstance(labs, SshLabs) and asked.vpn not in ("", DIRECT):
            await _require_alike(labs, asked.vpn, files, profile, topology)
        what = what[0], await link_capacities.closed(labs, what[1], what[0], files)
        trial_run = await labs.up(*what)  # a lab made and ended, so that `--timings` can say both
        timings["gone"] = await trial_run.down()
        lab = await labs.up(*what)
        timings |= {"nodes": lab.timings.nodes, "links": lab.timings.links, "up": lab.timings.up}
        tunnel = prepare(lab, driver, options, own.logs, logs_are=f"in {own.kept}") if driver and options else None
        if tunnel is not None:
            own.logs.mkdir(parents=True, exist_ok=True)
            started = time.monotonic()
            try:
                await tunnel.start()
                await tunnel.answer(READY_TIMEOUT + (driver.start_of(len(what[0].nodes)) if driver else 0.0))
            except TunnelmarkError as error:
                own.logs.rename(own.kept)
                more = f"tunnelmark lab logs NODE{'' if own.name == lab_states.USUAL else f' --name {own.name}'}"
                raise type(error)(
                    f"{error.message}\n{log_end(own.kept)}",
                    hint=f"{error.hint}\n      the daemons' logs are kept in {own.kept}: `{more}` shows them",
                ) from error
            timings["vpn"] = time.monotonic() - started
        content = {
            "name": own.name,
            "pid": os.getpid(),
            "topology": what[0].name,
            "profile": what[1].name,
            "vpn": asked.vpn or None,
            "nodes": _nodes(lab, tunnel, labs),
            "timings": timings,
        }
        ended = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, ended.set)
        async with nullcontext() if lab.here else exec_server.serving(lab.members, lab.lost, own.door):
            own.state.write_text(json.dumps(content))
            _say(content)
            if (why := await _lost(lab, ended)) is not None:
                lab_states.keep_lost(own, why)


@asynccontextmanager
async def _labs(
    on: Inventory | None, own: lab_states.LabFiles, topology: Topology
) -> AsyncIterator[LabClient | SshLabs]:
    """Yield labs of this machine, or of other hosts. UsageError before connecting if the hosts are too few."""
    if on is None:
        async with LabClient(scratch=[own.state, own.logs]) as labs:
            yield labs
        return
    hosts = SshLabs(on)
    hosts.placed(topology)
    with scratch.held([own.state, own.logs, own.door]):
        own.door.unlink(missing_ok=True)
        async with hosts:
            yield hosts


async def _require_alike(labs: SshLabs, vpn: str, files: Files, profile: str, topology: str) -> None:
    """Raise LabError, as for a study, if a host lacks a part that the VPN needs, or its programs differ."""
    catalogue = registry.catalogue()
    text = comparison([vpn], files, catalogue, profiles=[profile], topology=topology, workloads=["ping"], anchor=False)
    await real_hosts.alike(labs, parse_study(text, "compare", files, catalogue))


def _nodes(lab: Lab, tunnel: RunningDeployment | None, labs: LabClient | SshLabs) -> dict[str, dict[str, Any]]:
    """Return by node, routers and the middle node included, how commands reach it, and its addresses."""
    hosts = labs.hosts_of(lab.name) if isinstance(labs, SshLabs) else {}
    found = {}
    for name, node in lab.members.items():
        if name in hosts:
            way: dict[str, Any] = {"host": hosts[name]}
        else:
            groups = [f"{folder}/{lab.name}.{name}" for folder in labs.record["folders"]]
            way = {"pid": node.pid, "groups": groups}
        found[name] = {
            **way,
            "underlay": None if name == MIDDLE else str(lab.address(name)),
            "overlay": str(tunnel.address[name]) if tunnel and name in tunnel.address else None,
        }
    return found


async def _lost(lab: Lab, ended: asyncio.Event) -> str | None:
    """Wait for a request to end the lab, and return None; if a host is lost before, return why the lab is gone."""
    while not ended.is_set():
        if (why := await lab.lost()) is not None:
            return why
        with suppress(TimeoutError):
            await asyncio.wait_for(ended.wait(), None if lab.here else _LOOK_AGAIN)
    return None


def _say(content: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(content) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    try:
        made = LabAsked(*sys.argv[1:])
        # On other hosts it takes no time of our cores.
        with nullcontext() if made.inventory else other_work.told(made.words):
            asyncio.run(hold(made))
    except TunnelmarkError as error:
        _say({"error": error.message, "hint": error.hint})
        sys.exit(error.exit_code)
