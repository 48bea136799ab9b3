"""Yardsticks before and after a run say whether the machine was another one at its end."""

from __future__ import annotations

from dataclasses import replace

from tunnelmark import analyse
from tunnelmark.analyse.drift import moved
from tunnelmark.model.yardstick_lengths import Length
from tunnelmark.record.results import Results, Session, YardstickRow
from tunnelmark.report import json_export as as_json
from tunnelmark.report import machine_facts, markdown
from tunnelmark.report.cautions import cautions
from unit.builders import TCP, Study


def look(when: str, started: float, *, width: float = 0.05, **values: float) -> YardstickRow:
    lengths = {
        name.replace("_", " "): Length(value, value * (1 - width), value * (1 + width))
        for name, value in values.items()
    }
    return YardstickRow(when, started, lengths)  # type: ignore[arg-type]


def with_looks(*looks: YardstickRow) -> Results:
    return replace(Study(workloads=(TCP,)).results(), yardsticks=looks)


def test_a_machine_that_stays_what_it_is_has_not_moved():
    before = look("before", 1.0, system_call=100.0, timer=50_000.0)
    assert moved(with_looks(before, look("after", 2.0, system_call=110.0, timer=45_000.0))) == ()


def test_what_takes_longer_or_shorter_is_told_the_largest_first():
    before = look("before", 1.0, system_call=100.0, timer=50_000.0, veth=1000.0)
    found = moved(with_looks(before, look("after", 2.0, system_call=140.0, timer=20_000.0, veth=1200.0)))
    assert [(each.name, round(each.change, 2)) for each in found] == [("timer", -0.6), ("system call", 0.4)]


def test_a_look_that_is_itself_unsure_shows_nothing():
    wide = look("before", 1.0, width=0.5, system_call=100.0), look("after", 2.0, width=0.5, system_call=140.0)
    assert moved(with_looks(*wide)) == ()


def test_a_resumed_run_is_held_from_its_first_look_to_its_last():
    looks = look("before", 1.0, timer=100.0), look("before", 2.0, timer=200.0), look("after", 3.0, timer=200.0)
    assert [each.name for each in moved(with_looks(*looks))] == ["timer"]
    unfinished = looks[:2]
    assert moved(with_looks(*unfinished)) == ()


def test_results_without_looks_say_nothing_of_it():
    assert moved(with_looks()) == ()
    refused = YardstickRow("before", 1.0, absent={"all": "tunnelmark-cores is not installed"})
    assert moved(with_looks(refused, look("after", 2.0, timer=1.0))) == ()


def test_reports_say_first_that_the_machine_changed_and_show_what_it_took():
    looks = look("before", 1.0, system_call=100.0), look("after", 2.0, system_call=200.0)
    analysis = analyse.judge(with_looks(*looks))
    assert any("changed during the run: system call 100 ns, then 200 ns" in said for said in cautions(analysis))
    assert "| a system call that does nothing | 100 ns | 200 ns |" in markdown.render(analysis)
    assert '"yardsticks": [' in as_json.render(analysis)


def test_an_interval_says_what_it_covers():
    found = Study(workloads=(TCP,)).results()
    assert machine_facts.covers(found) == "this run, on this machine, in this boot"
    two = replace(found, sessions=(Session(1.0, 2.0, "one"), Session(3.0, 4.0, "two")))
    assert machine_facts.covers(two) == "this run, on this machine, in these 2 boots"
    emulated = replace(found, environment={"guest": {"emulated": True, "kernel": "6.1"}})
    assert machine_facts.covers(emulated) == "this run, in this emulated machine"
    assert "An interval here covers this run" in markdown.render(analyse.judge(found))


def test_blocks_that_were_added_with_results_in_sight_are_told():
    found = Study(workloads=(TCP,), blocks=8).results()
    grown = analyse.judge(replace(found, plan=replace(found.plan, extended=(5,))))
    assert any("Blocks were added when results of 5 could be seen, to 8 now" in said for said in cautions(grown))
