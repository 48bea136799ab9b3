"""What a study says on watching: nothing (the light ones), a list, an empty list, and what a command puts in its place."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tunnelmark.errors import PlanError
from tunnelmark.plan.load import parse_study
from tunnelmark.plan.model import Study
from unit.plan.studies import ARMS, CATALOGUE, FILES, STUDY, WORKLOADS

KNOWING = replace(CATALOGUE, collectors={"cpu": True, "memory": True, "tcp": False})


def parse(line: str, watch: tuple[str, ...] | None = None) -> Study:
    return parse_study(STUDY + line + ARMS + WORKLOADS, "mine.toml", FILES, KNOWING, watch=watch)


@pytest.mark.parametrize(
    ("line", "watch"), [("", ("cpu", "memory")), ("watch = []\n", ()), ('watch = ["tcp", "cpu"]\n', ("tcp", "cpu"))]
)
def test_the_light_ones_unless_the_study_says_otherwise(line: str, watch: tuple[str, ...]):
    assert parse(line).watch == watch


@pytest.mark.parametrize("watch", [(), ("tcp",)])
def test_a_command_has_the_last_word(watch: tuple[str, ...]):
    assert parse('watch = ["cpu"]\n', watch).watch == watch


def test_a_name_that_nobody_has_is_refused_with_the_nearest():
    with pytest.raises(PlanError) as caught:
        parse('watch = ["cpu", "memry"]\n')
    assert "no collector called 'memry'" in str(caught.value)
    assert "memory" in caught.value.hint


def test_a_name_stands_once():
    with pytest.raises(PlanError, match="second time"):
        parse('watch = ["cpu", "cpu"]\n')
