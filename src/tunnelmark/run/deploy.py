"""Deploys a VPN on a lab: gives the nodes to a driver, and makes a `RunningDeployment` from its answer."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from ipaddress import IPv4Interface, IPv4Network
from pathlib import Path
from typing import Any

from tunnelmark.host.programs import path_of, with_own
from tunnelmark.lab.labs import Lab
from tunnelmark.model.options import Options
from tunnelmark.plan.model import Cascade, InnerNetwork
from tunnelmark.run import cascades, gateways
from tunnelmark.run.deployment_steps import FOLDER, STAGING
from tunnelmark.run.supervisor import BESIDE, plain
from tunnelmark.run.tunnel import RunningDeployment
from tunnelmark.vpns import base
from tunnelmark.vpns.base import Driver, Mesh, MeshNode

__all__ = ["FOLDER", "STAGING", "RunningDeployment", "deploy", "log_end", "mesh_of", "plain", "prepare"]


def mesh_of(lab: Lab, *, ipv6: bool = False) -> Mesh:
    """Return the lab's nodes as a driver sees them: the hub first, without nodes that forward.

    Their underlay addresses are IPv6 if `ipv6`, else IPv4.
    """
    overlay = IPv4Network(base.OVERLAY)
    hub = lab.topology.hub
    nodes = [node for node in lab.nodes if node not in lab.topology.forwards]
    hosts = tuple(
        MeshNode(
            name,
            lab.address6(name) if ipv6 else lab.address(name),
            FOLDER,
            IPv4Interface(f"{overlay[place]}/{overlay.prefixlen}"),
        )
        for place, name in enumerate(sorted(nodes, key=lambda node: node != hub), start=1)
    )
    translated = any(router.nat is not None for router in lab.topology.routers)
    return Mesh(hosts, STAGING, hub_relays=hub is not None, translated=translated)


def prepare(
    lab: Lab,
    driver: Driver[Any],
    options: Options,
    logs: Path,
    *,
    normalised: bool = False,
    ipv6: bool = False,
    inner: InnerNetwork | None = None,
    cascade: Cascade | None = None,
    behind_gateways: bool = False,
    programs: Mapping[str, str] | None = None,
    logs_are: str = BESIDE,
) -> RunningDeployment:
    """Return a VPN that is ready to be started on a lab, with fresh keys; its daemons' logs go to the folder `logs`.

    Nothing runs on the nodes until its `start` is called. SetupFailed if the VPN cannot be deployed as asked.
    `normalised`: all overlay interfaces get the same MTU and queue. `inner`: a network to make on the overlay.
    `cascade`: tunnels on a chain of nodes. `behind_gateways`: one tunnel between two nodes that forward for the ends.
    `programs`: paths of programs to run in place of the installed ones, by name. `logs_are`: where the logs are, in
    words, for the hints of errors.
    """
    part = with_own(driver.part(options), programs or {})
    path = path_of(part.recipe, part.strict, part.own)
    if behind_gateways:
        deployment = gateways.deployment(lab, driver, options)
    elif cascade is not None:
        deployment = cascades.deployment(lab, driver, options, cascade)
    else:
        deployment = driver.deploy(mesh_of(lab, ipv6=ipv6), options)
    return RunningDeployment(lab, deployment, logs, path=path, normalised=normalised, inner=inner, logs_are=logs_are)


@asynccontextmanager
async def deploy(
    lab: Lab,
    driver: Driver[Any],
    options: Options,
    *,
    logs: Path,
    ready_timeout: float,
    normalised: bool = False,
    ipv6: bool = False,
    inner: InnerNetwork | None = None,
    cascade: Cascade | None = None,
    behind_gateways: bool = False,
) -> AsyncIterator[RunningDeployment]:
    """Deploy a VPN on a lab, wait until pings are answered in every direction, and yield the running deployment.

    The VPN runs until the lab ends. Raises SetupFailed, NotReady or DaemonDied if the VPN does not come up.
    `ready_timeout`: seconds until the pings must be answered. The other parameters are those of `prepare`.
    """
    logs.mkdir(parents=True, exist_ok=True)
    tunnel = prepare(
        *(lab, driver, options, logs),
        normalised=normalised,
        ipv6=ipv6,
        inner=inner,
        cascade=cascade,
        behind_gateways=behind_gateways,
    )
    await tunnel.start()
    await tunnel.answer(ready_timeout)
    yield tunnel


def log_end(folder: Path, characters: int = 2000) -> str:
    """Return the end of every daemon's log in a trial's folder, to show why the trial failed; "" if all are empty.

    `characters`: the most characters of each log. A line with the name of its file precedes each log.
    """
    parts = []
    for path in sorted(folder.glob("daemon.*.log")):
        if text := path.read_text(errors="replace").strip():
            parts.append(f"--- {path.name}\n{text[-characters:]}")
    return "\n".join(parts)
