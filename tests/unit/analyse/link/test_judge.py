"""A link is verified when probes met what follows from its profile, and outside when they did not; trials follow it."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest

from tunnelmark.analyse import gates, judge
from tunnelmark.analyse.link.judge import judge as judge_link
from tunnelmark.analyse.link.judge import row_of
from tunnelmark.analyse.link.lateness import told_apart
from tunnelmark.analyse.link.statistics import lag1
from tunnelmark.analyse.link_gate import reopened, standing, voided
from tunnelmark.lab.probe_sender import CORRUPTED
from tunnelmark.model.observation import RECORDS
from tunnelmark.model.retries import Retries
from tunnelmark.plan.impairments import Direction, GilbertElliott, Jitter
from tunnelmark.record import store
from tunnelmark.record.journal import Journal
from tunnelmark.record.link_check import LinkCheck, LinkLine
from tunnelmark.record.results import ENVIRONMENT, JOURNAL, Session
from tunnelmark.units import Duration, Share
from unit.builders import Study
from unit.made_looks import COUNT, INTERVAL, WAY, ZERO, flow, lines, observation, profile, report


@pytest.mark.parametrize("seed", range(3))
def test_a_link_that_does_what_it_says_is_verified(seed):
    seen = observation(flow(WAY, "a", 10 + seed), flow(WAY, "b", 20 + seed), (report(),))
    check = judge_link(profile(WAY), seen, "alone")
    assert check.verdict == "verified", check.reason
    found = lines(check)
    assert found["delay_mean"].achieved == pytest.approx(19.6, abs=0.3)
    assert found["skipped"].expected == pytest.approx(2, abs=0.2)
    assert found["delay_sd"].expected == pytest.approx(1, abs=0.1)
    assert found["delay_lag1"].expected == pytest.approx(0.3, abs=0.02)
    assert found["loss"].expected == pytest.approx(3.2, abs=0.4)
    assert found["delay_lag1"].stated == "30 %"
    assert len(check.series["a>b"]) > 10


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
    check = judge_link(profile(WAY), observation(flow(truth, "a", 1), flow(WAY, "b", 2)), "alone")
    if outside != "burst":  # which loses less as well, and that is in itself enough
        assert lines(check)[outside].ok is False
    assert check.verdict == "outside"
    assert "a>b" in check.reason


def test_a_machine_that_stands_still_is_no_correlated_jitter():
    """As it was seen on a host that took the cores away: 0.78 for a jitter without correlation, by 30 ms every 200."""
    way = Direction(delay=Duration(0.004), jitter=Jitter(Duration(0.002), keep_order=False))
    good = flow(way, "a", 1)
    held = good.records.copy()
    for begin in range(0, COUNT, 200):
        until = ZERO + round(1e8) + round(1e9 * INTERVAL * begin) + 30_000_000
        late = (held["number"] >= begin) & (held["received"] < until) & (held["sent"] < until)
        held["received"][late] = until
    check = judge_link(profile(way), observation(replace(good, records=held), flow(way, "b", 2)), "alone")
    found = lines(check)
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


class TestAStudy:
    def results(self, verdict, started_after: float, when="before"):
        results = Study(blocks=2).results()
        first = results.trials[0].started
        results = replace(results, sessions=(Session(first - 10, 20.0), Session(first + 1e6, None)))
        check = LinkCheck("gigabit", "pair", when, first + started_after, 1.0, verdict, "rate a>b: 1", ())
        return replace(results, link_checks=(check,))

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

    def test_is_void_by_what_was_found_afterwards_too(self):
        assert {row.outcome for row in voided(self.results("outside", 1000, "after")).trials} == {"void"}

    def test_is_open_again_for_a_run_that_goes_on(self):
        tries = {"002.x": Retries(1, True)} | {row.trial: Retries(1, True) for row in Study(blocks=2).results().trials}
        found = reopened(self.results("outside", 1000, "after"), tries)
        assert found["002.x"] == Retries(1, True)
        assert {one for name, one in found.items() if name != "002.x"} == {Retries(1, False)}
        assert reopened(self.results("verified", 1000, "after"), tries) == tries

    def test_of_another_session_is_not(self):
        assert {row.outcome for row in voided(self.results("outside", 1e6 + 5)).trials} == {"ok"}

    def test_of_a_block_that_was_measured_at_the_same_time_is_not(self, tmp_path: Path):
        whole = Study(blocks=2).results()
        store.write_plan(tmp_path, whole.plan)
        (tmp_path / ENVIRONMENT).write_text("{}")
        with Journal(tmp_path / JOURNAL) as journal:
            for block in (1, 2):
                check = LinkCheck("gigabit", "pair", "before", block + 0.5, 1.0, "outside", "rate a>b: 1", ())
                check = replace(check, verdict="verified") if block == 1 else check
                rows = [replace(row, started=10.0) for row in whole.trials if row.block == block]
                kept = [{"trial": asdict(row)} for row in rows]
                journal.append({"merged": [{"begun": float(block)}, {"link": asdict(check)}, *kept, {"wall": 20.0}]})
        found = voided(store.load(tmp_path)).trials
        assert {(row.block, row.outcome) for row in found} == {(1, "ok"), (2, "void")}

    def test_is_not_void_where_its_link_was_verified(self):
        results = self.results("verified", -5)
        assert voided(results) is results
        gate = gates(judge(results))[-1]
        assert (gate.name, gate.passed) == ("the link does what its profile says", True)

    def test_is_decided_by_the_last_look(self):
        outside, verified = self.results("outside", 1000, "after"), self.results("verified", 1001, "after")
        healed = replace(outside, link_checks=(*outside.link_checks, *verified.link_checks))
        assert {row.outcome for row in voided(healed).trials} == {"ok"}
        gate = gates(judge(healed))[-1]
        assert gate.passed
        assert "1 of the links passed only when looked at again (at first: rate a>b: 1)" in gate.explanation
        twice = replace(
            outside, link_checks=(*outside.link_checks, replace(outside.link_checks[0], reason="rate a>b: 2"))
        )
        assert {row.outcome for row in voided(twice).trials} == {"void"}

    def test_is_void_by_what_is_outside_in_every_look_and_by_nothing_else(self):
        def look(*names: str, judged: bool = True) -> LinkCheck:
            other = True if judged else None
            lines = tuple(
                LinkLine("a>b", name, "ms", "", 1.0, 0.0, 1.0, 2.0, False if name in names else other)
                for name in ("rate", "delay_p99", "distribution")
            )
            return LinkCheck("p", "pair", "before", 1.0, 1.0, "outside", "; ".join(names), lines)

        assert standing([look("delay_p99", "rate"), look("distribution")]) is None
        found = str(standing([look("delay_p99", "rate"), look("distribution", "rate")]))
        assert found.startswith("rate a>b")
        assert "distribution" not in found
        assert str(standing([look("rate"), look(judged=False)])).startswith("rate a>b"), "it was never seen inside"

    def test_is_void_too_on_a_topology_that_has_the_same_link(self):
        results = self.results("outside", 1000, "after")
        pair = results.plan.topologies[0]
        plan = replace(results.plan, topologies=(pair, replace(pair, name="pair-too")))
        rows = tuple(replace(row, topology="pair-too") for row in results.trials)
        assert {row.outcome for row in voided(replace(results, plan=plan, trials=rows)).trials} == {"void"}

    def test_of_a_round_of_looks_between_trials_is_judged_by_that_round(self):
        results = self.results("verified", 1, "during")
        later = replace(results.link_checks[0], verdict="outside", round=2)
        assert {row.outcome for row in voided(replace(results, link_checks=(*results.link_checks, later))).trials} == {
            "void"
        }

    def test_is_not_open_again_where_a_later_attempt_was_good(self):
        results = self.results("outside", 1000, "after")
        again = tuple(replace(row, attempt=2, started=row.started + 2e6) for row in results.trials)
        tries = {row.trial: Retries(2, True) for row in results.trials}
        assert reopened(replace(results, trials=(*results.trials, *again)), tries) == tries

    def test_whose_link_showed_nothing_that_its_profile_states_is_not_tested(self):
        slow = "not judged: the sender reached 772 Mbit/s"
        rate, queue = (
            LinkLine("a>b", name, "", stated, 1.0, 0.9, 1.1, 0.5, None, f"{slow} and filled no queue")
            for name, stated in (("rate", "1 Gbit/s"), ("queue", "512 KiB"))
        )
        verified = self.results("verified", -5)
        check = replace(verified.link_checks[0], lines=(rate, queue))
        gate = gates(judge(replace(verified, link_checks=(check,))))[-1]
        assert gate.passed is None
        assert gate.explanation == (
            "not tested: rate a>b, queue a>b of gigabit (the sender reached 772 Mbit/s and filled no queue)"
        )
        later = replace(check, when="after", lines=(replace(rate, ok=True), queue))
        gate = gates(judge(replace(verified, link_checks=(check, later))))[-1]
        assert gate.passed is None
        assert "1 lines of 2 looks" in gate.explanation
        assert "not tested: queue a>b of gigabit" in gate.explanation

    def test_of_profiles_whose_reasons_differ_only_in_numbers_they_are_said_once(self):
        """As it was read: twelve times the same two sentences, each with another rate."""
        slow = "not judged: the sender reached {} Mbit/s and filled no queue"
        queue = LinkLine("a>b", "queue", "", "512 KiB", 1.0, 0.9, 1.1, 0.5, None, slow.format(772))
        verified = self.results("verified", -5)
        check = replace(verified.link_checks[0], lines=(queue,))
        other = replace(check, profile="wifi", lines=(replace(queue, note=slow.format(801)),))
        gate = gates(judge(replace(verified, link_checks=(check, other))))[-1]
        assert gate.explanation == (
            "not tested: queue a>b of gigabit, wifi (the sender reached 772 to 801 Mbit/s and filled no queue)"
        )

    def test_whose_profile_states_nothing_has_nothing_to_see(self):
        gate = gates(judge(self.results("verified", -5)))[-1]
        assert gate.standing == "not applicable"
        assert "nothing to verify" in gate.explanation

    def test_whose_link_nobody_looked_at_has_no_such_gate(self):
        assert all(
            gate.name != "the link does what its profile says" for gate in gates(judge(Study(blocks=2).results()))
        )


class TestLateness:
    """A run's look leaves lateness to the trials, which are graded by their own."""

    def look(self, when, late: float, p99: float, delay: float = 0.0):
        slow = flow(WAY, "a", 2, late=delay)
        return judge_link(profile(WAY), observation(slow, flow(WAY, "b", 3), (report(p99),)), when)

    def test_is_judged_alone_and_told_in_a_run(self):
        alone, before = self.look("alone", 0.0, 2000.0), self.look("before", 0.0, 2000.0)
        assert (alone.verdict, before.verdict) == ("outside", "verified")
        assert lines(before)["late"].ok is None
        assert "graded" in lines(before)["late"].note

    @pytest.mark.parametrize(("share", "verdict"), [(0.03, "verified"), (0.1, "outside")])
    def test_leaves_out_a_few_probes_that_no_draw_makes_so_late(self, share, verdict):
        records = flow(WAY, "a", 2).records.copy()
        held = np.random.default_rng(3).random(len(records)) < share
        records["received"][held] += 60_000_000
        seen = observation(flow(WAY, "a", 2, records=records), flow(WAY, "b", 3), (report(),))
        assert judge_link(profile(WAY), seen, "alone").verdict == "outside"
        before = judge_link(profile(WAY), seen, "before")
        assert before.verdict == verdict, before.reason
        if verdict == "verified":
            assert "later than any draw" in lines(before)["delay_p99"].note

    def test_lets_a_shift_be_judged_by_the_mean(self):
        way = replace(WAY, jitter=Jitter(Duration(0.0005), "uniform", Share(0), keep_order=False), reordering=None)
        shifted_by = {}
        for late in (0.00012, 0.0004):
            seen = observation(flow(way, "a", 2, late=late), flow(way, "b", 3), (report(),))
            shifted_by[late] = judge_link(profile(way), seen, "before"), judge_link(profile(way), seen, "alone")
        before, alone = shifted_by[0.00012]
        assert (before.verdict, lines(alone)["distribution"].ok) == ("verified", False), before.reason
        assert shifted_by[0.0004][0].verdict == "outside"

    def test_leaves_nothing_out_of_a_link_that_is_slower_than_it_says(self):
        slow = flow(WAY, "a", 2, late=0.003)
        assert (
            judge_link(profile(WAY), observation(slow, flow(WAY, "b", 3), (report(),)), "before").verdict == "outside"
        )

    def test_excuses_a_delay_that_is_longer_by_no_more_than_it_says(self):
        line = LinkLine("a>b", "delay_p99", "ms", "", 22.0, 20.0, 23.0, 24.5, False)
        assert told_apart(line, (report(2000.0),)).ok is None
        assert told_apart(line, (report(1000.0),)).ok is False
        assert told_apart(replace(line, achieved=19.0), (report(2000.0),)).ok is False  # too short is no lateness
        assert told_apart(replace(line, name="loss"), (report(2000.0),)).ok is False
        assert told_apart(line, ()).ok is False
