"""The terminal leads with the answer; its long parts are shown when they are asked for by name, and the command says which there are."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from tunnelmark import cli
from tunnelmark.analyse import judge
from tunnelmark.analyse.model import Analysis
from tunnelmark.cli import command
from tunnelmark.errors import UnknownName
from tunnelmark.record.link_check import LinkCheck, LinkLine, LinkPart
from tunnelmark.report import on_request, terminal
from unit.builders import PING, TCP, Study
from unit.stored import write

LOST = Study(arms=("direct", "direct-again", "tinc", "nebula"), workloads=(TCP, PING), tcp={"tinc": 0.5})
LOOK = LinkCheck(
    "gigabit",
    "pair",
    "before",
    0.0,
    1.0,
    "verified",
    "",
    (LinkLine("a>b", "delay_mean", "ms", "20 ms", 20.0, 19.8, 20.2, 20.05, ok=True),),
    parts=(LinkPart("a>b", "queue", "not tested", "the sender filled no queue"),),
)


def with_look() -> Analysis:
    return judge(replace(LOST.results(), link_checks=(LOOK,)))


def printed(analysis: Analysis, *shown: str, width: int = 80) -> str:
    console = Console(width=width, record=True, color_system=None, highlight=False, quiet=False)
    with console.capture() as captured:
        console.print(terminal.render(analysis, shown))
    return captured.get().replace("\N{NO-BREAK SPACE}", " ")


@pytest.mark.parametrize("width", [80, 120])
def test_the_answer_stands_first_then_the_results_then_gates_and_cautions(width: int):
    text = printed(judge(replace(LOST, fails=(("nebula", "ping", 2),)).results()), width=width)
    places = [
        text.index(words)
        for words in ("nebula is best", "first    ", "Can it be believed?", "! 1 attempt of nebula failed")
    ]
    assert places == sorted(places)
    assert text.index("! Below the tables: ") < places[1]
    assert max(len(line.rstrip()) for line in text.splitlines()) <= width


def test_a_report_without_requests_is_short():
    text = printed(with_look())
    for words in ("Look at", "could find", "Time by phase", "What it cost"):
        assert words not in text


def test_each_part_is_shown_by_its_name_behind_all_else():
    text = printed(with_look(), "links,times", "power")
    end = text.index("Can it be believed?")
    for words in ("Look at gigabit, pair, before the trials", "could find", "Time by phase"):
        assert text.index(words) > end
    assert "delay" in text and "20.050 ms" in text and "the sender filled no queue" in text


def test_all_is_every_part_and_what_is_not_shown_is_offered():
    analysis = with_look()
    assert on_request.chosen(["all"]) == tuple(on_request.PARTS)
    assert on_request.further(analysis, ()) == ("pairs", "links", "power", "times")
    assert on_request.further(analysis, ("links",)) == ("pairs", "power", "times")
    assert on_request.further(analysis, on_request.chosen(["all"])) == ()


def test_a_name_that_is_none_is_refused_with_the_nearest():
    with pytest.raises(UnknownName) as caught:
        on_request.chosen(["cost"])
    assert "costs" in caught.value.hint


def test_the_command_shows_parts_and_says_how_to_see_others(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    folder = write(LOST.results(), tmp_path / "my run")
    cli.main(["report", str(folder)])
    assert f"more: tunnelmark report '{folder}' --show pairs,power,times (or all)" in capsys.readouterr().out
    cli.main(["report", str(folder), "--show", "times", "--show", "power", "--show", "pairs"])
    said = capsys.readouterr().out
    assert "Time by phase" in said and "could find" in said and "arms against each other" in said
    assert "more: " not in said


@pytest.mark.parametrize("other", [["--json"], ["--export", "json"]])
def test_parts_are_of_tables(other: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    folder = write(LOST.results(), tmp_path / "run")
    assert cli.main(["report", str(folder), "--show", "costs", *other]) == 2
    assert "hint: " in capsys.readouterr().err


def test_the_help_names_every_part_and_the_shell_completes_it(capsys: pytest.CaptureFixture[str]):
    from click.shell_completion import ShellComplete

    cli.main(["report", "--help"])
    said = " ".join(capsys.readouterr().out.split())
    assert all(name in said for name in on_request.PARTS)
    completer = ShellComplete(command.tunnelmark, {}, "tunnelmark", "_TUNNELMARK_COMPLETE")
    assert [item.value for item in completer.get_completions(["report", "--show"], "costs,li")] == ["costs,links"]
