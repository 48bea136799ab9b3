"""Decides which cores belong to which node, to the links and to the command. Pure, so it can be tried for any machine.

A *core* is what the kernel schedules on: a thread of a processor core, if that has several. The rules, in their order:

1. The two ends of the measured path, the first node and the last, never share a core if there are at least two cores.
2. From three cores on, one belongs to the links and the command, and to no node.
3. Every node has the same number of cores, the one that was asked for, however large the machine is; fewer only if the
   machine has too few (`short`).
4. Two nodes are never on threads of one processor core while a whole processor core is free. A node that has several
   cores takes whole processor cores.
5. If there are more nodes than cores for nodes, each end has a core of its own, and the nodes between the ends share
   the other cores. If there are only two cores for nodes, the nodes between the ends share the cores of the ends.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Whole = tuple[int, ...]
"""A processor core: the numbers of its threads (one or more)."""


@dataclass(frozen=True, slots=True)
class Placement:
    """Which cores the nodes, the links and the command run on.

    `nodes`: the cores of each node, by its name.
    `links`: the cores of the emulators and the middle node.
    `command`: the cores of the command; these are the links' cores if no whole processor core is left for it.
    `asked`: the number of cores that each node should have.

    With fewer than three cores, the links share a core with a node, and the command may use every core.
    """

    nodes: Mapping[str, tuple[int, ...]]
    links: tuple[int, ...]
    command: tuple[int, ...]
    asked: int

    @property
    def each(self) -> int:
        """How many cores each node has."""
        return len(next(iter(self.nodes.values())))

    @property
    def short(self) -> bool:
        """Whether the nodes have fewer cores than was asked for."""
        return self.each < self.asked

    @property
    def shared(self) -> Mapping[int, tuple[str, ...]]:
        """The names of the nodes that share a core, by core; cores of only one node are left out."""
        holders: dict[int, list[str]] = {}
        for node, cores in self.nodes.items():
            for core in cores:
                holders.setdefault(core, []).append(node)
        return {core: tuple(nodes) for core, nodes in sorted(holders.items()) if len(nodes) > 1}

    @property
    def links_apart(self) -> bool:
        """Whether the cores of the links belong to no node."""
        return not set(self.links) & {core for cores in self.nodes.values() for core in cores}

    @property
    def ends_share(self) -> bool:
        """Whether both ends of the measured path have a core in common."""
        first, *_, last = self.nodes.values()
        return bool(set(first) & set(last))

    def plain(self) -> dict[str, Any]:
        """Return the placement as a JSON object, for the record."""
        return {
            "cores_per_node": self.each,
            "cores_per_node_asked": self.asked,
            "nodes": {node: list(cores) for node, cores in self.nodes.items()},
            "links": list(self.links),
            "links_apart": self.links_apart,
            "command": list(self.command),
            "ends_share": self.ends_share,
            "shared": {str(core): list(nodes) for core, nodes in self.shared.items()},
        }


def place(nodes: Sequence[str], wholes: Sequence[Whole], *, each: int = 1, links: int = 1) -> Placement:
    """Return the placement of a topology's nodes, whose first and last are the ends, on these processor cores.

    `each`: the number of cores that a node should have. `links`: how many programs carry links; each gets a processor
    core of its own if enough are left. ValueError for fewer than two nodes, no core at all, or a number below one.
    """
    if len(nodes) < 2 or not any(wholes) or min(each, links) < 1:
        raise ValueError(f"{len(nodes)} nodes with {each} cores each cannot be placed on {len(wholes)} processor cores")
    machine = sorted(tuple(sorted(threads)) for threads in wholes if threads)
    count = sum(map(len, machine))
    for_nodes = count - 1 if count >= 3 else count
    number = min(each, for_nodes // len(nodes))
    order = (nodes[0], nodes[-1], *nodes[1:-1])
    held = _apart(order, machine, number) if number else _shared(order, _by_thread(machine)[:for_nodes])
    own = {node: tuple(sorted(held[node])) for node in nodes}
    taken = {core for cores in own.values() for core in cores}
    free = [core for core in _by_thread(machine) if core not in taken]
    if not free:
        return Placement(own, (_least_loaded(own, order),), tuple(sorted(taken)), each)
    idle = [threads for threads in machine if not taken & set(threads)]
    # Without an idle processor core the last thread: the ends have the first cores, whose other threads come first.
    carriers = tuple(threads[0] for threads in idle[: links if len(idle) > links else 1]) or (free[-1],)
    # Idle threads next to a node's stay idle; the command shares with the links instead.
    rest = tuple(core for threads in idle if threads[0] not in carriers for core in threads)
    return Placement(own, carriers, tuple(sorted(rest)) or carriers, each)


def _by_thread(machine: Sequence[Whole]) -> list[int]:
    """Return all cores: the first thread of every processor core, then the second ones, and so on."""
    most = max(map(len, machine))
    return [threads[place] for place in range(most) for threads in machine if place < len(threads)]


def _apart(order: Sequence[str], machine: Sequence[Whole], number: int) -> dict[str, list[int]]:
    """Return `number` cores for each node, all different: whole processor cores while they last, then threads."""
    unused, spare = list(machine), list[int]()
    held: dict[str, list[int]] = {}
    for node in order:
        mine: list[int] = []
        while unused and len(mine) < number:
            whole = unused.pop(0)
            wanted = number - len(mine)
            mine += whole[:wanted]
            spare[:0] = whole[wanted:]  # threads next to the ends' are taken last
        while len(mine) < number:
            mine.append(spare.pop(0))
        held[node] = mine
    return held


def _shared(order: Sequence[str], seats: Sequence[int]) -> dict[str, list[int]]:
    """Return one core for each node where cores are few: the ends have their own, the others take turns on the rest."""
    source, target, *others = order
    between = seats[2:] or seats
    held = {source: [seats[0]], target: [seats[min(1, len(seats) - 1)]]}
    return held | {node: [between[turn % len(between)]] for turn, node in enumerate(others)}


def _least_loaded(own: Mapping[str, Sequence[int]], order: Sequence[str]) -> int:
    """Return the core with the fewest nodes, rather the receiving end's: sending, with the generator, is more work."""
    loads: dict[int, int] = {}
    for node in (order[1], order[0], *order[2:]):
        for core in own[node]:
            loads[core] = loads.get(core, 0) + 1
    return min(loads, key=loads.__getitem__)
