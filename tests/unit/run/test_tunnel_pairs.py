"""Which nodes ping each other before a trial."""

from __future__ import annotations

from itertools import combinations, pairwise

from tunnelmark.run.tunnel import asked


def test_of_few_nodes_each_two_do():
    assert {frozenset(pair) for pair in asked("abcd")} == {frozenset(pair) for pair in combinations("abcd", 2)}


def test_of_many_each_does_with_the_first_and_those_beside_it():
    nodes = [f"n{number}" for number in range(40)]
    found = {frozenset(pair) for pair in asked(nodes)}
    assert len(asked(nodes)) == len(found) == 38 + 39
    assert {frozenset((nodes[0], other)) for other in nodes[1:]} <= found
    assert {frozenset(two) for two in pairwise(nodes)} <= found
