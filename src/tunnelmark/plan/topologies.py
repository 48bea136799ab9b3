"""Reads a topology's text: nodes, and the links that join them, so that any two share one."""

from __future__ import annotations

from itertools import combinations

from tunnelmark.errors import nearest
from tunnelmark.plan.model import Link, Topology
from tunnelmark.plan.problems import Problems, parse, unique
from tunnelmark.plan.study_schema import TopologyFile


def parse_topology(text: str, name: str, file: str) -> Topology:
    """The topology that the text holds; `file` is what errors call it."""
    content = parse(text, file, TopologyFile)
    nodes, links = content.topology.nodes, content.link
    problems = Problems(file)
    unique(nodes, ("topology", "nodes"), problems)
    unique([link.name for link in links], ("link",), problems, field="name")
    for index, link in enumerate(links):
        unique(link.nodes, ("link", index, "nodes"), problems)
        for place, node in enumerate(link.nodes):
            if node not in nodes:
                problems.add(
                    ("link", index, "nodes", place),
                    f"the topology has no node called {node!r} (in {link.name!r})",
                    nearest(node, nodes),
                )
    for place, node in enumerate(nodes):
        if not any(node in link.nodes for link in links):
            problems.add(("topology", "nodes", place), f"no link reaches {node!r}", "name it in the nodes of a link")
    problems.raise_if_any()
    for one, other in combinations(nodes, 2):
        if not any(one in link.nodes and other in link.nodes for link in links):
            problems.add(
                ("link",),
                f"{one!r} and {other!r} share no link, and nodes do not route for each other",
                "name both in the nodes of one link; a link of more than two nodes is a switch",
            )
    problems.raise_if_any()
    return Topology(
        name,
        content.topology.title,
        tuple(nodes),
        tuple(Link(link.name, tuple(link.nodes), link.mtu) for link in links),
    )
