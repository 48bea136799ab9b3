"""Sums up the kernel's counts of a link: bytes and packets that arrived, and packets that were dropped, and why.
Pure.
"""

from __future__ import annotations

from collections.abc import Mapping

from tunnelmark.lab.link_spec import ETHERNET, LinkSpec


def of_link(spec: LinkSpec, number: int, ports: Mapping[str, Mapping[str, int]]) -> dict[str, dict[str, int]]:
    """Return, by node of a link, what the link sent to it. A node whose port is not in `ports` is left out.

    `number`: the link's index in the lab. `ports`: the counters of the middle node's ports (`port_counters.counters`).

    `bytes`: bytes of Ethernet frames. `packets`: packets. `dropped`: packets that queues dropped. `lost`: packets that
    were lost because the profile says so. `sent_dropped`, `sent_lost`: the same for packets that the node sent, which
    netem on its own interface dropped.

    Netem has one counter for both its loss and its queue: if the profile asks for loss, all that it counts is taken as
    loss.
    """
    left_out = ETHERNET - spec.counted_headers[0]  # a port counts what the node's interface has received
    found = {}
    for node, port in spec.ports(number).items():
        if (counted := ports.get(port)) is None:
            continue
        lossy = "loss" in spec.netem.get(node, ())
        taken, sent = counted.get("netem", 0), counted.get("netem_sent", 0)
        found[node] = {
            "bytes": counted["bytes"] + left_out * counted["packets"],
            "packets": counted["packets"],
            "dropped": counted["dropped"] + (0 if lossy else taken),
            "lost": taken if lossy else 0,
            "sent_dropped": 0 if lossy else sent,
            "sent_lost": sent if lossy else 0,
        }
    return found
