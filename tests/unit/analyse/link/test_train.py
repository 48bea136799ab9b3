"""A train tells rate and queue; what the lab could not carry, or the machine disturbed, is not judged."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tunnelmark.analyse.link.judge import judge as judge_link
from tunnelmark.model.observation import RECORDS
from tunnelmark.plan.impairments import Direction, Jitter
from tunnelmark.plan.model import Profile
from tunnelmark.record.link_check import LinkLine
from tunnelmark.units import Duration, Rate, Size
from unit.made_looks import lines, observation, profile, report, train

SHAPED = profile(Direction(rate=Rate(10**8), queue=Size(100_000)))


def test_a_train_measures_rate_and_queue():
    good = train(1e8, 100_000, 3e8)
    check = judge_link(SHAPED, observation(good, replace(good, source="b", target="a")), "before")
    found = lines(check)
    assert check.verdict == "verified", check.reason
    assert found["rate"].achieved == pytest.approx(1e8, rel=0.01)
    assert found["queue"].achieved == pytest.approx(1e5, rel=0.06)


@pytest.mark.parametrize(("rate", "queue", "outside"), [(9e7, 100_000, "rate"), (1e8, 50_000, "queue")])
def test_another_rate_or_queue_is_outside(rate, queue, outside):
    check = judge_link(SHAPED, observation(train(rate, queue, 3e8), train(1e8, 100_000, 3e8)), "before")
    assert [line.name for line in check.lines if line.ok is False] == [outside]


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


def test_a_queue_is_not_judged_by_a_train_whose_own_sender_kept_its_rate_down():
    """As it was seen: 20.7 kB of 512 KiB at 1 Gbit/s, where 986 Mbit/s were sent and, by a pause, 834 Mbit/s arrived.

    Looks without such a pause could not judge the queue at all, so none could put it right, and all trials were void.
    """
    slow = train(8.34e7, 4_000, 9.86e7)
    found = judge_link(SHAPED, observation(slow, slow), "before")
    assert found.verdict == "verified", found.reason
    rate, queue = lines(found)["rate"], lines(found)["queue"]
    assert (rate.ok, queue.ok) == (None, None)
    assert queue.achieved is not None and queue.low is not None and queue.achieved < queue.low
    assert rate.note == queue.note == "not judged: the sender reached 99 Mbit/s"


def test_a_sender_that_paused_until_the_queue_was_empty_says_nothing_of_the_rate():
    paused, good = train(1e8, 100_000, 3e8, pause=0.02), train(1e8, 100_000, 3e8)
    found = judge_link(SHAPED, observation(paused, good), "before")
    assert found.verdict == "verified", found.reason
    rate = next(line for line in found.lines if line.name == "rate")  # the first: of the train that paused
    assert rate.ok is None
    assert "ran empty" in rate.note


@pytest.mark.parametrize(("late", "stopped"), [(0.0, 0), (0.9, 0), (2.5, 0), (0.9, 47)])
def test_jitter_does_not_hide_that_the_queue_ran_empty(late: float, stopped: float):
    """As it was seen: a sender on the receiver's core paused for 43 ms, and the packet after it left 0.2 ms late or more by jitter.

    Or it was stopped after the stamp of that packet.
    """
    jittery = profile(
        Direction(delay=Duration(0.03), jitter=Jitter(Duration(0.001), "normal"), rate=Rate(10**8), queue=Size(100_000))
    )
    paused, good = (train(1e8, 100_000, 3e8, pause=pause) for pause in (0.02, 0.0))
    records = paused.records.copy()
    order = np.argsort(records["received"])
    (gap,) = np.flatnonzero(np.diff(records["received"][order]) > 5_000_000)
    records["received"][order[gap + 1 :]] += round(late * 1e6)  # those behind it wait for it
    records["sent"][order[gap + 1]] -= round(stopped * 1e6)
    records["received"] += 30_000_000
    slower = good.records.copy()
    slower["received"] += 30_000_000 + (slower["received"] - slower["received"].min()) // 8

    def rate(these: np.ndarray) -> LinkLine:
        seen = observation(replace(paused, records=these), good)
        return next(line for line in judge_link(jittery, seen, "before").lines if line.name == "rate")

    assert rate(records).ok is None and "ran empty" in rate(records).note
    assert rate(slower).ok is False, "a link with another rate is seen all the same"


def test_an_emulator_that_fell_behind_its_train_says_nothing_of_the_rate():
    slow, good = train(8e7, 100_000, 3e8), train(1e8, 100_000, 3e8)
    seen = observation(slow, replace(good, source="b", target="a"))
    assert judge_link(SHAPED, replace(seen, final=(report(),)), "before").verdict == "outside"
    check = judge_link(SHAPED, replace(seen, forward=replace(slow, behind=0.078)), "before")
    assert check.verdict == "verified", check.reason
    assert "78 ms behind" in lines(check)["rate"].note
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


def test_a_queue_that_netems_limit_keeps_from_filling_is_not_judged() -> None:
    """As it was seen in a guest: 1,000 packets came at the link's rate, and were too few for its queue."""
    way = Direction(rate=Rate(10**8), queue=Size(100_000), delay=Duration(0.25))
    made = Profile("p", "T", "S", way, way, model="netem")
    short = train(1e8, 50_000, 3e8)
    short.records["received"][:] += 250_000_000
    found = lines(judge_link(made, observation(short, short), "before"))
    assert (found["rate"].ok, found["queue"].ok) == (True, None)
    assert "limit of 1000" in found["queue"].note
    wide = replace(way, limit=100_000)
    assert (
        lines(judge_link(replace(made, forward=wide, back=wide), observation(short, short), "before"))["queue"].ok
        is False
    )


def test_a_train_of_which_nothing_arrived_is_outside_unless_nothing_was_sent():
    none = replace(train(1e8, 100_000, 3e8), records=np.array([], RECORDS))
    assert lines(judge_link(SHAPED, observation(none, none), "before"))["rate"].ok is False
    assert none.train is not None
    unsent = replace(none, train=replace(none.train, count=8))
    rate = lines(judge_link(SHAPED, observation(unsent, unsent), "before"))["rate"]
    assert rate.ok is None
    assert "sent 8 packets" in rate.note


@pytest.mark.parametrize(("pause", "ok"), [(0.0015, False), (0.005, None)])
def test_a_queue_that_is_short_is_not_judged_where_its_sender_paused_for_as_long_as_that_takes(pause, ok):
    """As it was seen with the lab held back to a quarter of the machine: 409 kB of 512 KiB, and 59 kB the other way."""
    short = train(1e8, 50_000, 3e8, pause=pause)
    good = replace(train(1e8, 100_000, 3e8), source="b", target="a")
    line = lines(judge_link(SHAPED, observation(short, good), "before"))["queue"]
    assert line.ok is ok
    assert ("the sender paused for" in line.note) is (ok is None)
