"""A claim asked of each machine of several: on how many it holds, on which not, and whether it holds on machines like these."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tunnelmark import analyse
from tunnelmark.claims import reading
from tunnelmark.claims.across_machines import MachineVerdicts, OnMachines, of_machines
from tunnelmark.cli.command import main
from tunnelmark.record import several_runs
from tunnelmark.record.link_check import LinkCheck
from tunnelmark.record.results import Results
from tunnelmark.report.machine_claims import held_on
from unit.builders import TCP, Study
from unit.stored import write

SOURCE = "vpncloud-ciphers"
SHARE = "share-of-bare.plain"  # VpnCloud without a cipher reaches 94.3 % of the bare link; 0.5 refutes it

DAY = 86_400.0  # seconds


def machine(model: int) -> dict[str, Any]:
    cpu = {
        "vendor": "AuthenticAMD",
        "family": "25",
        "model": str(model),
        "stepping": "1",
        "name": "EPYC",
        "mhz": 2445.0,
    }
    return {"fingerprint": {"cpu": cpu, "cores": 2, "kernel": "6.18", "hypervisor": "KVM", "boot": str(model)}}


def measured(model: int, share: float, *numbers: int, seed: int = 0) -> Results:
    """Blocks of these numbers of that machine, on which `plain` reaches this share of the bare link."""
    study = Study(
        arms=("direct", "plain"),
        same_as={},
        workloads=(TCP,),
        blocks=12,
        tcp={"plain": share},
        noise=0.01,
        seed=seed or model,
        environment=machine(model),
    )
    found = study.results()
    trials = tuple(trial for trial in found.trials if trial.block in numbers)
    plan = replace(found.plan, study=SOURCE, blocks=len(numbers), trials=tuple(trial.trial for trial in trials))
    return replace(found, plan=plan, trials=trials)


def a_day_later(run: Results) -> Results:
    trials = tuple(replace(trial, started=trial.started + DAY) for trial in run.trials)
    sessions = tuple(replace(session, started=session.started + DAY) for session in run.sessions)
    return replace(run, trials=trials, sessions=sessions)


def asked(*runs: Results) -> MachineVerdicts:
    found = of_machines({f"{number:02d}": each for number, each in enumerate(runs, start=1)})
    assert found is not None
    return found


def judging(monkeypatch: pytest.MonkeyPatch) -> list[Results]:
    """The results that are judged from now on."""
    judged: list[Results] = []
    judge = analyse.judge

    def noted(results: Results) -> analyse.Analysis:
        judged.append(results)
        return judge(results)

    monkeypatch.setattr(analyse, "judge", noted)
    return judged


def share_of(found: MachineVerdicts) -> OnMachines:
    return next(each for each in found.found if each.claim.id == SHARE)


def test_a_claim_that_holds_on_all_but_one_machine_says_on_which():
    whole = range(1, 7)
    found = asked(*(measured(model, 0.5 if model == 2 else 0.94, *whole) for model in (1, 2, 3, 4, 5)))
    share = share_of(found)
    assert held_on(share) == "holds on 4 of 5 machines; not on B"
    assert (share.on("held"), share.on("did not hold")) == (("A", "C", "D", "E"), ("B",))
    assert share.together.outcome == "undecided"  # one machine in five is far off: machines like these may be either
    assert found.described["B"].startswith("EPYC (AuthenticAMD family 25 model 2")


def test_machines_of_one_block_each_decide_together_what_none_can_alone():
    share = share_of(asked(*(measured(model, 0.94, model) for model in (1, 2, 3, 4, 5, 6))))
    assert held_on(share).startswith("holds on 0 of 6 machines; undecided on A, B, C, D, E and F")
    assert share.together.outcome == "held"
    assert share.together.effects[0].count == 6
    refuted = share_of(asked(*(measured(model, 0.5, model) for model in (1, 2, 3, 4))))
    assert refuted.together.outcome == "did not hold"


def test_each_machine_is_one_value_however_many_blocks_it_has():
    # 0.94 on two machines with many blocks, 0.5 on one with few: no interval over three such machines leaves either out.
    share = share_of(
        asked(measured(1, 0.94, *range(1, 11)), measured(2, 0.94, *range(1, 11)), measured(3, 0.5, 1, 2, 3))
    )
    effect = share.together.effects[0]
    assert effect.count == 3
    assert effect.estimate == pytest.approx((0.94 * 0.94 * 0.5) ** (1 / 3), rel=0.03)
    assert effect.low is not None and effect.high is not None and effect.low < 0.5 and effect.high > 0.94


def test_two_machines_decide_nothing_of_others():
    share = share_of(asked(measured(1, 0.94, *range(1, 7)), measured(2, 0.94, *range(1, 7))))
    assert held_on(share) == "holds on 2 of 2 machines"
    assert share.together.outcome == "undecided"


def test_sessions_of_one_machine_are_its_blocks_together():
    first, second = measured(1, 0.94, 1, 2, seed=1), measured(1, 0.94, 1, 2, seed=2)
    found = asked(first, second)
    assert list(found.described) == ["A"]
    assert share_of(found).by_machine["A"].effects[0].count == 4
    assert share_of(found).by_machine["A"].outcome == "held"


def test_a_machine_with_one_session_is_judged_by_the_analysis_that_there_is(monkeypatch: pytest.MonkeyPatch):
    runs = {"01": measured(1, 0.94, 1, 2, seed=1), "02": measured(1, 0.94, 1, 2, seed=2), "03": measured(2, 0.5, 1, 2)}
    afresh, analyses = of_machines(runs), {name: analyse.judge(each) for name, each in runs.items()}
    judged = judging(monkeypatch)
    found = of_machines(runs, analyses=analyses)
    assert found == afresh and found is not None
    assert found.runs["B"][0] is analyses["03"]
    assert [each.plan.blocks for each in judged] == [4], "only the two sessions of A, as one"


def test_nothing_is_judged_of_a_study_that_repeats_no_source(monkeypatch: pytest.MonkeyPatch):
    run = measured(1, 0.94, 1, 2)
    judged = judging(monkeypatch)
    assert of_machines({"01": replace(run, plan=replace(run.plan, study="of our own"))}) is None
    assert judged == []


@pytest.mark.parametrize("wrong", [1, 2])
def test_a_link_that_was_wrong_in_one_session_voids_that_session_s_trials_alone(wrong: int):
    sessions = measured(1, 0.94, 1, 2, seed=1), a_day_later(measured(1, 0.94, 1, 2, 3, seed=2))
    bad = sessions[wrong - 1]
    profile, begun = bad.plan.profiles[0].name, bad.sessions[0].started
    look = LinkCheck(profile, "pair", "before", begun + 0.1, 0.1, "outside", "loss a>b", ())
    found = asked(*(replace(each, link_checks=(look,)) if each is bad else each for each in sessions))
    assert share_of(found).by_machine["A"].effects[0].count == {1: 3, 2: 2}[wrong]


def test_what_a_machine_cannot_test_is_told_of_it():
    unasked = asked(*(measured(model, 0.94, *range(1, 5)) for model in (1, 2, 3)))
    chacha = next(each for each in unasked.found if each.claim.id == "share-of-bare.chacha20")
    assert held_on(chacha) == "no machine can test it"
    assert chacha.together.reason == "machine A: this run has no arm chacha20"


def test_a_session_that_asked_something_else_is_left_out_by_name():
    other = measured(2, 0.94, 1, 2, 3)
    other = replace(other, plan=replace(other.plan, profiles=(replace(other.plan.profiles[0], rate=500_000_000),)))
    found = asked(measured(1, 0.94, 1, 2, 3), other)
    assert (found.left_out, list(found.described)) == (("02",), ["A"])


def test_the_command_says_it_of_a_merged_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    runs = [
        write(measured(model, 0.5 if model == 2 else 0.94, *range(1, 5)), tmp_path / str(model)) for model in (1, 2, 3)
    ]
    several_runs.join(tmp_path / "all", runs)
    assert main(["study", "verdict", str(tmp_path / "all")]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert f"{len(reading.find(SOURCE).claims)} claims on 3 machines" in said
    assert "B: EPYC (AuthenticAMD family 25 model 2" in said
    assert "2 of 3 machines" in said
    assert main(["study", "verdict", str(tmp_path / "all"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    share = next(each for each in found["verdicts"] if each["id"] == SHARE)
    assert share["holds"] == "holds on 2 of 3 machines; not on B"
    assert {name: each["outcome"] for name, each in share["machines"].items()} == {
        "A": "held",
        "B": "did not hold",
        "C": "held",
    }
    assert list(found["machines"]) == ["A", "B", "C"]
