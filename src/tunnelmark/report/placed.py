"""Says how many cores the nodes of the lab had, and warns if nodes shared a core or had fewer cores than asked for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tunnelmark.analyse.model import Analysis
from tunnelmark.report import formatting


def head(analysis: Analysis) -> str:
    """Return a sentence on how many cores each node had and what shared them; "" if that was not recorded."""
    found = _placements(analysis)
    if not found:
        return ""
    counts = sorted({one["cores_per_node"] for one in found.values()})
    said = [f"cores per node: {formatting.listed([str(count) for count in counts])}"]
    alike: dict[str, list[str]] = {}
    for name, one in found.items():
        parts = [f"{formatting.listed(list(nodes))} share core {core}" for core, nodes in one["shared"].items()]
        alike.setdefault(", ".join([*parts, _links(one)]), []).append(name)
    for words, names in alike.items():
        said.append((f"{formatting.listed(names)}: " if len(alike) > 1 else "") + words)
    return f"{'; '.join(said)}.".replace("c", "C", 1)


def cautions(analysis: Analysis) -> tuple[str, ...]:
    """Return a warning for each core that nodes shared, and for each topology whose nodes had too few cores.

    Too few are fewer than asked for. () if there is nothing to warn of.
    """
    said = []
    for name, one in _placements(analysis).items():
        nodes = list(one["nodes"])
        if one["ends_share"]:
            said.append(
                f"Both ends of the measured path ({nodes[0]} and {nodes[-1]} of {name}) share a core: one waits while the other "
                "works, and no figure says how they would do as two machines."
            )
        for core, sharing in one["shared"].items():
            if not {nodes[0], nodes[-1]} <= set(sharing):
                said.append(
                    f"{formatting.listed(list(sharing))} of {name} share core {core}: what one of them does takes time from the other, "
                    "as on one machine and on no two."
                )
        if one["cores_per_node"] < one["cores_per_node_asked"]:
            said.append(
                f"The nodes of {name} have {_cores(one['cores_per_node'])} each and not the {one['cores_per_node_asked']} that were "
                "asked for: this machine has no more for them."
            )
    return tuple(said)


def most_cores(analysis: Analysis) -> int:
    """Return how many cores a node had at most; 0 if that was not recorded."""
    return max((int(one["cores_per_node"]) for one in _placements(analysis).values()), default=0)


def single_cores(analysis: Analysis) -> tuple[str, ...]:
    """Return a sentence for each topology whose nodes had one core each: how a VPN uses several cores is not shown."""
    said = []
    for name, one in _placements(analysis).items():
        if one["cores_per_node"] > 1:
            continue
        text = f"Each node of the topology {name} had one core, so what a VPN does with several is not shown"
        shared = [] if one["links_apart"] else _with_links(one)
        text += f"; the core of {formatting.listed(shared)} carried the links, too" if shared else ""
        said.append(f"{text}.")
    return tuple(said)


def with_links(analysis: Analysis) -> list[str]:
    """Return a sentence for each topology in which nodes shared a core with the programs that make the links."""
    return [
        f"Of {name}, {formatting.listed(nodes)} shared a core with the programs that make the links, so the laboratory may have a part in such losses."
        for name, one in _placements(analysis).items()
        if not one["links_apart"] and (nodes := _with_links(one))
    ]


def _links(one: Mapping[str, Any]) -> str:
    if one["links_apart"]:
        return f"links and command have {_cores(len({*one['links'], *one['command']}))} of their own"
    ends = (
        f"together with {formatting.listed(_with_links(one))}, whose CPU figures include what the kernel does for them"
    )
    return f"the links are on core {one['links'][0]}, {ends}"


def _with_links(one: Mapping[str, Any]) -> list[str]:
    """Return the names of the nodes that share a core with the links."""
    return [node for node, cores in one["nodes"].items() if set(cores) & set(one["links"])]


def _cores(count: int) -> str:
    return f"{count} core{'s' * (count != 1)}"


def _placements(analysis: Analysis) -> Mapping[str, Any]:
    """Return what was recorded of the cores, by topology of the plan; empty for older results, which lack it."""
    lab = analysis.results.environment.get("lab")
    found = lab.get("placement") if isinstance(lab, Mapping) else None
    if not isinstance(found, Mapping):
        return {}
    return {
        topology.name: found[topology.name] for topology in analysis.results.plan.topologies if topology.name in found
    }
