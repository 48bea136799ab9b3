"""A study may say when it has enough in place of how many blocks, and a longer plan begins as a shorter one does."""

import json
from dataclasses import asdict, replace

import pytest
from pydantic import TypeAdapter

from tunnelmark.errors import PlanError, UsageError
from tunnelmark.plan.enough import FLOOR, Enough, asking
from tunnelmark.plan.load import parse_study
from tunnelmark.plan.model import Study
from tunnelmark.plan.order import order
from unit.plan.studies import ARMS, CATALOGUE, FILES, STUDY, WORKLOADS


def parsed(*lines: str, blocks: int | None = None, smoke: bool = False, grows: bool = True) -> Study:
    """The study with these lines in place of `blocks = 2`."""
    text = STUDY.replace("blocks = 2\n", "".join(f"{line}\n" for line in lines)) + ARMS + WORKLOADS
    return parse_study(text, "mine.toml", FILES, CATALOGUE, blocks=blocks, smoke=smoke, grows=grows)


def test_a_study_without_a_precision_has_as_many_blocks_as_it_says():
    assert parsed("blocks = 6").enough is None


def test_a_precision_takes_eight_blocks_first_and_forty_at_most():
    study = parsed('precision = "5 %"')
    assert (study.blocks, study.enough) == (FLOOR, Enough(8, 40, 0.05))
    assert study.replacements == 0  # further blocks stand in for what stays void


def test_floor_cap_and_time_can_be_stated():
    study = parsed("blocks = 10", 'precision = "2.5 %"', "max_blocks = 60", 'time_budget = "2 h"')
    assert study.enough == Enough(10, 60, 0.025, 7200.0)


def test_a_time_alone_is_enough_too():
    assert parsed('time_budget = "30 min"').enough == Enough(8, 40, None, 1800.0)


def test_the_short_length_adds_nothing_and_a_run_that_goes_on_keeps_what_it_was_asked():
    assert parsed('precision = "5 %"', smoke=True).enough is None
    assert parsed('precision = "5 %"', blocks=16, grows=False).enough is None


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ((), "is missing"),
        (("blocks = 3", 'precision = "5 %"'), "5 blocks or more"),
        (("blocks = 8", "max_blocks = 20"), "only added for a precision"),
        (("blocks = 8", 'precision = "5 %"', "max_blocks = 7"), "less than the 8"),
        (('precision = "0.01 %"',), "from 0.1 % to 50 %"),
        (('precision = "5"',), "known units are %"),
        (('precision = "5 %"', "replacements = 2"), "blocks are added as long as pairs lack"),
        (('time_budget = "30 min"', "replacements = 1"), "blocks are added as long as pairs lack"),
    ],
)
def test_what_cannot_be_is_refused_with_a_reason(lines: tuple[str, ...], reason: str):
    with pytest.raises(PlanError) as raised:
        parsed(*lines)
    assert reason in raised.value.message + raised.value.hint


def test_an_option_asks_more_of_a_study_of_few_blocks():
    short = parsed("blocks = 5")
    asked = asking(short, precision=0.05, budget=None, most=None, blocks_stated=False)
    assert (asked.blocks, asked.enough) == (8, Enough(8, 40, 0.05))
    stated = asking(short, precision=0.05, budget=None, most=20, blocks_stated=True)
    assert (stated.blocks, stated.enough) == (5, Enough(5, 20, 0.05))


def test_an_option_replaces_what_the_study_asks_and_leaves_the_rest():
    own = parsed('precision = "5 %"', "max_blocks = 30")
    assert asking(own, precision=0.02, budget=None, most=None, blocks_stated=False).enough == Enough(8, 30, 0.02)
    assert asking(own, precision=None, budget=60.0, most=None, blocks_stated=False).enough == Enough(8, 30, 0.05, 60.0)
    assert asking(own, precision=None, budget=None, most=None, blocks_stated=False) == own


def test_a_cap_alone_is_refused():
    with pytest.raises(UsageError, match="only added"):
        asking(parsed("blocks = 8"), precision=None, budget=None, most=20, blocks_stated=False)


def test_the_blocks_of_a_longer_plan_begin_as_those_of_a_shorter_one():
    study = parsed('precision = "5 %"')
    short, long = order(study), order(replace(study, blocks=20))
    assert long.trials[: len(short.trials)] == short.trials


def test_it_is_the_same_after_a_virtual_machine_was_told_of_it():
    asked = Enough(6, 16, change=0.01, metrics=("goodput", "cpu_per_gb_source"))
    assert TypeAdapter(Enough).validate_python(json.loads(json.dumps(asdict(asked)))) == asked
