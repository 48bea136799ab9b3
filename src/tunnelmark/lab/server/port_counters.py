"""Reads how many bytes and packets the links of a lab carried and dropped.

The figures come from ports and queues of the middle node, through which all links run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pyroute2 import IPRoute

from tunnelmark.lab.link_spec import LinkSpec, interface_of
from tunnelmark.lab.server import veth


def counters(middle: int, agents: Mapping[str, int], links: Sequence[LinkSpec]) -> dict[str, dict[str, int]]:
    """Return the counters of each of the middle node's ports, by the port's name. A port leads to one node of a link.

    `bytes`, `packets`: what the port sent to the node. `dropped`: packets that the port's shaper dropped. `netem`:
    packets that the port's netem dropped. `netem_sent`: packets that the node sent and that netem on the node's own
    interface dropped; the key is missing if no netem is there.

    `middle`: the process ID of the middle node's agent. `agents`: the process IDs of the agents on this machine, by
    node. `links`: all links of the lab, in its order.
    """
    found: dict[str, dict[str, int]] = {}
    with veth.inside(middle) as route:
        drops = _drops(route)
        for link in route.get_links():
            port, stats = link.get("ifname"), link.get("stats64")
            if stats is not None and "." in port:
                by_kind = drops.get(link["index"], {})
                found[port] = {
                    "bytes": stats["tx_bytes"],
                    "packets": stats["tx_packets"],
                    "dropped": by_kind.get("tbf", 0),
                    "netem": _own(by_kind),
                }
    for number, spec in enumerate(links):
        for node in spec.netem if spec.netem_on_sender else ():
            if node in agents:
                with veth.inside(agents[node]) as route:
                    (index,) = route.link_lookup(ifname=interface_of(node, links, number))
                    # Of the token bucket in front of it, if there is one, the counter includes what netem dropped.
                    found[spec.ports(number)[node]]["netem_sent"] = _drops(route).get(index, {}).get("netem", 0)
    return found


def _drops(route: IPRoute) -> dict[int, dict[str, int]]:
    """Return how many packets each queue dropped, by the number of its interface, then by its kind (`tbf`, `netem`)."""
    found: dict[int, dict[str, int]] = {}
    for queue in route.get_qdiscs():
        kinds, kind = found.setdefault(queue["index"], {}), queue.get_attr("TCA_KIND")
        # Of two netems the counter of the first has the drops of the second, which is a propagation, as well.
        kinds[kind] = max(kinds.get(kind, 0), _dropped(queue))
    return found


def _own(by_kind: Mapping[str, int]) -> int:
    """Return netem's own drops: its counter includes those of the shaper behind it (sch_netem.c: netem_dequeue())."""
    return max(by_kind.get("netem", 0) - by_kind.get("tbf", 0), 0)


def _dropped(queue: Any) -> int:
    """Return the number of packets that a queue discipline dropped, from the kernel's message about it."""
    return int(queue.get_attr("TCA_STATS2").get_attr("TCA_STATS_QUEUE")["drops"])
