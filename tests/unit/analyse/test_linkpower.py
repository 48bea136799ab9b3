"""A look shows a part of a profile only where it would have found a link that is wrong in it; rare losses are shown by counts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tunnelmark.analyse import gates, judge
from tunnelmark.analyse.link import judge as judge_link
from tunnelmark.analyse.linkpower import FOUND, finds, wrongs
from tunnelmark.plan.files import Files
from tunnelmark.plan.impairments import Blackout, Chance, Direction, GilbertElliott
from tunnelmark.plan.load import load_profile
from tunnelmark.plan.struck import shares
from tunnelmark.record.results import LinkPart, LinkProof
from tunnelmark.run.outcome import Counted
from tunnelmark.run.probes import enough, pace_of, train_of
from tunnelmark.units import Duration, Rate, Share, Size
from unit.builders import Study
from unit.looks import WAY, flow, observation, profile

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
    way = replace(WAY, blackouts=(Blackout(Duration(0.5), Duration(0.1)),), corruption=Chance(Share(0.1)))
    assert {wrong.part for wrong in wrongs(way)} == {
        "delay", "jitter", "loss", "duplication", "corruption", "order", "cuts"
    }  # fmt: skip
    assert all(wrong.way != way for wrong in wrongs(way))


@pytest.mark.parametrize("name", ["lan", "edge-loss-10", "edge-delay-50"])
def test_a_look_of_a_run_shows_all_that_these_profiles_state(name):
    told = load_profile(name, Files.standard())
    pace = pace_of(told, enough(told), 0.001)
    for way in (told.forward, told.back):
        assert all(each.power(ALL) >= FOUND for each in finds("stated", way, 0.0, pace.count, pace.interval))


def test_a_look_has_as_many_probes_as_its_rarest_loss_needs():
    assert enough(profile(Direction(loss=Chance(Share(0.02))))) == 3000
    assert enough(profile(Direction(loss=Chance(Share(0.0001))))) == 1500
    assert enough(profile(Direction(delay=Duration(0.01)))) == 1500


def test_a_train_on_a_fast_link_is_little_faster_than_it():
    train = train_of(Direction(rate=Rate(10**9), queue=Size(524_288)))
    assert train is not None
    assert 1.1e9 < 8 * (train.size + 42) / train.interval < 1.5e9


class TestCounts:
    """What the emulator counted in the trials' own traffic, of each block the attempt with most packets."""

    def gate(self, *lost: int, loss: float = 0.001, packets: int = 200_000):
        results = Study(blocks=len(lost)).results()
        plan = replace(
            results.plan, profiles=tuple(replace(one, strikes=({"loss": loss}, {})) for one in results.plan.profiles)
        )
        rows = tuple(
            replace(
                row,
                counted=(
                    Counted(
                        "a>b",
                        packets // (1 + place % 2),
                        lost[row.block - 1] // (1 + place % 2),
                        lost[row.block - 1],
                        0,
                        0,
                    ),
                ),
            )
            for place, row in enumerate(results.trials)
        )
        untested = LinkPart("a>b", "loss", "not tested", "few probes")
        first = results.trials[0]
        proof = LinkProof(
            first.profile, first.topology, "before", first.started - 5, 1.0, "proved", "", (), parts=(untested,)
        )
        return gates(judge(replace(results, plan=plan, trials=rows, proofs=(proof,))))[-1]

    def test_show_a_loss_that_no_look_could_meet(self):
        gate = self.gate(203, 190)
        assert gate.passed, gate.explanation
        assert "1 properties are shown" in gate.explanation

    @pytest.mark.parametrize("lost", [(0, 0), (400, 410)])
    def test_find_another(self, lost):
        gate = self.gate(*lost)
        assert gate.passed is False
        assert "loss a>b" in gate.explanation
        assert "of 400,000 packets of the trials, 400 +-" in gate.explanation

    def test_of_few_packets_show_nothing(self):
        gate = self.gate(0, 0, packets=2000)
        assert gate.passed is None
        assert "not tested: loss a>b" in gate.explanation


def test_long_run_shares_are_known_in_closed_form_or_left_out():
    bursts = GilbertElliott(Share(0.006), Share(0.3))
    assert shares(Direction(loss=bursts), "stated")["loss"] == pytest.approx(0.0196, abs=1e-4)
    assert shares(Direction(loss=Chance(Share(0.1), Share(0.5))), "netem") == {}
    assert shares(Direction(loss=bursts, blackouts=(Blackout(Duration(1), Duration(1)),)), "stated") == {}
