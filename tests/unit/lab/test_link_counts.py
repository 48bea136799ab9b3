"""What netem drops is loss where the profile asks for loss, and its full queue where it does not."""

from __future__ import annotations

import pytest

from tunnelmark.lab.link_counts import of_link
from tunnelmark.lab.link_spec import LinkSpec

NODES = {"a": "10.50.0.1/24", "b": "10.50.0.2/24"}


def port(**counted: int) -> dict[str, int]:
    return {"bytes": 1000, "packets": 10, "dropped": 3, "netem": 0} | counted


def test_without_netem_only_the_shapers_queue_drops() -> None:
    found = of_link(LinkSpec("link0", NODES), 0, {"a.0": port(), "b.0": port()})
    assert found["b"] == {
        "bytes": 1000,
        "packets": 10,
        "dropped": 3,
        "lost": 0,
        "sent_dropped": 0,
        "sent_lost": 0,
    }


@pytest.mark.parametrize(
    ("words", "dropped", "lost"), [(["limit", "20", "delay", "50000us"], 10, 0), (["loss", "random", "1%"], 3, 7)]
)
def test_netem_on_the_middle_nodes_port(words: list[str], dropped: int, lost: int) -> None:
    found = of_link(LinkSpec("link0", NODES, netem={"b": words}), 0, {"a.0": port(), "b.0": port(netem=7)})
    assert (found["b"]["dropped"], found["b"]["lost"]) == (dropped, lost)
    assert (found["a"]["dropped"], found["a"]["lost"]) == (3, 0)


@pytest.mark.parametrize(("words", "dropped", "lost"), [(["limit", "20"], 7, 0), (["loss", "random", "1%"], 0, 7)])
def test_netem_on_the_sender_takes_what_that_node_sends(words: list[str], dropped: int, lost: int) -> None:
    spec = LinkSpec("link0", NODES, netem={"a": words}, netem_on_sender=True)
    found = of_link(spec, 0, {"a.0": port(netem_sent=7), "b.0": port()})
    assert (found["a"]["sent_dropped"], found["a"]["sent_lost"]) == (dropped, lost)
    assert (found["b"]["sent_dropped"], found["b"]["sent_lost"]) == (0, 0)


def test_bytes_are_those_of_ethernet_frames_where_cards_count_without_headers() -> None:
    found = of_link(LinkSpec("link0", NODES, card=True), 0, {"b.0": port()})
    assert found["b"]["bytes"] == 1000 + 14 * 10
    assert "a" not in found, "its port is on another host"
