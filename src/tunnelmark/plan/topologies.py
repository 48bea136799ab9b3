"""Reads a topology file: nodes, routers and links; and checks that any two nodes can reach each other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations, pairwise

from tunnelmark.errors import TunnelmarkError, nearest
from tunnelmark.plan.model import TO, Link, Profile, Topology
from tunnelmark.plan.problems import Problems, parse, unique
from tunnelmark.plan.profiles import JOIN
from tunnelmark.plan.routers import ALL_KINDS, Nat, Router
from tunnelmark.plan.routes import reaches
from tunnelmark.plan.study_schema import LinkTable, RouterTable, TopologyFile


def parse_topology(text: str, name: str, file: str, profile: Callable[[str], Profile]) -> Topology:
    """Return the topology that a file's text states. PlanError, with every problem of the file, if it cannot be used.

    `file`: the name of the file in errors. `profile`: a function that returns the profile of a name.
    """
    content = parse(text, file, TopologyFile)
    nodes = content.topology.nodes
    links = [link.model_copy(update={"nodes": nodes}) if link.nodes == "all" else link for link in content.link]
    members = [*nodes, *(router.name for router in content.router)]
    problems = Problems(file)
    unique(nodes, ("topology", "nodes"), problems)
    unique([link.name for link in links], ("link",), problems, field="name")
    _routers(content.router, nodes, links, problems)
    _members(links, members, problems)
    _names(nodes, content.router, problems)
    for place, node in enumerate(nodes):
        if not any(node in link.nodes for link in links):
            problems.add(("topology", "nodes", place), f"no link reaches {node!r}", "name it in the nodes of a link")
    if content.topology.hub is not None and content.topology.hub not in nodes:
        hub = content.topology.hub
        problems.add(("topology", "hub"), f"the topology has no node called {hub!r}", nearest(hub, nodes))
    if content.topology.forwards:
        _chain(content.topology.forwards, nodes, links, problems)
        if content.topology.hub in content.topology.forwards:
            problems.add(
                ("topology", "hub"), f"{content.topology.hub!r} only forwards", "name the first node or the last"
            )
    problems.raise_if_any()
    made = Topology(
        name,
        content.topology.title,
        tuple(nodes),
        tuple(_link(link, place, profile, problems) for place, link in enumerate(links)),
        tuple(_router(table) for table in content.router),
        content.topology.hub,
        tuple(content.topology.forwards),
    )
    problems.raise_if_any()
    _reachable(made, problems)
    problems.raise_if_any()
    return made


def parts_of(name: str) -> tuple[str, list[str], list[str]]:
    """Split a topology's name: the name of its file, the kinds of routers, the ends of the traffic (`a-to-b`)."""
    own, *parts = name.split(JOIN)
    ends = [part for part in parts if TO in part and part not in ALL_KINDS]
    return own, [part for part in parts if part not in ends], ends


def as_shown(name: str) -> str:
    """Return a topology's name as cells and reports have it: with kinds before ends, however it was stated."""
    own, kinds, ends = parts_of(name)
    return JOIN.join((own, *kinds, *ends))


_DISTINCT = 9
"""How many letters of a node's name begin an interface's name; a link number and a letter follow (IFNAMSIZ: 15)."""

MIDDLE = "middle"
"""The name of the laboratory's node that all links run through; no node or router of a topology may have it."""


def _names(nodes: Sequence[str], routers: Sequence[RouterTable], problems: Problems) -> None:
    """Note names of nodes and routers that the laboratory uses, or that would give two interfaces one name."""
    places: list[tuple[str, tuple[str | int, ...]]] = [
        *((node, ("topology", "nodes", place)) for place, node in enumerate(nodes)),
        *((router.name, ("router", place, "name")) for place, router in enumerate(routers)),
    ]
    seen: dict[str, str] = {}
    for name, place in places:
        if name == MIDDLE:
            problems.add(place, f"{name!r} is the laboratory's own node", "choose another name")
        other = seen.setdefault(name[:_DISTINCT], name)
        if other != name:
            problems.add(
                place,
                f"{name!r} and {other!r} have the same first {_DISTINCT} letters, which name their interfaces",
                "put what differs first",
            )


def _members(links: Sequence[LinkTable], members: Sequence[str], problems: Problems) -> None:
    for index, link in enumerate(links):
        unique(link.nodes, ("link", index, "nodes"), problems)
        for place, node in enumerate(link.nodes):
            if node not in members:
                problems.add(
                    ("link", index, "nodes", place),
                    f"the topology has no node or router called {node!r} (in {link.name!r})",
                    nearest(node, members),
                )


def _routers(
    routers: Sequence[RouterTable], nodes: Sequence[str], links: Sequence[LinkTable], problems: Problems
) -> None:
    unique([*nodes, *(router.name for router in routers)], ("router",), problems, field="name") if routers else None
    for place, router in enumerate(routers):
        own = [link.name for link in links if router.name in link.nodes]
        if len(own) < 2:
            problems.add(
                ("router", place, "name"),
                f"{router.name!r} joins {len(own)} links",
                "name it in the nodes of two or more",
            )
        if router.outside is not None and router.outside not in own:
            problems.add(
                ("router", place, "outside"),
                f"{router.name!r} is on no link called {router.outside!r}",
                nearest(router.outside, own),
            )
        if router.outside is None and (router.nat or router.allow):
            what = "nat" if router.nat else "allow"
            problems.add(
                ("router", place, "outside"),
                f"is missing: {what} needs to know the side of the Internet",
                f"one of {', '.join(own)}",
            )


def _chain(forwards: Sequence[str], nodes: Sequence[str], links: Sequence[LinkTable], problems: Problems) -> None:
    """Note if `forwards` is not all nodes between the first and the last, or links do not join each to the next."""
    pairs = [set(pair) for pair in pairwise(nodes)]
    if list(forwards) != list(nodes[1:-1]) or [set(link.nodes) for link in links] != pairs:
        problems.add(
            ("topology", "forwards"),
            "nodes that forward must be those between the first and the last, and each link joins one node to the next",
            "list the links in the order of the nodes; for anything else name routers",
        )


def _router(table: RouterTable) -> Router:
    nat = table.nat
    return Router(
        table.name,
        table.outside,
        None if nat is None else Nat(nat.mapping, nat.filtering, nat.ports, nat.hairpin, nat.timeout),
        tuple(table.block),
        tuple(table.allow),
        table.largest,
        table.udp_rate,
    )


def _link(table: LinkTable, place: int, profile: Callable[[str], Profile], problems: Problems) -> Link:
    own = None
    if table.profile is not None:
        try:
            own = profile(table.profile)
        except TunnelmarkError as error:
            problems.add(("link", place, "profile"), error.message, error.hint)
        if own is not None and own.auto is not None:
            problems.add(
                ("link", place, "profile"), f"{own.name} takes its rate from the machine", "name one with a fixed rate"
            )
    return Link(table.name, tuple(table.nodes), table.mtu, own)


def _reachable(topology: Topology, problems: Problems) -> None:
    """Note each two nodes that no links and routers join; NAT and filters do not count."""
    plain = topology.open
    for one, other in combinations(topology.nodes, 2):
        if not reaches(plain, one, other):
            problems.add(
                ("link",),
                f"{one!r} and {other!r} are joined by no link and no router",
                "name both in the nodes of one link (of more than two it is a switch), or let routers join their links",
            )
