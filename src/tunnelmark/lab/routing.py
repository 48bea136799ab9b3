"""Gives nodes and routers of a lab their routes, rules and kernel settings once their links are there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tunnelmark.errors import LabError
from tunnelmark.lab import router_rules
from tunnelmark.lab.addressing import route_commands
from tunnelmark.lab.link_spec import LinkSpec
from tunnelmark.lab.node import Node
from tunnelmark.lab.underlay import Underlay
from tunnelmark.plan.model import Topology
from tunnelmark.plan.routers import Router


def granted(sysctls: Mapping[str, str], refused: Mapping[str, Sequence[str]]) -> None:
    """Raise LabError if the kernel refused one of the settings `sysctls` on a node; ignore other refused settings.

    `refused`: by node, what the kernel refused, each as "setting: reason".
    """
    for node, refusals in refused.items():
        for refusal in refusals:
            if refusal.partition(":")[0] in sysctls:
                raise LabError(
                    f"the kernel refuses node {node} {refusal}",
                    hint="a network namespace of this kernel cannot set it; leave it out, or set it on the whole machine before the run",
                )


def outside_of(router: Router, topology: Topology, underlay: Underlay) -> tuple[str, str]:
    """Return a router's interface on its outside link, and its IPv4 address there."""
    number = next(number for number, link in enumerate(topology.links) if link.name == router.outside)
    interface, address = underlay.on_link(router.name, number)
    return interface, str(address)


async def route(node: Node, topology: Topology, links: Sequence[LinkSpec]) -> None:
    """Set a node's routes and, if the node is a router, its rules, timeouts and rate limits.

    LabError if the kernel refuses any of them.
    """
    steps = [(["ip", "-batch", "-"], "\n".join(route_commands(topology, node.name, links)))]
    if (router := next((one for one in topology.routers if one.name == node.name), None)) is not None:
        underlay = Underlay(links)
        outside, address = outside_of(router, topology, underlay) if router.outside is not None else ("", "")
        steps.append((["nft", "-f", "-"], router_rules.rules(router, outside, address)))
        times = [f"{name} = {value}" for name, value in router_rules.mapping_times(router).items()]
        steps.append((["sysctl", "-q", "-p", "-"], "\n".join(times)))
        steps.append(
            (["tc", "-batch", "-"], "\n".join(router_rules.queues(router, tuple(underlay.interfaces(node.name)))))
        )
    for argv, words in steps:
        if not words:
            continue
        done = await node.run(argv, stdin=words)
        if done.code != 0:
            raise LabError(f"{argv[0]} on {node.name}: {done.stderr.strip()}", hint=f"it was given: {words}")
