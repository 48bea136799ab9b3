"""Which cores belong to whom: the rules of `placement` on every machine of 1 to 64 cores with 2 to 100 nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import pytest

from tunnelmark.host.placement import Placement, Whole, place
from tunnelmark.plan.files import Files
from tunnelmark.plan.load import load_topology

NODES = (2, 3, 4, 9, 16, 33, 100)
EACH = (1, 2, 3, 8)


def machines() -> Iterator[list[Whole]]:
    """Machines of 1 to 64 cores: plain, in pairs numbered as Intel and as AMD do, four threads, pairs beside single ones."""
    for cores in range(1, 65):
        yield [(core,) for core in range(cores)]
        if cores % 2 == 0:
            yield [(core, core + cores // 2) for core in range(cores // 2)]
            yield [(core, core + 1) for core in range(0, cores, 2)]
        if cores % 4 == 0:
            yield [tuple(range(core, core + 4)) for core in range(0, cores, 4)]
        if cores > 3:
            pairs = cores // 3
            yield [(2 * pair, 2 * pair + 1) for pair in range(pairs)] + [(core,) for core in range(2 * pairs, cores)]
        if cores > 4:  # what a container may be left: one thread of a pair is another's
            yield [(0,), *((core, core + 1) for core in range(1, cores - 1, 2))]


MACHINES = list(machines())


def placed(count: int, each: int) -> Iterator[tuple[list[Whole], Placement]]:
    names = [f"n{number}" for number in range(count)]
    for machine in MACHINES:
        for links in (1, 3):
            yield machine, place(names, machine, each=each, links=links)


def whole_of(machine: Sequence[Whole]) -> dict[int, Whole]:
    return {core: threads for threads in machine for core in threads}


@pytest.mark.parametrize("count", NODES)
@pytest.mark.parametrize("each", EACH)
def test_the_rules_hold_on_every_machine(count: int, each: int):
    for machine, found in placed(count, each):
        cores = {core for threads in machine for core in threads}
        first, *_, last = found.nodes.values()
        used = Counter(core for own in found.nodes.values() for core in own)
        about = f"{count} nodes of {each} on {machine}: {found}"

        assert set(used) | set(found.links) | set(found.command) <= cores, about
        assert all(len(set(own)) == found.each for own in found.nodes.values()), f"not all have the same: {about}"
        assert 1 <= found.each <= each, f"a node has more than was asked for: {about}"
        if len(cores) >= 2:
            assert not set(first) & set(last) and not found.ends_share, f"the ends share: {about}"
        if len(cores) >= 3:
            assert found.links_apart and not set(found.command) & set(used), (
                f"links or command on a node's core: {about}"
            )
        room = len(cores) - (len(cores) >= 3)
        assert found.each == max(min(each, room // count), 1), f"not what there is room for: {about}"
        assert (max(used.values()) == 1) == (count <= room), f"shared though there is room, or the other way: {about}"
        if not found.shared:
            continue
        assert found.each == 1 and set(used) == set(sorted(used)[:room]) and len(used) == min(room, count), about
        if room >= 3:
            assert used[first[0]] == used[last[0]] == 1, f"an end has company: {about}"
            between = [number for core, number in used.items() if core not in (*first, *last)]
        else:
            between = list(used.values())
        assert max(between) - min(between) <= 1, f"others are not spread evenly: {about}"


@pytest.mark.parametrize("count", NODES)
@pytest.mark.parametrize("each", EACH)
def test_threads_of_one_processor_core_go_to_two_nodes_only_when_no_whole_one_is_free(count: int, each: int):
    for machine, found in placed(count, each):
        whole = whole_of(machine)
        holders: dict[Whole, set[str]] = {}
        for node, own in found.nodes.items():
            for core in own:
                holders.setdefault(whole[core], set()).add(node)
        free = [
            threads for threads in machine if not set(threads) & ({*found.links} | set().union(*found.nodes.values()))
        ]
        about = f"{count} nodes of {each} on {machine}: {found}"
        if any(len(nodes) > 1 for nodes in holders.values()):
            assert free == [], f"siblings though a whole core is free: {about}"
        first, *_, last = found.nodes.values()
        if len(machine) >= 2 * found.each:
            assert not {whole[core] for core in first} & {whole[core] for core in last}, (
                f"siblings are the ends: {about}"
            )
        if found.links_apart and found.command != found.links:
            assert all(whole[core] not in holders for core in found.command), f"the command is beside a node: {about}"


@pytest.mark.parametrize("count", NODES)
@pytest.mark.parametrize("each", EACH)
def test_a_larger_machine_never_gives_a_node_more_than_was_asked_for(count: int, each: int):
    names = [f"n{number}" for number in range(count)]
    sizes = [place(names, [(core,) for core in range(cores)], each=each).each for cores in range(1, 65)]
    assert sizes == sorted(sizes) and sizes[-1] <= each
    if count * each < 64:
        assert sizes[count * each :] == [each] * (64 - count * each)


def test_the_order_in_which_the_machine_is_read_changes_nothing():
    machine = [(0, 4), (1, 5), (2, 6), (3, 7)]
    shuffled = [(6, 2), (0, 4), (7, 3), (5, 1)]
    assert place("abc", machine, each=2) == place("abc", shuffled, each=2)


@pytest.mark.parametrize(
    ("machine", "each", "nodes", "links", "command"),
    [
        ([(0,), (1,)], 1, {"a": (0,), "b": (1,)}, (1,), (0, 1)),
        ([(0,), (1,), (2,)], 1, {"a": (0,), "b": (1,)}, (2,), (2,)),
        ([(core,) for core in range(4)], 1, {"a": (0,), "b": (1,)}, (2,), (3,)),
        ([(core,) for core in range(4)], 2, {"a": (0,), "b": (1,)}, (2,), (3,)),
        ([(core,) for core in range(8)], 2, {"a": (0, 1), "b": (2, 3)}, (4,), (5, 6, 7)),
        ([(0, 2), (1, 3)], 1, {"a": (0,), "b": (1,)}, (3,), (3,)),
        ([(0, 4), (1, 5), (2, 6), (3, 7)], 1, {"a": (0,), "b": (1,)}, (2,), (3, 7)),
        ([(0, 4), (1, 5), (2, 6), (3, 7)], 2, {"a": (0, 4), "b": (1, 5)}, (2,), (3, 7)),
    ],
)
def test_a_pair_on_usual_machines(
    machine: list[Whole], each: int, nodes: dict[str, tuple[int, ...]], links: tuple[int, ...], command: tuple[int, ...]
):
    found = place("ab", machine, each=each)
    assert (dict(found.nodes), found.links, found.command) == (nodes, links, command)


@pytest.mark.parametrize("topology", ["pair", "lan-3", "lan-9"])
@pytest.mark.parametrize("cores", range(2, 17))
def test_no_shipped_topology_has_both_ends_on_one_core(topology: str, cores: int):
    """The thesis' study, which has three nodes, had its sender and its receiver on one of two cores."""
    nodes = load_topology(topology, Files.standard()).nodes
    found = place(nodes, [(core,) for core in range(cores)])
    assert not set(found.nodes[nodes[0]]) & set(found.nodes[nodes[-1]])
    assert not found.ends_share


def test_three_nodes_on_two_cores_leave_the_links_to_the_receiver():
    found = place("abc", [(0,), (1,)])
    assert (dict(found.nodes), found.links, dict(found.shared)) == (
        {"a": (0,), "b": (0,), "c": (1,)},
        (1,),
        {0: ("a", "b")},
    )


def test_one_core_is_everybodys_and_says_so():
    found = place("ab", [(0,)])
    assert found.ends_share and not found.links_apart
    assert found.plain()["shared"] == {"0": ["a", "b"]}


@pytest.mark.parametrize(
    ("nodes", "machine", "each"), [("a", [(0,)], 1), ("ab", [], 1), ("ab", [()], 1), ("ab", [(0,)], 0)]
)
def test_what_cannot_be_placed_is_refused(nodes: str, machine: list[Whole], each: int):
    with pytest.raises(ValueError, match="cannot be placed"):
        place(nodes, machine, each=each)
