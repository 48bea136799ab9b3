"""A report says that blocks were added, until when, why that ended, and what was not waited for."""

from dataclasses import replace

import pytest

from tunnelmark.analyse import judge
from tunnelmark.plan.enough import Enough
from tunnelmark.record.results import BlockDecision, Results
from tunnelmark.report import markdown
from tunnelmark.report.cautions import cautions
from tunnelmark.report.methods import methods
from tunnelmark.report.stopped_runs import sentences
from unit.builders import TCP, Study


def results(enough: Enough | None, noise: float = 0.01, *decisions: BlockDecision) -> Results:
    found = Study(workloads=(TCP,), noise=noise, blocks=12, arms=("direct", "direct-again", "tinc")).results()
    return replace(found, plan=replace(found.plan, enough=enough), decisions=decisions)


def test_nothing_is_said_of_a_fixed_number():
    assert sentences(judge(results(None))) == []


def test_it_says_until_when_and_why_it_ended():
    more = BlockDecision(8, "more", 12, 100.0, "1 of 1 ratios are not precise enough")
    end = BlockDecision(12, "precise", 12, 150.0, "1 of 1 ratios are within 5 %")
    found = judge(results(Enough(8, 40, 0.05), 0.01, more, end))
    said, wider = sentences(found)
    assert "wider factor" in wider
    assert "until headline ratios are within 5 %, to 12, with decisions at 8 and 12" in said
    assert "because they were (1 of 1 ratios are within 5 %)" in said
    assert said in cautions(found)
    assert "until headline ratios are within 5 %" in markdown.render(found)


def test_it_names_what_was_not_waited_for():
    end = BlockDecision(12, "nothing", 12, 150.0, "no ratio can be within 5 % with 40 blocks")
    said = sentences(judge(results(Enough(8, 40, 0.05), 0.7, end)))
    assert "Not waited for" in said[2]
    assert "tinc by tcp TCP goodput (it would need about" in said[2]


def test_a_time_is_said_as_such():
    end = BlockDecision(12, "budget", 12, 1790.0, "another block would not end within the time that was given")
    (said,) = sentences(judge(results(Enough(8, 40, None, 1800.0), 0.01, end)))
    assert said.startswith(
        "Blocks were added for 30 min 00 s, to 12, with decisions at 12; it ended when its time was up"
    )


@pytest.mark.parametrize(
    ("enough", "rule"),
    [
        (Enough(8, 40, 0.025), "until headline ratios are within 2.5 %"),
        (Enough(8, 40, change=0.03), "until a change of 3 % between old and new is found or excluded"),
        (Enough(8, 40, budget=1800.0), "for 30 min 00 s"),
    ],
)
def test_the_methods_of_a_paper_state_the_same_rule(enough: Enough, rule: str):
    design = next(part.text for part in methods(judge(results(enough))) if part.heading == "Design")
    assert f"Blocks were added {rule}, from 8 to at most 40." in design
