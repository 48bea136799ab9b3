"""Draws a topology, from the first node on the left: nodes, routers and links; also as a tree for a terminal."""

from __future__ import annotations

from collections import deque

from markupsafe import Markup
from rich.tree import Tree

from tunnelmark.record.results import TopologyInfo
from tunnelmark.report.figures import svg

_BOX = (116.0, 46.0)  # width and height of a node
_ROW = 84.0  # from one node to the next below it
_STYLE = (
    "<style>svg { background: #fff; font: 13px sans-serif } .arm { font-weight: 600 } .small { font-size: 11.5px } "
    ".note { font-size: 11.5px; fill: #555 } .box { fill: #f4f4f0; stroke: #777 } .wire { stroke: #222; stroke-width: 1.6 }</style>"
)
_OF_STUDY = "the study's profile"


def picture(topology: TopologyInfo) -> Markup:
    """Draw each node as a box, in columns by the number of links between it and the first node.

    A link that joins two nodes is drawn as a line, a link that joins more nodes as a switch.
    """
    columns = _columns(topology)
    rows = max(len(column) for column in columns)
    height = _ROW * rows + 26
    step = (svg.WIDTH - _BOX[0] - 8) / max(len(columns) - 1, 1)
    place = {
        name: (4 + _BOX[0] / 2 + step * x, height * (y + 0.5) / len(column))
        for x, column in enumerate(columns)
        for y, name in enumerate(column)
    }
    parts: list[str] = []
    labels: list[str] = []
    for link, members in topology.links.items():
        points = [place[name] for name in members]
        x, y = (sum(axis) / len(points) for axis in zip(*points, strict=True))
        for point in points:
            parts.append(svg.line(*point, x, y, "wire"))
        if len(points) > 2:
            parts.append(svg.element("circle", cx=x, cy=y, r=5, class_="box"))
        labels.append(svg.text(x, y - 10, link, "arm small", "middle"))
        labels.append(svg.text(x, y + 18, topology.own.get(link, _OF_STUDY), "note", "middle"))
    for name, (x, y) in place.items():
        parts += _box(x, y, name, "router" if name in topology.routers else "node")
        if words := topology.routers.get(name):
            labels.append(svg.text(x, y + _BOX[1] / 2 + 14, words, "note", "middle"))
    told = "; ".join(f"{link} joins {', '.join(members)}" for link, members in topology.links.items())
    return svg.picture(height, f"{topology.title}: {told}", [*parts, *labels])


def file(topology: TopologyInfo) -> str:
    """Return the picture as the text of an SVG file, on a white background."""
    drawn = str(picture(topology))
    return drawn.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1).replace(
        "</title>", f"</title>{_STYLE}", 1
    )


def tree(topology: TopologyInfo) -> Tree:
    """Return links and nodes as a tree, seen from the first node; a node that was shown before is only named."""
    start = topology.nodes[0]
    root = Tree(start)
    shown, links = {start}, set[str]()
    begun = deque([(start, root)])
    while begun:
        name, branch = begun.popleft()
        for link, members in topology.links.items():
            if name not in members or link in links:
                continue
            links.add(link)
            on = branch.add(f"{link} ({topology.own.get(link, _OF_STUDY)})")
            for other in members:
                if other == name:
                    continue
                words = f": {topology.routers[other]}" if topology.routers.get(other) else ""
                kind = f"  router{words}" if other in topology.routers else ""
                further = on.add(f"{other}{kind}" if other not in shown else f"{other} (above)")
                if other not in shown:
                    shown.add(other)
                    begun.append((other, further))
    return root


def _columns(topology: TopologyInfo) -> list[list[str]]:
    """Return all nodes and routers in columns, by the number of links between them and the first node."""
    start = topology.nodes[0]
    far, begun = {start: 0}, deque([start])
    while begun:
        name = begun.popleft()
        for members in topology.links.values():
            for other in members if name in members else ():
                if other not in far:
                    far[other] = far[name] + 1
                    begun.append(other)
    return [[name for name, links in far.items() if links == column] for column in range(max(far.values()) + 1)]


def _box(x: float, y: float, name: str, kind: str) -> list[str]:
    width, height = _BOX
    corners = {"x": x - width / 2, "y": y - height / 2, "width": width, "height": height}
    return [
        svg.element("rect", **corners, rx=4 if kind == "node" else 20, class_="box"),
        svg.text(x, y - 1, name, "arm", "middle"),
        svg.text(x, y + 15, kind, "note", "middle"),
    ]
