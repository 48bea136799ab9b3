"""Has routers forget how they translated a node's address: from then on its packets leave by other ports (RFC 4787, section 4.3).

A home router that restarts, or whose table is full, does this. The ports before are closed: what others send there vanishes.
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
_FIRST = 32768  # the ports that routers draw from otherwise begin at 49152
_HINT = "the event could not be done as asked: it needs nft(8), and CONFIG_NF_CT_NETLINK of the kernel"


def routers_of(lab: Lab, node: str) -> tuple[Router, ...]:
    """The routers that translate a node's address on its ways to the others; WorkloadFailed if there are none."""
    topology = lab.topology
    names = {name for other in topology.nodes if other != node for name in translators(topology, node, other)}
    if not names:
        raise WorkloadFailed(
            f"no router translates the address of {node} on {topology.name}",
            hint="the event 'nat-rebinding' needs a topology with NAT, such as behind-nat, and a node behind it",
        )
    return tuple(router for router in topology.routers if router.name in names)


async def rebind(lab: Lab, routers: Sequence[Router], draw: int) -> None:
    """Have the routers forget all mappings and take other ports; each `draw` gives others."""
    await asyncio.gather(*(_rebind(lab, router, draw) for router in routers))


async def _rebind(lab: Lab, router: Router, draw: int) -> None:
    nat, node = router.nat, lab.routers[router.name]
    assert nat is not None
    outside, address = outside_of(router, lab.topology, lab)
    # What is still sent by an old port before the kernel forgets it is noted as its mapping once more: so that is forgotten twice.
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
    """What gives every mapping another port, in the words of nft(8), with the mappings before forgotten. Pure."""
    new = router_rules.outside_port(nat, draw + 2, _FIRST)
    return (
        f"table ip {_TABLE}\ndelete table ip {_TABLE}\n"  # the first line: it may not be there yet
        f"table ip {_TABLE} {{\n  chain out {{ type nat hook postrouting priority {_BEFORE};\n"
        f'    oifname "{outside}" meta l4proto {{ tcp, udp }} snat to {address}:{new}\n  }}\n}}\n'
    ) + _flush(nat)


def _flush(nat: Nat) -> str:
    spoken = "" if nat.filtering == "endpoint-independent" else "flush set ip translation spoken\n"
    return "flush map ip translation owner\n" + spoken
