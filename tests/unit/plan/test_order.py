"""From a study and a seed comes the same order of trials, always."""

import dataclasses
from collections import Counter

from tunnelmark.plan.load import parse_study
from tunnelmark.plan.model import Study
from tunnelmark.plan.order import order
from unit.plan.studies import CATALOGUE, FILES


def quick(seed: int = 1) -> Study:
    """The study with the link that it had when its order was written down below; names decide the order."""
    text = FILES.find_study("quick").read_text().replace('["auto"]', '["gigabit"]')
    return parse_study(text, "quick.toml", FILES, CATALOGUE, seed=seed)


def test_every_block_holds_every_cell_once():
    plan = order(quick())
    assert len(plan.trials) == 8 * 9 * 3
    assert Counter(trial.block for trial in plan.trials) == dict.fromkeys(range(1, 9), 9 * 3)
    assert len({trial.id for trial in plan.trials}) == len(plan.trials)


def test_blocks_come_one_after_the_other():
    trials = order(quick()).trials
    assert [trial.position for trial in trials] == list(range(len(trials)))
    assert [trial.block for trial in trials] == sorted(trial.block for trial in trials)


def test_the_same_seed_gives_the_same_order_and_another_seed_another():
    ids = [trial.id for trial in order(quick()).trials]
    assert [trial.id for trial in order(quick()).trials] == ids
    assert [trial.id for trial in order(quick(seed=2)).trials] != ids


def test_each_block_is_shuffled_anew():
    cells = [trial.id.partition(".")[2] for trial in order(quick()).trials]
    assert cells[:27] != cells[27:54]
    assert sorted(cells[:27]) == sorted(cells[27:54])


def test_the_order_is_the_one_that_it_has_always_been():
    assert [trial.id for trial in order(quick()).trials[:4]] == [
        "001.tinc.gigabit.pair.tcp",
        "001.yggdrasil.gigabit.pair.ping",
        "001.nebula.gigabit.pair.ping",
        "001.openvpn.gigabit.pair.tcp",
    ]


def test_an_arm_that_is_left_out_leaves_the_order_of_the_others():
    study = quick()
    fewer = dataclasses.replace(study, arms=study.arms[:-1])
    left = [trial.id for trial in order(study).trials if trial.arm.name != "yggdrasil"]
    assert [trial.id for trial in order(fewer).trials] == left
