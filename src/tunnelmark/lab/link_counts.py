"""Reads what the kernel counted on a link: bytes and packets that arrived, and what was dropped, and why. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from tunnelmark.lab.link_spec import ETHERNET, LinkSpec


def of_link(spec: LinkSpec, number: int, ports: Mapping[str, Mapping[str, int]]) -> dict[str, dict[str, int]]:
    """What a link sent towards each of its nodes, from what its ports counted.

    `bytes` of Ethernet frames, `packets`, what queues `dropped`, and what was `lost` because the profile says so. With
    `sent_` before them, the last two are of what a node sent and netem on its own interface dropped.

    Netem has one counter for its loss and its queue: where the profile asks for loss, all of it is loss.
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
