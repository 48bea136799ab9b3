"""A look shows a part of a profile only where it would have found a link that is wrong in it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tunnelmark.analyse.link.expected import expect
from tunnelmark.analyse.link.judge import judge as judge_link
from tunnelmark.analyse.link.path import LinkPath, telling_seed
from tunnelmark.analyse.link.power import FOUND, finds, looks_at, moments, wrongs
from tunnelmark.model.probe_plan import enough, pace_of, train_of
from tunnelmark.plan.files import Files
from tunnelmark.plan.impairments import Blackout, Bursts, Chance, Direction
from tunnelmark.plan.load import load_profile
from tunnelmark.record.link_check import LinkPart
from tunnelmark.units import Duration, Rate, Share, Size
from unit.made_looks import WAY, flow, observation, profile

ALL = frozenset(["delay_mean", "delay_p50", "delay_p05", "delay_sd", "delay_p99", "ipdv_1", "ipdv_20", "loss", "burst"])


def powers(way: Direction, count: int, judged: frozenset[str] = ALL) -> dict[str, float]:
    return {each.wrong.words: each.power(judged) for each in finds("stated", way, 0.0, count, 0.001)}


def parts(way: Direction, truth: Direction) -> dict[str, LinkPart]:
    seen = observation(flow(truth, "a", 1), flow(way, "b", 2))
    return {part.name: part for part in judge_link(profile(way), seen, "before").parts if part.way == "a>b"}


def test_a_delay_of_a_tenth_of_a_millisecond_is_missed_where_it_is_missing():
    assert powers(Direction(delay=Duration(0.0001)), 500) == {"no delay": 1.0}


def test_many_losses_are_told_from_none_and_from_twice_as_many():
    assert min(powers(Direction(loss=Chance(Share(0.05))), 2000).values()) >= FOUND


def test_a_loss_that_few_probes_can_meet_is_not_tested_whatever_they_met():
    way = Direction(delay=Duration(0.02), loss=Chance(Share(0.0002)))
    assert powers(way, 2000)["no loss"] < FOUND
    found = parts(way, replace(way, loss=None))
    assert (found["delay"].verdict, found["loss"].verdict) == ("shown", "not tested")
    assert "of 2000 probes finds" in found["loss"].why


def test_a_part_that_is_wrong_is_outside():
    way = Direction(delay=Duration(0.02), loss=Chance(Share(0.05)))
    assert parts(way, way)["loss"].verdict == "shown"
    assert parts(way, replace(way, loss=None))["loss"].verdict == "outside"


def test_what_was_not_judged_tests_nothing():
    way = Direction(loss=Chance(Share(0.05)))
    assert powers(way, 2000, ALL - {"loss", "burst"})["no loss"] == 0


def test_every_part_that_a_direction_states_has_a_link_that_is_wrong_in_it():
    way = replace(
        WAY,
        blackouts=(Blackout(Duration(0.5), Duration(0.1)),),
        corruption=Chance(Share(0.1)),
        propagation=Duration(0.001),
    )
    assert {wrong.part for wrong in wrongs(way, "stated")} == {
        "delay", "propagation", "jitter", "loss", "duplication", "corruption", "order", "skips", "cuts"
    }  # fmt: skip
    assert all(wrong.way != way for wrong in wrongs(way, "stated"))


@pytest.mark.parametrize("name", ["lan", "edge-loss-10", "edge-delay-50"])
def test_a_look_of_a_run_shows_all_that_these_profiles_state(name):
    told = load_profile(name, Files.standard())
    pace = pace_of(told, enough(told), 0.001)
    ways = (told.forward, told.back)  # of the edge profiles one direction is bare
    found = [each for way in ways for each in finds("stated", way, 0.0, pace.count, pace.interval)]
    assert found and all(each.power(ALL) >= FOUND for each in found)


def test_a_look_has_as_many_probes_as_its_rarest_loss_needs():
    assert enough(profile(Direction(loss=Chance(Share(0.02))))) == 3000
    assert enough(profile(Direction(loss=Chance(Share(0.0001))))) == 1500
    assert enough(profile(Direction(delay=Duration(0.01)))) == 1500


def test_a_train_on_a_fast_link_is_little_faster_than_it():
    train = train_of(Direction(rate=Rate(10**9), queue=Size(524_288)))
    assert train is not None
    assert 1.1e9 < 8 * (train.size + 42) / train.interval < 1.5e9


def test_what_a_profile_does_not_do_has_no_wrong_link():
    """netem's jitter behind a rate of its own keeps the order, and its correlation leaves next to no packet that skips the delay."""
    files = Files.standard()
    words = {
        name: {wrong.words for wrong in wrongs(load_profile(name, files).forward, "netem")}
        for name in ("cascade-internet", "thesis-low")
    }
    assert not {wrong for wrong in words["cascade-internet"] if "order" in wrong or "overtakes" in wrong}
    assert {"no packet that overtakes", "jitter that keeps the order"} < words["thesis-low"]
    assert "no packet that skips the delay" not in words["thesis-low"]


BURSTS = Bursts(Duration(0.02), Duration(0.4))
CUT = Direction(delay=Duration(0.02), loss=BURSTS)


def test_losses_at_other_moments_than_the_paths_own_are_outside():
    """Twice the bursts lose about as many packets in many a look of seconds: where they come tells more than how many."""
    path = telling_path()
    sent = moments(2000, 0.001)
    expected = expect("stated", CUT, sent, serial=0.0, path=path)
    looks = looks_at(CUT, "stated", CUT, 0.0, sent, expected, 20, 1, path)
    assert not any("misplaced" in look for look in looks)
    other = replace(path, seed=path.seed + 1)
    assert all("misplaced" in look for look in looks_at(CUT, "stated", CUT, 0.0, sent, expected, 20, 1, other))


def test_a_lost_probe_whose_moment_is_not_known_well_is_not_misplaced():
    """A prober that stood still sends late, and only what arrives says when."""
    path, sent = telling_path(), moments(2000, 0.001)
    expected = expect("stated", CUT, sent, serial=0.0, path=path)
    late = path.in_burst(BURSTS, sent + 0.005)
    assert expected.misplaced is not None
    assert expected.misplaced.holds(expected.elsewhere(late))
    assert not expected.misplaced.holds(expected.elsewhere(path.in_burst(BURSTS, sent + 0.1)))


def telling_path() -> LinkPath:
    told = profile(CUT)
    return LinkPath(telling_seed(told, pace_of(told, 2000, 0.001), 2, 1), 0, 1)
