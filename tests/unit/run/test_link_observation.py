"""A look at a link ends when the link is empty, whenever that is."""

from __future__ import annotations

import asyncio
import time
from itertools import pairwise
from typing import Any, cast

import pytest

from tunnelmark.lab.labs import Lab
from tunnelmark.run import link_observation


class Link:
    """A lab with one emulated link, which reports so many packets taken and inside, one look after the other, and the last for ever."""

    def __init__(self, *looks: tuple[int, int]) -> None:
        self.left = list(looks)
        self.asked: list[float] = []

    async def link_reports(self) -> list[dict[str, Any]]:
        self.asked.append(time.monotonic())
        packets, inside = self.left.pop(0) if len(self.left) > 1 else self.left[0]
        return [{"directions": [{"packets": packets, "inside": inside}, {"packets": 5, "inside": 0}]}]


def emptied(link: Link) -> list[tuple[int, int]]:
    (report,) = asyncio.run(link_observation._emptied(cast(Lab, link)))
    return [(way["packets"], way["inside"]) for way in report["directions"]]


def test_packets_that_an_emulator_still_holds_or_takes_in_are_waited_for():
    link = Link((90, 10), (90, 10), (100, 0), (100, 0), (101, 0))
    assert emptied(link) == [(100, 0), (5, 0)]
    assert link.left == [(101, 0)], "and it is asked no further"


def test_a_link_is_asked_again_only_after_time_in_which_packets_could_arrive():
    link = Link((90, 10), (100, 0))
    assert emptied(link) == [(100, 0), (5, 0)]
    assert len(link.asked) == 3
    assert all(later - before >= link_observation._APART for before, later in pairwise(link.asked))


def test_a_link_that_is_never_empty_is_not_waited_for_for_ever(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(link_observation, "_EMPTY", 0.05)
    assert emptied(Link((100, 1))) == [(100, 1), (5, 0)]


def test_links_that_the_kernel_carries_are_empty():
    asked = []

    class Plain:
        async def link_reports(self) -> list[dict[str, Any]]:
            asked.append("a report")
            return []

    assert asyncio.run(link_observation._emptied(cast(Lab, Plain()))) == []
    assert len(asked) == 1, "and there is nothing to wait for"
