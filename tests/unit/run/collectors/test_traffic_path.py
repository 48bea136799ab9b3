"""Which way bytes went, from what arrived at both ends."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from ipaddress import IPv4Address
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tunnelmark.linux.packet_sampler import Head
from tunnelmark.model.metrics import Sample
from tunnelmark.model.path_looks import DIRECT, RELAYED
from tunnelmark.run.collectors import _counts, traffic_path
from tunnelmark.run.collectors._backlog import KEPT, Backlog
from tunnelmark.run.collectors.base import CollectorContext, ObservedNode
from tunnelmark.run.collectors.traffic_path import TCP, Arrivals, directly_from, shares, totals

OTHERS = {"a": "b", "b": "a"}


def arrived(inside: float, over_tcp: float = 0.0, **outside: int) -> Arrivals:
    return Arrivals(inside, Counter(outside), over_tcp)


def alone(look: dict[str, Arrivals]) -> dict[str, float]:
    """The shares of one look, before which nothing has come."""
    return shares(totals(look, OTHERS, {end: Backlog() for end in look})[0])


def test_what_the_other_end_sent_went_directly():
    found = alone({"a": arrived(0), "b": arrived(100_000, a=106_000)})
    assert found == {DIRECT: 100, RELAYED: 0, TCP: 0}


def test_what_a_third_node_sent_was_relayed():
    found = alone({"a": arrived(50_000, s=53_000), "b": arrived(50_000, over_tcp=53_000, s=53_000)})
    assert (found[DIRECT], found[RELAYED]) == (0, 100)
    assert found[TCP] == 50


def test_what_third_nodes_chat_brings_nothing_inside():
    found = alone({"a": arrived(0), "b": arrived(100_000, a=106_000, s=90_000)})
    assert (found[DIRECT], found[RELAYED]) == (100, 0)


def test_a_path_that_changed_is_divided():
    found = alone({"a": arrived(0), "b": arrived(100_000, a=40_000, s=66_000)})
    assert (found[DIRECT], found[RELAYED]) == (40, 60)


def test_senders_that_nothing_knows_raise_neither_share():
    found = alone({"a": arrived(0), "b": arrived(100_000, **{"a": 20_000, "?": 86_000})})
    assert (found[DIRECT], found[RELAYED]) == (20, 0)


def test_small_packets_with_long_headers_do_not_hide_what_was_relayed(tmp_path: Path):
    """Pings of 84 bytes inside and 170 outside, ten looks from the other end and ten through a third node."""
    watched: Any = traffic_path._Path(CollectorContext({}, "a", "b", tmp_path))
    looks = [arrived(84 * 60, a=170 * 60)] * 10 + [arrived(84 * 60, s=170 * 60)] * 10
    watched._ends = {"b": SimpleNamespace(sample=lambda *_, **__: looks.pop(0), begin=lambda: None)}
    watched._total, watched._backlogs = {"b": Arrivals()}, {"b": Backlog()}
    asyncio.run(watched.begin())
    for _ in range(20):
        watched._sample()
    found = shares(watched._sums, least=1)
    assert found[DIRECT] == pytest.approx(50, abs=6)
    assert found[RELAYED] == pytest.approx(50, abs=6)


def over(*looks: Arrivals) -> dict[str, float]:
    """The shares of some looks at one end, one after the other."""
    backlogs = {"b": Backlog()}
    came = [totals({"b": look}, OTHERS, backlogs)[1] for look in looks]
    return shares({name: sum(each[name] for each in came) for name in came[0]}, least=1)


@pytest.mark.parametrize(("sender", "way"), [("a", DIRECT), ("s", RELAYED)])
@pytest.mark.parametrize("missed", [1, 2, 5])
def test_what_is_inside_looks_later_than_outside_came_the_same_way(sender: str, way: str, missed: int):
    """A daemon without a core takes in what waits, of one look or of several, once it has one."""
    waits = [arrived(0, **{sender: 106_000})] * missed
    found = over(arrived(100_000, **{sender: 106_000}), *waits, arrived(100_000 * (missed + 1), **{sender: 106_000}))
    assert found[way] == 100
    assert found[DIRECT] + found[RELAYED] == 100


def test_what_never_appears_inside_is_no_credit_for_what_comes_later():
    """Headers and keepalives of the other end, for any time, raise no share of what a third node brings."""
    chatter = [arrived(0, a=20_000)] * 3 * KEPT
    small = [arrived(84 * 60, a=170 * 60)] * 3 * KEPT
    assert over(*chatter, arrived(100_000, s=106_000))[DIRECT] == 0
    late = over(*small, arrived(50_000, s=106_000), arrived(150_000, s=106_000))
    assert late[RELAYED] == pytest.approx(100 * 200_000 / (200_000 + 84 * 60 * 3 * KEPT))
    forgotten = over(arrived(0, a=106_000), *[arrived(0)] * KEPT, arrived(100_000, **{"?": 1}))
    assert forgotten[DIRECT] == 0


def test_what_unknown_senders_may_have_carried_is_not_taken_from_what_waits():
    assert over(arrived(0, a=50_000), arrived(100_000, **{"?": 106_000}))[DIRECT] == 0


def test_of_little_nothing_is_said():
    assert alone({"a": arrived(0), "b": arrived(60_000, a=63_000)}) == {}


@pytest.mark.parametrize(
    ("relayed", "moment"), [((100, 100, 5, 0), 2), ((0, 0), 0), ((0, 100, 0), 2), ((0, 50), None), ((), None)]
)
def test_directly_is_from_the_first_look_that_no_other_path_follows(relayed: tuple[float, ...], moment: float | None):
    series = [
        Sample(metric, value, float(time))
        for time, share in enumerate(relayed)
        for metric, value in ((DIRECT, 100 - share), (RELAYED, share))
    ]
    assert directly_from(series) == moment


def test_what_is_inside_one_look_late_is_no_other_path():
    looks = [(90, 0), (100, 0), (80, 0)]
    series = [
        Sample(m, v, float(t)) for t, look in enumerate(looks) for m, v in zip((DIRECT, RELAYED), look, strict=True)
    ]
    assert directly_from(series) == 0


@dataclass
class Listener:
    """The packets that a look takes, as long as it listens."""

    pid: int
    interface: str
    waiting: list[Head] = field(default_factory=list)
    listening: bool = False

    def listen(self, share: float) -> None:
        self.listening = True

    def pause(self) -> None:
        self.listening = False

    def heads(self) -> Iterator[Head]:
        taken, self.waiting = self.waiting, []
        return iter(taken)


class End:
    """The target of a transfer, whose counters are in files, and which looks at what `arrives`."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.inside = self.outside = self.packets = 0
        monkeypatch.setattr(traffic_path, "PacketSampler", Listener)
        monkeypatch.setattr(_counts, "interface_counts", lambda _: self.counts())
        monkeypatch.setattr(_counts, "headers", lambda *_: (0, 0))
        node = ObservedNode(
            1, None, (), {}, interface="tun0", address="10.60.0.2", senders={"10.50.0.1": "a", "10.50.0.3": "s"}
        )
        context = CollectorContext({"b": node}, "a", "b", folder)
        self.end = traffic_path._End(context, "b")
        self.end.begin()

    def counts(self) -> dict[str, tuple[int, int, int, int]]:
        return {"eth0": (self.outside, self.packets, 0, 0), "tun0": (self.inside, self.packets, 0, 0)}

    def arrives(self, packets: int, sender: str = "10.50.0.1") -> None:
        self.packets, self.inside, self.outside = (
            before + packets * each
            for before, each in zip((self.packets, self.inside, self.outside), (1, 1_000, 1_060), strict=True)
        )
        (listener,) = cast(list[Any], self.end._samplers)
        if listener.listening:
            listener.waiting.append(Head(IPv4Address(sender), 17, 1_060))


def test_what_came_while_no_one_listened_has_the_senders_of_the_look_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    at = End(tmp_path, monkeypatch)
    at.arrives(5_000)  # in a tenth of a second: more than every look can take
    assert at.end.sample(0.1).by_sender == {"a": 5_300_000}
    at.arrives(3_000)
    assert at.end.sample(0.1) == Arrivals()
    for _ in range(traffic_path.TURN):
        found = at.end.sample(0.1)
    at.arrives(10)
    assert at.end.sample(0.1).by_sender == {"a": 3_010 * 1_060} and found == Arrivals()


def test_a_third_node_s_packet_after_a_flood_has_not_sent_the_flood(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    at = End(tmp_path, monkeypatch)
    at.arrives(5_000)
    total = at.end.sample(0.1)
    for _ in range(traffic_path.TURN - 1):
        at.arrives(5_000)
        total.add(at.end.sample(0.1))
    total.add(at.end.sample(0.1))  # the flood has ended, and it listens again
    at.arrives(1, sender="10.50.0.3")
    total.add(at.end.sample(0.1))
    assert total.by_sender["a"] == pytest.approx(5_000 * traffic_path.TURN * 1_060, rel=0.001)
    assert total.inside == (5_000 * traffic_path.TURN + 1) * 1_000


def test_a_path_that_changed_while_no_one_listened_is_divided(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    at = End(tmp_path, monkeypatch)
    at.arrives(5_000)
    total = at.end.sample(0.1)
    while not at.end._samplers[0].listening:
        at.arrives(5_000, sender="10.50.0.3")
        total.add(at.end.sample(0.1))
    at.arrives(5_000, sender="10.50.0.3")
    total.add(at.end.sample(0.1))
    assert total.by_sender["a"] == total.by_sender["s"]
    assert set(total.by_sender) == {"a", "s"}


def test_what_came_while_no_one_listened_is_not_lost_where_no_look_follows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """A short, fast transfer may be over before the next look that takes packets."""
    at = End(tmp_path, monkeypatch)
    at.arrives(1_001)
    at.end.sample(0.1)
    at.arrives(3_000)
    assert at.end.sample(0.1, last=True) == Arrivals(3_000_000, Counter(a=3_180_000))


def test_of_what_no_look_knows_the_sender_stays_unknown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    at = End(tmp_path, monkeypatch)
    (listener,) = cast(list[Any], at.end._samplers)
    listener.pause()
    at.arrives(3_000)
    assert at.end.sample(0.1, last=True) == Arrivals()
