"""What carries a link: a kernel shaper where that is enough, the emulator else, netem when asked; and netem's words."""

from __future__ import annotations

import pytest

from tunnelmark.lab.addressing import specs_of
from tunnelmark.lab.backends import backend_of, describe
from tunnelmark.lab.link_spec import LinkSpec, Shaper
from tunnelmark.lab.netem import arguments
from tunnelmark.plan.files import Files
from tunnelmark.plan.impairments import Chance, Codel, Direction, FourState, GilbertElliott, Jitter, Pattern, Reordering
from tunnelmark.plan.load import load_profile
from tunnelmark.plan.model import Link, Profile, Topology
from tunnelmark.units import Duration, Rate, Share, Size

PAIR = Topology("pair", "two nodes", ("a", "b"), (Link("link", ("a", "b")),))
FILES = Files.standard()


def test_a_link_between_cards_that_split_and_merge_says_so() -> None:
    assert describe(load_profile("gigabit+offloads", FILES)).startswith("cards that split and merge; tbf rate 1 Gbit/s")
    assert "cards" not in describe(load_profile("gigabit+no-offloads", FILES))


def both(way: Direction, **more) -> Profile:
    return Profile("p", "T", "S", way, way, **more)


RATE = Direction(rate=Rate(10**8), queue=Size(65536))


@pytest.mark.parametrize(
    ("profile", "backend"),
    [
        (both(Direction()), "shaper"),
        (both(RATE), "shaper"),
        (Profile("p", "T", "S", RATE, Direction()), "shaper"),
        (both(Direction(delay=Duration(0.001))), "emulator"),
        (both(Direction(rate=Rate(10**8), queue=Size(65536), codel=Codel())), "emulator"),
        (both(Direction(rate=Rate(10**8)), model="netem"), "emulator"),
        (both(RATE, unit="gso"), "emulator"),
        (both(RATE, backend="emulator"), "emulator"),
        (both(Direction(), model="netem", backend="netem"), "netem"),
    ],
)
def test_what_carries_a_link(profile, backend):
    assert backend_of(profile) == backend


def test_shapers_stand_before_the_node_they_shape_for():
    (link,) = specs_of(PAIR, Profile("p", "T", "S", RATE, Direction()))
    assert link.shapers == {"b": Shaper(10**8, 65536)}
    assert not link.emulated
    assert LinkSpec.read(link.plain()) == link


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        ("middle", {"a": ["delay", "20000us"], "b": ["delay", "10000us"]}),
        ("sender", {"a": ["delay", "10000us"], "b": ["delay", "20000us"]}),
    ],
)
def test_netem_stands_on_the_middle_node_or_on_the_sender(place, expected):
    way = Direction(delay=Duration(0.01))
    back = Direction(delay=Duration(0.02))
    profile = Profile("p", "T", "S", way, back, model="netem", backend="netem", place=place, unit="gso")
    (link,) = specs_of(PAIR, profile)
    assert link.netem == expected
    assert link.netem_on_sender == (place == "sender")
    assert link.super_packets


@pytest.mark.parametrize(
    ("way", "words"),
    [
        (Direction(), ""),
        (Direction(delay=Duration(0.002), jitter=Jitter(Duration(0.002), keep_order=False)), "delay 2000us 2000us"),
        (
            Direction(delay=Duration(0.03), jitter=Jitter(Duration(0.001), "normal", Share(0.25), keep_order=False)),
            "delay 30000us 1000us 25% distribution normal",
        ),
        (Direction(loss=Chance(Share(0.0025))), "loss random 0.25%"),
        (Direction(loss=Chance(Share(0.01), Share(0.25))), "loss random 1% 25%"),
        (
            Direction(loss=GilbertElliott(Share(0.01), Share(0.3), Share(0.1), Share(0.99))),
            "loss gemodel 1% 30% 90% 1%",
        ),
        (
            Direction(loss=FourState(Share(0.01), Share(0.3), Share(0.1), Share(0.9), Share(0.02))),
            "loss state 1% 30% 10% 90% 2%",
        ),
        (
            Direction(duplication=Chance(Share(0.01)), corruption=Chance(Share(0.02), Share(0.1))),
            "duplicate 1% corrupt 2% 10%",
        ),
        (
            Direction(delay=Duration(0.01), reordering=Reordering(Share(0.05), Share(0.5), 5)),
            "delay 10000us reorder 5% 50% gap 5",
        ),
        (Direction(rate=Rate(10**9), limit=10000, overhead=24), "limit 10000 rate 1000000000bit 24"),
        (RATE, ""),  # a shaper behind netem
    ],
)
def test_netems_words(way, words):
    assert " ".join(arguments(way)) == words


def test_netem_has_no_pattern():
    with pytest.raises(ValueError, match="pattern"):
        arguments(Direction(loss=Pattern("01")))


def test_the_published_profile_in_netems_words():
    found = load_profile("thesis-low+netem-on-sender", FILES)
    assert " ".join(arguments(found.forward)) == "delay 2000us 2000us loss random 0.25% reorder 0.5% 25%"
    assert describe(found).startswith("netem on the sender, unit gso: delay 2 ms, jitter 2 ms uniform")


def test_the_record_says_how_a_link_is_made():
    assert describe(load_profile("unshaped+no-offloads", FILES)) == "veth pairs, no shaper"
    assert (
        describe(load_profile("gigabit", FILES))
        == "cards that split and merge; tbf rate 1 Gbit/s, burst 31250 B, limit 512 KiB, overhead 24 B, each direction"
    )
    dsl = describe(load_profile("home-dsl+no-offloads", FILES))
    assert dsl.startswith("tunnelmark-emulator, model stated, unit wire: forward delay 8 ms")
    assert "back" in dsl
