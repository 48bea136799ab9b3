"""An outage lasts at least as long as was asked for, however long its beginning took, and is known by the ports that it takes down."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tunnelmark.lab.addressing import specs_of
from tunnelmark.lab.underlay import Underlay
from tunnelmark.plan.model import Link, Profile, Topology
from tunnelmark.run import events
from tunnelmark.workloads.base import Event

SLOW = 0.3  # seconds that taking the link down takes, more than the outage


class SlowHand:
    """Takes long to begin an outage, and no time to end it."""

    async def do(self, event: Event) -> dict[str, Any]:
        if event.kind == "link-down":
            await asyncio.sleep(SLOW)
        return {}


def test_a_link_that_goes_down_slowly_is_down_as_long_as_was_asked_for(tmp_path: Path) -> None:
    asked = [Event(0.0, "link-down", "b"), Event(0.1, "link-up", "b"), Event(0.15, "link-down", "b")]
    hand = cast(Any, SlowHand())
    asyncio.run(events._in_turn(hand, asked, time.monotonic(), tmp_path / "events"))
    down, up, again = map(json.loads, (tmp_path / "events").read_text().splitlines())
    assert down["ended"] - down["begun"] >= SLOW
    assert up["begun"] - down["ended"] >= 0.1
    assert again["begun"] >= up["ended"], "what is late begins at once, and is not late by what was before it"


TWO_LINKS = Topology("two", "T", ("a", "b", "c"), (Link("one", ("a", "b")), Link("other", ("b", "c"))))


@pytest.mark.parametrize(
    ("kind", "node", "ports"),
    [
        ("link-down", "b", {"b.0"}),  # its first interface alone
        ("link-down", "c", {"c.1"}),
        ("power-off", "b", {"b.0", "b.1"}),
        ("power-off", "*", {"a.0", "b.0", "b.1", "c.1"}),
        ("partition", "b", set()),
        ("restart", "b", set()),
    ],
)
def test_events_that_take_links_down_are_known_by_the_middle_node_s_ports(
    kind: Any, node: str, ports: set[str]
) -> None:
    underlay = Underlay(specs_of(TWO_LINKS, Profile("p", "T", "S")))
    lab: Any = SimpleNamespace(nodes=dict.fromkeys(TWO_LINKS.nodes), ports_to=underlay.ports_to)
    assert events.taken_down(lab, [Event(0.0, kind, node), Event(1.0, "link-up", node)]) == ports
