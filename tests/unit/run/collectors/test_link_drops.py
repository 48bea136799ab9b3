"""What links dropped is laid to the end that sent it, and a full queue is kept apart from loss."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from tunnelmark.run.collectors._link_drops import LinkDrops

Counts = dict[str, dict[str, int]]


def counts(**drops: int) -> dict[str, int]:
    return {"dropped": 0, "lost": 0, "sent_dropped": 0, "sent_lost": 0} | drops


class Links:
    """Links that have dropped nothing until the first look, and what is given since then."""

    def __init__(self, *links: Counts, lost: Mapping[str, int] | None = None) -> None:
        self._looks = [[{node: counts() for node in ports} for ports in links], list(links)]
        self._lost = [{}, dict(lost or {})]

    async def link_counters(self) -> list[Counts]:
        return self._looks.pop(0)

    async def link_reports(self) -> list[dict[str, Any]]:
        ways = [{"name": name, "dropped": {"loss": lost, "queue": 1}} for name, lost in self._lost.pop(0).items()]
        return [{"directions": ways}]


def drops(*links: Counts, further: Mapping[tuple[str, str], Sequence[str]] | None = None) -> dict[str, float]:
    """What was dropped, without the zeros, where the source is `a` and the target `z`."""

    async def seen() -> dict[str, float]:
        found = LinkDrops(Links(*links), {"source": "a", "target": "z"}, further or {})
        await found.begin()
        return await found.since()

    return {name: count for name, count in asyncio.run(seen()).items() if count}


def test_what_a_port_towards_the_target_dropped_was_sent_by_the_source() -> None:
    assert drops({"a": counts(), "z": counts(dropped=5, lost=2)}) == {"drop_link_source": 5, "drop_lossy_source": 2}


def test_what_netem_on_an_end_dropped_was_sent_by_that_end() -> None:
    found = drops({"a": counts(sent_dropped=4), "z": counts(sent_lost=1)})
    assert found.pop("drop_refused_source") == 4
    assert found == {"drop_link_source": 4, "drop_lossy_target": 1}


def test_on_a_further_link_the_ends_are_those_whose_traffic_goes_that_way() -> None:
    further = {("r", "z"): ["source"], ("r", "a"): ["target"]}
    first, second = {"a": counts(), "r": counts()}, {"r": counts(sent_dropped=6), "z": counts()}
    assert drops(first, second, further=further) == {"drop_link_source": 6}


def test_what_an_emulated_lan_lost_on_the_way_to_an_end_was_sent_by_the_other_end() -> None:
    """On a link of three nodes a direction is "all to c". What it lost was in no figure, and a VPN was said to have lost it inside."""

    async def seen() -> dict[str, float]:
        lost = {"all to a": 2, "all to b": 50, "all to z": 7}
        found = LinkDrops(Links({}, lost=lost), {"source": "a", "target": "z"}, {})
        await found.begin()
        return await found.since()

    assert asyncio.run(seen()) == {
        "drop_link_source": 1,
        "drop_lossy_source": 7,
        "drop_link_target": 1,
        "drop_lossy_target": 2,
    }


def test_what_an_emulated_link_of_two_nodes_lost_is_laid_to_its_sender() -> None:
    async def seen() -> dict[str, float]:
        found = LinkDrops(Links({}, lost={"a to z": 3}), {"source": "a", "target": "z"}, {})
        await found.begin()
        return await found.since()

    assert asyncio.run(seen()) == {"drop_link_source": 1, "drop_lossy_source": 3}
