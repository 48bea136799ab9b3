"""Runs of one study are joined where they compared the same thing, and what is not joined is said."""

from __future__ import annotations

from dataclasses import replace
from math import exp
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tunnelmark import analyse
from tunnelmark.analyse.meta_analysis import Merged, MergedRow, merge
from tunnelmark.analyse.model import Scenario
from tunnelmark.analyse.pairing import effect
from tunnelmark.errors import UsageError
from tunnelmark.record.results import Results
from unit.builders import PROFILE, TCP, Study

ARMS = ("direct", "direct-again", "tinc", "nebula")
TCP_AT = Scenario("gigabit", "pair", "tcp")


def machine(model: str = "1", boot: str = "one") -> dict[str, Any]:
    cpu = {"vendor": "AuthenticAMD", "family": "25", "model": model, "stepping": "1", "name": "AMD EPYC", "mhz": 2445.0}
    fingerprint = {"cpu": cpu, "cores": 2, "kernel": "6.18", "hypervisor": "KVM", "boot": boot}
    return {"fingerprint": fingerprint, "machine": {"cpu": "AMD EPYC"}}


def run(
    seed: int, *, model: str = "1", boot: str = "one", speed: float = 0.5, arms: tuple[str, ...] = ARMS, **more: Any
) -> Results:
    """A run on such a machine, on which tinc reaches `speed` of direct, and nebula always 1.4 times what tinc does."""
    study = Study(
        arms=arms,
        workloads=(TCP,),
        blocks=more.pop("blocks", 8),
        tcp={"tinc": speed, "nebula": 1.4 * speed},
        seed=seed,
        environment=machine(model, boot),
        **more,
    )
    found = study.results()
    shift = 1e6 * seed
    sessions = tuple(replace(each, started=each.started + shift, boot=boot) for each in found.sessions)
    return replace(found, sessions=sessions, path=Path("nowhere"))


def joined(*runs: Results) -> Merged:
    return merge({f"{number:02d}": analyse.judge(found) for number, found in enumerate(runs, start=1)})


def row(found: Merged, arm: str, against: str = "direct") -> MergedRow:
    rows = [*found.rows, *found.pairs]
    return next(r for r in rows if (r.arm, r.against, r.metric.name, r.setting) == (arm, against, "goodput", TCP_AT))


def test_sessions_of_one_machine_differ_by_their_own_noise_alone():
    found = joined(*(run(seed, boot=str(seed)) for seed in (1, 2, 3, 4)))
    tinc = row(found, "tinc").combined
    assert (tinc.unit, tinc.units, tinc.sessions) == ("session", 4, 4)
    assert exp(tinc.mean) == pytest.approx(0.5, rel=0.03)
    assert tinc.sd_sessions is not None and tinc.sd_sessions < 0.03
    assert tinc.sd_blocks == pytest.approx(0.03 * 2**0.5, rel=0.35)
    assert found.covers == "further runs like the 4 measured, on this machine in boots like the 4 measured"


def test_machines_that_differ_by_two_are_seen_and_their_vpns_keep_their_ratio():
    # What a review found: 53 % of direct on one machine, 23 % on another, and nebula 1.4 times tinc on both.
    speeds = [("1", 0.53), ("17", 0.23), ("49", 0.40)]
    found = joined(*(run(seed, model=model, speed=speed) for seed, (model, speed) in enumerate(speeds, start=1)))
    tinc, pair = row(found, "tinc").combined, row(found, "tinc", "nebula").combined
    assert (tinc.unit, tinc.units) == ("machine", 3)
    assert tinc.sd_machines is not None and pair.sd_machines is not None
    truth = float(np.std(np.log([speed for _, speed in speeds]), ddof=1))
    assert tinc.sd_machines == pytest.approx(truth, rel=0.15)
    assert pair.sd_machines < 0.1 * tinc.sd_machines
    assert exp(pair.mean) == pytest.approx(1 / 1.4, rel=0.03)
    assert tinc.next_low is not None and pair.next_low is not None and pair.next_high is not None
    assert exp(tinc.next_low) < 0.15
    assert exp(pair.next_low) > 0.6 and exp(pair.next_high) < 0.85
    assert found.covers == "machines like the 3 measured"
    assert [each.machine for each in found.sessions] == ["A", "B", "C"]


def test_the_mean_of_a_single_run_is_that_run_s_estimate():
    only = run(1)
    found = joined(only)
    cell = analyse.judge(only).cell("tinc", TCP_AT, "goodput")
    assert cell.against_direct is not None
    mine = row(found, "tinc")
    assert effect(mine.metric, mine.combined.mean) == pytest.approx(cell.against_direct.estimate)
    assert mine.combined.low is None


def test_an_arm_that_only_some_runs_have_is_joined_over_those():
    more = (*ARMS, "openvpn")
    found = joined(run(1), run(2, arms=more), run(3, arms=more))
    assert [each.session for each in row(found, "openvpn").effects] == ["02", "03"]
    assert [each.session for each in row(found, "tinc").effects] == ["01", "02", "03"]
    assert "02, 03 against 01: arm openvpn is there only" in found.not_joined
    plans = [each.plan for each in found.sessions]
    assert plans[0] != plans[1] == plans[2]


def test_another_version_of_a_vpn_is_another_arm():
    theirs = run(2)
    environment = {**theirs.environment, "vpns": {"tinc": {"version": "1.1"}}}
    found = joined(run(1), replace(theirs, environment=environment), run(3))
    assert [each.session for each in row(found, "tinc").effects] == ["01", "03"]
    assert row(found, "tinc").left_out == {"02": "another arm tinc"}
    assert len(row(found, "nebula").effects) == 3
    assert len({each.plan for each in found.sessions}) == 1  # what was asked is the same


def test_another_rate_of_the_link_is_another_link():
    slower = run(2, profiles=(replace(PROFILE, rate=500_000_000),))
    with pytest.raises(UsageError, match="rate 500000000, not 1000000000") as caught:
        joined(run(1), slower)
    assert "auto" in caught.value.hint


def test_neither_seed_nor_blocks_nor_words_change_the_plan():
    other = run(2)
    plan = replace(other.plan, blocks=12, title="another title", description="", seed=99)
    found = joined(run(1), replace(other, plan=plan))
    assert len({each.plan for each in found.sessions}) == 1


def test_a_block_with_zero_is_left_out_and_told():
    broken = run(2)
    zeroed = tuple(
        replace(trial, samples=tuple(replace(s, value=0.0) for s in trial.samples))
        if trial.arm == "tinc" and trial.block > 1
        else trial
        for trial in broken.trials
    )
    found = joined(run(1), replace(broken, trials=zeroed), run(3))
    assert [each.session for each in row(found, "tinc").effects] == ["01", "03"]
    assert any(said.startswith("02: tinc by TCP goodput") for said in found.not_joined)


def test_what_is_wrong_with_a_session_is_said():
    same = joined(run(1), run(1, boot="two"))
    assert any("same seed" in said for said in same.cautions)
    assert same.covers == "this machine in so few runs that there is no interval over them"
    two = joined(run(1), run(2, model="17"))
    assert two.covers == "two machines, which are too few to say what a third would do"
    short = joined(run(1), run(2, stop_after=20))
    assert "02 is unfinished." in short.cautions


def of_blocks(found: Results, *numbers: int) -> Results:
    """What a machine of a cluster has measured: these blocks of the plan, under the plan's numbers."""
    trials = tuple(trial for trial in found.trials if trial.block in numbers)
    asked = tuple(dict.fromkeys(trial.trial for trial in trials))
    return replace(found, plan=replace(found.plan, blocks=len(numbers), trials=asked), trials=trials)


def test_a_study_whose_machines_have_one_block_each_is_joined():
    whole = [run(1, model=model, speed=speed) for model, speed in (("1", 0.53), ("17", 0.23), ("49", 0.40), ("2", 0.5))]
    found = joined(*(of_blocks(each, number) for number, each in enumerate(whole, start=1)))
    tinc, pair = row(found, "tinc").combined, row(found, "tinc", "nebula").combined
    assert (tinc.unit, tinc.units, tinc.sd_blocks, tinc.here_low) == ("machine", 4, None, None)
    assert tinc.low is not None and tinc.high is not None and tinc.low < np.log(0.4) < tinc.high
    assert pair.next_low is not None and pair.next_high is not None
    assert exp(pair.next_low) > 0.5 and exp(pair.next_high) < 1


def test_links_of_one_seed_decide_alike_only_in_blocks_of_the_same_number():
    whole, other = run(1), run(1, model="17")
    apart = joined(of_blocks(whole, 1, 3, 5), of_blocks(other, 2, 4, 6))
    assert not any("same seed" in said for said in apart.cautions)
    shared = joined(of_blocks(whole, 1, 3), of_blocks(other, 3, 4), of_blocks(run(1, model="49"), 5, 6))
    assert [said.split(" have ")[0] for said in shared.cautions if "same seed" in said] == ["01 and 02"]
    chain = joined(of_blocks(whole, 1, 2), of_blocks(other, 3, 4), of_blocks(run(1, model="49"), 2, 3))
    assert [said.split(" have ")[0] for said in chain.cautions if "same seed" in said] == ["01 and 02 and 03"]


def test_runs_in_which_too_much_failed_are_joined_all_the_same_and_it_is_told():
    failing = tuple(("tinc", "tcp", block) for block in range(1, 9))
    found = joined(run(1, fails=failing), run(2, fails=failing[1:]), run(3, fails=failing))
    alone = row(found, "tinc")
    assert (alone.combined.units, alone.combined.low, alone.combined.here_low) == (1, None, None)
    assert (alone.success.count, alone.success.total) == (1, 8)
    assert row(found, "nebula").combined.units == 3
    assert "01: tinc by TCP goodput: no block with both" in found.not_joined
    every = tuple((arm, "tcp", block) for arm in ARMS for block in range(1, 9))
    nothing = joined(run(1, fails=every), run(2, fails=every))
    assert (nothing.rows, nothing.pairs) == ((), ())
    assert len(nothing.not_joined) >= 2


def test_sessions_too_short_for_an_aa_judgement_fail_no_gate_and_say_where_it_is():
    found = joined(*(run(seed, model=str(seed), blocks=2) for seed in (1, 2, 3)))
    assert ["A/A agrees" in each.failed_gates for each in found.sessions] == [False] * 3
    assert "01 and 02 and 03 have too few blocks to judge an A/A pair alone" in " ".join(found.cautions)
    assert found.same.standing == "agrees"
    assert found.same.explanation == (
        "over 3 machines no primary metric distinguishes direct-again and direct, which are the same thing under two names"
    )


def shifted(found: Results, factor: float) -> Results:
    """A run whose second direct came out by that factor higher."""
    return replace(
        found,
        trials=tuple(
            replace(each, samples=tuple(replace(one, value=factor * one.value) for one in each.samples))
            if each.arm == "direct-again"
            else each
            for each in found.trials
        ),
    )


def test_twins_that_differ_on_every_machine_differ_over_them_however_short_each_session_is():
    found = joined(*(shifted(run(seed, model=str(seed), blocks=1), 1.5) for seed in (1, 2, 3, 4)))
    assert found.same.standing == "differs"
    assert "direct-again against direct by TCP goodput (gigabit, pair)" in found.same.explanation


def test_two_machines_are_too_few_to_judge_twins_over_them():
    found = joined(*(run(seed, model=str(seed)) for seed in (1, 2)))
    assert found.same.standing == "not judged"
    assert "2 machines are too few" in found.same.explanation


def test_without_a_twin_nothing_is_judged():
    found = joined(*(run(seed, model=str(seed), arms=("direct", "tinc")) for seed in (1, 2, 3)))
    assert found.same.standing == "not judged"
    assert "no arm was measured twice" in found.same.explanation


def test_a_session_of_enough_blocks_whose_aa_pair_differs_fails_its_gate():
    found = joined(shifted(run(1), 1.5), run(2))
    assert ["A/A agrees" in each.failed_gates for each in found.sessions] == [True, False]
