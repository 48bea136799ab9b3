"""The lengths of a study: usual, short, and as what it repeats was published."""

from __future__ import annotations

import pytest

from tunnelmark.errors import PlanError, UsageError
from tunnelmark.plan.load import parse_study
from tunnelmark.plan.model import Study
from unit.plan.studies import ARMS, CATALOGUE, FILES, STUDY

LONG = """
[full]
blocks = 9
profiles = ["gigabit", "unshaped"]
"""
TINC = """
[[arm]]
name = "tinc"
only = "full"
"""
WORKLOADS = """
[[workload]]
workload = "ping"
options = { duration = "4 s" }
smoke = { duration = "1 s" }
full = { duration = "60 s" }

[[workload]]
workload = "tcp"
only = "full"
"""


def parse(text: str = LONG + ARMS + TINC + WORKLOADS, *, smoke: bool = False, full: bool = False) -> Study:
    return parse_study(STUDY + text, "mine.toml", FILES, CATALOGUE, smoke=smoke, full=full)


def contents(study: Study) -> tuple[int, list[str], list[str], list[str], str]:
    arms, profiles, uses = ([each.name for each in every] for every in (study.arms, study.profiles, study.workloads))
    return study.blocks, arms, profiles, uses, str(study.workloads[0].options["duration"])


def test_each_length_has_its_blocks_arms_profiles_workloads_and_options() -> None:
    usual = ["direct", "direct-again"]
    assert contents(parse()) == (2, usual, ["gigabit"], ["ping"], "4 s")
    assert contents(parse(smoke=True)) == (1, usual, ["gigabit"], ["ping"], "1 s")
    assert contents(parse(full=True)) == (9, [*usual, "tinc"], ["gigabit", "unshaped"], ["ping", "tcp"], "60 s")
    assert (parse().full, parse(full=True).full) == (False, True)


def test_a_study_without_a_long_length_says_so() -> None:
    with pytest.raises(UsageError, match="no long length"):
        parse(ARMS + WORKLOADS, full=True)


def test_a_study_runs_in_one_length() -> None:
    with pytest.raises(UsageError, match="exclude each other"):
        parse(smoke=True, full=True)


def test_a_mistake_in_another_length_is_found_at_once() -> None:
    with pytest.raises(PlanError, match="duration"):
        parse(LONG + ARMS + WORKLOADS.replace('full = { duration = "60 s" }', "full = { duration = 60 }"))
    with pytest.raises(PlanError, match="no profile called 'gigabyte'"):
        parse(LONG.replace("unshaped", "gigabyte") + ARMS + WORKLOADS)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (ARMS.replace('same_as = "direct"', 'same_as = "direct"\nonly = "full"') + WORKLOADS, "A/A pair"),
        (
            ARMS.replace('name = "direct"\n', 'name = "direct"\nonly = "full"\n') + WORKLOADS,
            "the same as an arm that only",
        ),
        (ARMS + WORKLOADS.replace('workload = "ping"', 'workload = "ping"\nonly = "full"'), "has workloads"),
    ],
)
def test_the_usual_length_is_a_study_of_its_own(text: str, complaint: str) -> None:
    with pytest.raises(PlanError, match=complaint):
        parse(LONG + text)
