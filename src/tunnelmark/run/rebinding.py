"""Makes routers forget how they translated a node's address: then its packets leave from other ports (RFC 4787, 4.3).

A home router that restarts, or whose table is full, does this. The old ports are closed: packets to them are dropped.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from tunnelmark.errors import LabError, WorkloadFailed
from tunnelmark.lab import router_rules
from tunnelmark.lab.labs import Lab
from tunnelmark.lab.routing import outside_of
from tunnelmark.linux import conntrack
from tunnelmark.plan.routers import Nat, Router
from tunnelmark.plan.routes import translators

_TABLE = "rebinding"
_BEFORE = 99  # a chain's priority: before the router's own translation (100); the first that names a port decides
_FIRST = 32768  # the first port to draw from; without this event, routers draw from 49152 on
_HINT = "the event could not be done as asked: it needs nft(8), and CONFIG_NF_CT_NETLINK of the kernel"


def routers_of(lab: Lab, node: str) -> tuple[Router, ...]:
    """Return the routers that translate a node's address on paths to other nodes; WorkloadFailed if there are none."""
    topology = lab.topology
    names = {name for other in topology.nodes if other != node for name in translators(topology, node, other)}
    if not names:
        raise WorkloadFailed(
            f"no router translates the address of {node} on {topology.name}",
            hint="the event 'nat-rebinding' needs a topology with NAT, such as behind-nat, and a node behind it",
        )
    return tuple(router for router in topology.routers if router.name in names)


async def rebind(lab: Lab, routers: Sequence[Router], draw: int) -> None:
    """Make the routers forget all mappings and use other ports, which depend on `draw`."""
    await asyncio.gather(*(_rebind(lab, router, draw) for router in routers))


async def _rebind(lab: Lab, router: Router, draw: int) -> None:
    nat, node = router.nat, lab.routers[router.name]
    assert nat is not None
    outside, address = outside_of(router, lab.topology, lab)
    # A packet that still uses an old port before the kernel forgets it stores the old mapping again. So the mappings
    # are flushed twice.
    for words, forget in ((rules(nat, outside, address, draw), True), (_flush(nat), False)):
        done = await node.run(["nft", "-f", "-"], stdin=words)
        if done.code != 0:
            raise LabError(f"nft on {router.name}: {done.stderr.strip()}", hint=_HINT)
        if forget:
            try:
                conntrack.forget(node.pid)
            except OSError as error:
                raise LabError(f"the connections of {router.name} stay: {error}", hint=_HINT) from error


def rules(nat: Nat, outside: str, address: str, draw: int) -> str:
    """Return the nft(8) rules that give every mapping another port, and flush the old mappings. Pure.

    `outside`: the router's outside interface; `address`: its address there. The ports depend on `draw`.
    """
    new = router_rules.outside_port(nat, draw + 2, _FIRST)
    return (
        f"table ip {_TABLE}\ndelete table ip {_TABLE}\n"  # the first line: it may not be there yet
        f"table ip {_TABLE} {{\n  chain out {{ type nat hook postrouting priority {_BEFORE};\n"
        f'    oifname "{outside}" meta l4proto {{ tcp, udp }} snat to {address}:{new}\n  }}\n}}\n'
    ) + _flush(nat)


def _flush(nat: Nat) -> str:
    spoken = "" if nat.filtering == "endpoint-independent" else "flush set ip translation spoken\n"
    return "flush map ip translation owner\n" + spoken
