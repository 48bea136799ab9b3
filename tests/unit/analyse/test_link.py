"""A link is proved when probes met what follows from its profile, and outside when they did not; trials follow it."""

from __future__ import annotations

from collections import deque
from dataclasses import replace

import numpy as np
import pytest

from tunnelmark.analyse import gates, judge
from tunnelmark.analyse.link import judge as judge_link
from tunnelmark.analyse.link import row_of
from tunnelmark.analyse.linkmodel import Floats, simulate
from tunnelmark.analyse.linkstats import lag1
from tunnelmark.analyse.proofs import unproved, voided
from tunnelmark.lab.prober import CORRUPTED
from tunnelmark.plan.impairments import Chance, Direction, GilbertElliott, Jitter, Reordering
from tunnelmark.plan.model import Profile
from tunnelmark.record.results import LinkLine, LinkProof, Session
from tunnelmark.run.prove import HEADERS, RECORDS, Flow, Observation, Pace, Train
from tunnelmark.units import Duration, Rate, Share, Size
from unit.builders import Study

COUNT, INTERVAL = 2000, 0.001
ZERO = 1_790_000_000_000_000_000

WAY = Direction(
    delay=Duration(0.02),
    jitter=Jitter(Duration(0.001), "normal", Share(0.3), keep_order=False),
    loss=GilbertElliott(Share(0.01), Share(0.3)),
    duplication=Chance(Share(0.03)),
    reordering=Reordering(Share(0.02)),
)


def flow(way: Direction, source: str, seed: int, *, late: float = 0.0, records=None) -> Flow:
    """What probes would meet on a link that does exactly what the direction says, and `late` seconds more."""
    times: Floats = INTERVAL * np.arange(COUNT, dtype=np.float64) + 0.1
    fates = simulate(way, "stated", times, runs=1, seed=seed)
    rows = []
    for number in np.flatnonzero(~fates.lost[0]):
        sent = ZERO + round(1e9 * times[number])
        for _ in range(1 + fates.duplicated[0, number]):
            rows.append((number, 0, 0, sent, sent + round(1e9 * (fates.delay[0, number] + late)) + 5000))
    found = np.array(rows, RECORDS) if records is None else records
    target = "b" if source == "a" else "a"
    return Flow(source, target, ZERO + round(1e8), Pace(COUNT, INTERVAL), None, 0, 0.0, 0.0, 0.0, found)


def observation(forward: Flow, back: Flow, reports=()) -> Observation:
    return Observation("p", "pair", forward, back, ZERO, reports, 1.79e9, 3.0)


def profile(way: Direction) -> Profile:
    return Profile("p", "T", "S", way, way)


def report(p99: float = 50.0, **faults: int) -> dict:
    return {
        "directions": [
            {"name": "a to b", "lateness_us": {"count": 9, "p99": p99, "max": p99}, "dropped": {"memory": 0, "loss": 5}}
        ],
        "ports": [{"name": "a.0", **faults}],
    }


def lines(proof: LinkProof, way: str = "a>b") -> dict:
    return {line.name: line for line in proof.lines if line.way == way}


@pytest.mark.parametrize("seed", range(3))
def test_a_link_that_does_what_it_says_is_proved(seed):
    seen = observation(flow(WAY, "a", 10 + seed), flow(WAY, "b", 20 + seed), (report(),))
    proof = judge_link(profile(WAY), seen, "alone")
    assert proof.verdict == "proved", proof.reason
    found = lines(proof)
    assert found["delay_mean"].achieved == pytest.approx(19.6, abs=0.3)
    assert found["skipped"].expected == pytest.approx(2, abs=0.2)
    assert found["delay_sd"].expected == pytest.approx(1, abs=0.1)
    assert found["delay_lag1"].expected == pytest.approx(0.3, abs=0.02)
    assert found["loss"].expected == pytest.approx(3.2, abs=0.4)
    assert found["delay_lag1"].stated == "30 %"
    assert len(proof.series["a>b"]) > 10


@pytest.mark.parametrize(
    ("truth", "outside"),
    [
        (replace(WAY, delay=Duration(0.023)), "delay_mean"),
        (replace(WAY, loss=GilbertElliott(Share(0.04), Share(0.3))), "loss"),
        (replace(WAY, loss=GilbertElliott(Share(0.001), Share(0.03))), "burst"),
        (replace(WAY, duplication=None), "duplicated"),
        (replace(WAY, reordering=None), "skipped"),
        (replace(WAY, jitter=Jitter(Duration(0.003), "normal", keep_order=False)), "delay_sd"),
        (replace(WAY, jitter=Jitter(Duration(0.001), "normal", Share(0.9), keep_order=False)), "delay_lag1"),
    ],
)
def test_a_link_that_does_something_else_is_outside(truth, outside):
    proof = judge_link(profile(WAY), observation(flow(truth, "a", 1), flow(WAY, "b", 2)), "alone")
    if outside != "burst":  # which loses less as well, and that is in itself enough
        assert lines(proof)[outside].ok is False
    assert proof.verdict == "outside"
    assert "a>b" in proof.reason


def test_a_machine_that_stands_still_is_no_correlated_jitter():
    """As it was seen on a host that took the cores away: 0.78 for a jitter without correlation, by 30 ms every 200."""
    way = Direction(delay=Duration(0.004), jitter=Jitter(Duration(0.002), keep_order=False))
    good = flow(way, "a", 1)
    held = good.records.copy()
    for begin in range(0, COUNT, 200):
        until = ZERO + round(1e8) + round(1e9 * INTERVAL * begin) + 30_000_000
        late = (held["number"] >= begin) & (held["received"] < until) & (held["sent"] < until)
        held["received"][late] = until
    proof = judge_link(profile(way), observation(replace(good, records=held), flow(way, "b", 2)), "alone")
    found = lines(proof)
    assert lag1((held["received"] - held["sent"]).astype(float)) > 0.7
    assert found["delay_lag1"].ok
    assert not found["delay_p99"].ok  # it is told by what it is


def test_a_late_emulator_and_unplanned_drops_are_outside():
    good = flow(WAY, "a", 1), flow(WAY, "b", 2)
    late = judge_link(profile(WAY), observation(*good, (report(p99=5000.0),)), "alone")
    assert "emulator, lateness a>b: 5000 us" in late.reason
    dropped = judge_link(profile(WAY), observation(*good, (report(tx_dropped=3),)), "alone")
    assert "unplanned drops all: 3" in dropped.reason


def test_copies_corrupted_and_unknown_probes_are_told_apart():
    sent = ZERO + round(1e8)
    records = np.array(
        [
            (0, 0, 0, sent, sent + 10),
            (0, 0, 0, sent, sent + 20),
            (2, 0, CORRUPTED, 77, sent + 2_000_000 + 10),
            (9_999_999, 0, CORRUPTED, 0, sent),
            (3, 1, 0, sent, sent + 10),
        ],
        RECORDS,
    )
    row = row_of(flow(WAY, "a", 1, records=records), ZERO)
    assert row.lost[:4].tolist() == [False, True, False, True]
    assert row.duplicated[0]
    assert row.corrupted.sum() == 1
    assert row.delay[0] == pytest.approx(1e-8, abs=1e-9)
    assert np.isnan(row.delay[2])  # its stamp may be what was corrupted


def shifted(row: tuple[int, int, int, int, int], seconds: float) -> tuple[int, int, int, int, int]:
    """A packet that was received so much later."""
    return (*row[:4], row[4] + round(1e9 * seconds))


def train(rate: float, queue: int, sent_rate: float, count: int = 2000, pause: float = 0.0, stall: float = 0.0) -> Flow:
    """A train through a shaper of that rate and queue, tail drop.

    In its middle the sender pauses for some seconds, or the shaper stalls: what waits there leaves that much later.
    """
    frame = 1472 + HEADERS
    out, inside = 0.0, deque[float]()
    rows: list[tuple[int, int, int, int, int]] = []
    for number in range(count):
        now = number * 8 * frame / sent_rate + (pause if number > count // 2 else 0.0)
        if stall and number > count // 2:
            inside = deque(leaves + stall for leaves in inside)
            rows = [row if row[4] < ZERO + 1e9 * now else shifted(row, stall) for row in rows]
            out, stall = out + stall, 0.0
        while inside and inside[0] <= now:
            inside.popleft()
        if len(inside) * frame > queue:
            continue
        out = max(out, now) + 8 * frame / rate
        inside.append(out)
        rows.append((number, 1, 0, ZERO + round(1e9 * now), ZERO + round(1e9 * out)))
    plan = Train(count, 8 * frame / sent_rate, 1472, 1)
    return Flow("a", "b", ZERO, None, plan, ZERO, sent_rate, 0.0, 0.0, np.array(rows, RECORDS))


SHAPED = profile(Direction(rate=Rate(10**8), queue=Size(100_000)))


def test_a_train_measures_rate_and_queue():
    good = train(1e8, 100_000, 3e8)
    proof = judge_link(SHAPED, observation(good, replace(good, source="b", target="a")), "before")
    found = lines(proof)
    assert proof.verdict == "proved", proof.reason
    assert found["rate"].achieved == pytest.approx(1e8, rel=0.01)
    assert found["queue"].achieved == pytest.approx(1e5, rel=0.06)


@pytest.mark.parametrize(("rate", "queue", "outside"), [(9e7, 100_000, "rate"), (1e8, 50_000, "queue")])
def test_another_rate_or_queue_is_outside(rate, queue, outside):
    proof = judge_link(SHAPED, observation(train(rate, queue, 3e8), train(1e8, 100_000, 3e8)), "before")
    assert [line.name for line in proof.lines if line.ok is False] == [outside]


def test_a_machine_that_stands_still_for_a_moment_is_no_longer_queue():
    """As it was seen: 625 kB of 512 KiB at 1 Gbit/s, after a study of 38 minutes which was void for it."""
    fast = profile(Direction(rate=Rate(10**9), queue=Size(524_288)))
    flow = train(1e9, 524_288, 1.3e9, count=18_000, stall=0.0009)
    late = np.quantile((flow.records["received"] - flow.records["sent"]) / 1e9, 0.98) * 1e9 / 8
    assert late > 602_000  # what a percentile of the whole train says
    found = lines(judge_link(fast, observation(flow, flow), "before"))
    assert found["queue"].achieved == pytest.approx(524_288, rel=0.03)
    assert found["queue"].ok


def test_a_packet_that_was_late_enough_to_make_the_train_longer_says_nothing_of_the_rate():
    good = train(1e8, 100_000, 3e8)
    longer = good.records.copy()
    longer["received"][-1:] += 30_000_000  # the machine stood still at the end
    seen = observation(replace(good, records=longer), replace(good, source="b", target="a"))

    def rate(worst: float) -> LinkLine:
        said = report()
        said["directions"][0]["lateness_us"]["max"] = worst
        return lines(judge_link(SHAPED, replace(seen, final=(said,)), "before"))["rate"]

    assert rate(20_000.0).ok is False
    assert rate(31_000.0).ok is None
    assert "31 ms late" in rate(31_000.0).note


def test_what_a_sender_cannot_fill_is_not_judged():
    slow = train(1e8, 100_000, 9e7)
    found = lines(judge_link(SHAPED, observation(slow, slow), "before"))
    assert (found["rate"].ok, found["queue"].ok) == (None, None)
    assert "90 Mbit/s" in found["rate"].note


def test_a_sender_that_paused_until_the_queue_was_empty_says_nothing_of_the_rate():
    paused, good = train(1e8, 100_000, 3e8, pause=0.02), train(1e8, 100_000, 3e8)
    found = judge_link(SHAPED, observation(paused, good), "before")
    assert found.verdict == "proved", found.reason
    rate = next(line for line in found.lines if line.name == "rate")  # the first: of the train that paused
    assert rate.ok is None
    assert "ran empty" in rate.note


def test_an_emulator_that_fell_behind_its_train_says_nothing_of_the_rate():
    slow, good = train(8e7, 100_000, 3e8), train(1e8, 100_000, 3e8)
    seen = observation(slow, replace(good, source="b", target="a"))
    assert judge_link(SHAPED, replace(seen, final=(report(),)), "before").verdict == "outside"
    proof = judge_link(SHAPED, replace(seen, forward=replace(slow, behind=0.078)), "before")
    assert proof.verdict == "proved", proof.reason
    assert "78 ms behind" in lines(proof)["rate"].note
    late = judge_link(SHAPED, replace(seen, final=(report(12_000.0),)), "before")
    assert "12 ms late" in lines(late)["rate"].note
    lost = judge_link(SHAPED, replace(seen, final=(report(socket_dropped=7),)), "before")
    assert "lost 7 packets" in lines(lost)["rate"].note


def test_a_train_that_netems_limit_held_back_says_nothing_of_the_rate():
    way = Direction(rate=Rate(10**8), queue=Size(100_000), delay=Duration(0.2))
    made = Profile("p", "T", "S", way, way, model="netem")
    slow = train(6e7, 100_000, 3e8)
    slow.records["received"][:] += 200_000_000
    rate = lines(judge_link(made, observation(slow, slow), "before"))["rate"]
    assert rate.ok is None
    assert "limit of 1000" in rate.note
    wide = replace(way, limit=100_000)
    rate = lines(judge_link(replace(made, forward=wide, back=wide), observation(slow, slow), "before"))["rate"]
    assert rate.ok is False


def test_a_train_of_which_nothing_arrived_is_outside_unless_nothing_was_sent():
    none = replace(train(1e8, 100_000, 3e8), records=np.array([], RECORDS))
    assert lines(judge_link(SHAPED, observation(none, none), "before"))["rate"].ok is False
    assert none.train is not None
    unsent = replace(none, train=replace(none.train, count=8))
    rate = lines(judge_link(SHAPED, observation(unsent, unsent), "before"))["rate"]
    assert rate.ok is None
    assert "sent 8 packets" in rate.note


class TestAStudy:
    def results(self, verdict, started_after: float, when="before"):
        results = Study(blocks=2).results()
        first = results.trials[0].started
        results = replace(results, sessions=(Session(first - 10, 20.0), Session(first + 1e6, None)))
        proof = LinkProof("gigabit", "pair", when, first + started_after, 1.0, verdict, "rate a>b: 1", ())
        return replace(results, proofs=(proof,))

    def test_is_void_where_its_link_was_outside(self):
        results = self.results("outside", -5)
        assert {row.outcome for row in voided(results).trials} == {"void"}
        assert "the link gigabit was not what it says (before the trials): rate a>b: 1" in str(
            voided(results).trials[0].message
        )
        assert voided(results).trials[0].hint
        analysis = judge(results)
        assert len(analysis.failures) == len(results.trials)
        assert not gates(analysis)[-1].passed
        assert unproved(results.proofs) == {
            ("gigabit", "pair"): "the link gigabit was not what it says (before the trials): rate a>b: 1"
        }

    def test_is_void_by_what_was_found_afterwards_too(self):
        assert {row.outcome for row in voided(self.results("outside", 1000, "after")).trials} == {"void"}

    def test_of_another_session_is_not(self):
        assert {row.outcome for row in voided(self.results("outside", 1e6 + 5)).trials} == {"ok"}

    def test_is_not_void_where_its_link_was_proved(self):
        results = self.results("proved", -5)
        assert voided(results) is results
        gate = gates(judge(results))[-1]
        assert (gate.name, gate.passed) == ("the link is what it says", True)
        assert unproved(results.proofs) == {}

    def test_whose_link_nobody_looked_at_has_no_such_gate(self):
        assert all(gate.name != "the link is what it says" for gate in gates(judge(Study(blocks=2).results())))
