"""`--progress json` is one object a line for programs, `--quiet` is silence; a guest's events become the host's, between other lines."""

from __future__ import annotations

import io
import json
import re
import time
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from tunnelmark import cli, registry
from tunnelmark.analyse.so_far import EffectsSoFar
from tunnelmark.cli.live_view import LiveView
from tunnelmark.cli.progress import RunProgress
from tunnelmark.cli.progress_events import KINDS, EndEvent, ProgressEvent, RatioEvent, line, read
from tunnelmark.cli.progress_options import view
from tunnelmark.cli.progress_views import GuestLines, GuestView, JsonView, LineView, ProgressView
from tunnelmark.cli.run_options import RunOptions
from tunnelmark.errors import UsageError
from tunnelmark.model.attempt import Attempt
from tunnelmark.plan.files import Files
from tunnelmark.plan.load import load_study
from tunnelmark.plan.order import order
from tunnelmark.run.runner import RunContext
from unit.builders import TCP, Study

PLAN = order(load_study("quick", Files.standard(), registry.catalogue(), blocks=2))
CONTEXT = RunContext(registry.vpns(), registry.workloads(), 212992)
PAGE = Path(__file__).resolve().parents[3] / "docs" / "progress.md"
MADE = Study(workloads=(TCP,))


def goes_on(shown: ProgressView) -> None:
    """A small piece of a run."""
    listener = RunProgress(
        shown, PLAN, CONTEXT, results="results/x", effects=EffectsSoFar(MADE.results().plan, MADE.results().trials)
    )
    listener.wait("links", "looking at the link auto, pair")
    listener.begun(())
    listener.begin(PLAN.trials[0])
    listener.phase(PLAN.trials[0], "measure")
    attempt = Attempt(PLAN.trials[0], "ok", "a>b", 0.0, {"measure": 2.0})
    listener.end(attempt)
    listener.block([attempt])
    shown.take(EndEvent("results/x", 0))


def test_each_event_is_one_object_on_a_line_with_its_time():
    out = io.StringIO()
    goes_on(JsonView(out))
    told = [json.loads(each) for each in out.getvalue().splitlines()]
    assert [each["event"] for each in told] == ["wait", "plan", "trial", "trial", "trial", "block", "end"]
    assert all(each["time"] > 1.7e9 for each in told)
    plan, begin, phase, end = told[1:5]
    assert (plan["study"], plan["results"], plan["done"]) == ("quick", "results/x", 0)
    assert plan["left"] > 0
    assert (begin["state"], phase["phase"], end["outcome"], end["done"]) == ("begin", "measure", "ok", 1)
    ratio = told[5]["ratios"][0]
    assert ratio["low"] <= ratio["estimate"] <= ratio["high"]
    assert (told[6]["code"], told[6]["error"]) == (0, "")


def test_the_page_has_every_event_and_field():
    page = PAGE.read_text()
    for name, kind in {**KINDS, "ratio": RatioEvent}.items():
        section = page.partition(f"### `{name}`")[2].partition("\n### ")[0]
        assert section, name
        said = set(re.findall(r"`(\w+)`", section))
        assert {field.name for field in fields(kind)} <= said, name


def test_what_a_guest_tells_arrives_on_the_host_and_its_other_lines_stay_text(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(time, "process_time", lambda: 1.0)  # `cpu` is what really passed, which is never twice the same

    class Keeps(ProgressView):
        def __init__(self) -> None:
            super().__init__()
            self.events: list[ProgressEvent] = []

        def show(self, event: ProgressEvent) -> None:
            self.events.append(event)

    guest, here, there = io.StringIO(), Keeps(), Keeps()
    text: list[str] = []
    goes_on(here)
    goes_on(GuestView(guest, ratios=False))
    said = "making a file, once\n" + guest.getvalue() + "done\n"
    lines = GuestLines(there, text.append)
    for begin in range(0, len(said), 7):  # it comes in pieces
        lines.take(said[begin : begin + 7])
    assert there.events == here.events
    assert text == ["making a file, once\n", "done\n"]


@pytest.mark.parametrize("event", [EndEvent("results/ä b", 2, 'an "error"\nof two lines')])
def test_an_event_is_the_same_when_it_was_read(event: ProgressEvent):
    assert "\n" not in line(event)
    assert read(line(event)) == event


@pytest.mark.parametrize(
    ("terminal", "options", "kind"),
    [
        (True, {}, LiveView),
        (False, {}, LineView),
        (True, {"progress": "lines"}, LineView),
        (True, {"progress": "json"}, JsonView),
        (True, {"quiet": True}, ProgressView),
        (True, {"quiet": True, "progress": "json"}, JsonView),
    ],
)
def test_who_shows_it(terminal: bool, options: dict[str, Any], kind: type[ProgressView]):
    console = Console(file=io.StringIO(), force_terminal=terminal)
    assert type(view(console, **{"quiet": False, "progress": "auto", **options})) is kind


def test_quiet_is_silence():
    console = RunOptions(quiet=True).console()
    console.print("something")
    assert console.quiet


def test_text_makes_room_for_what_programs_read(capsys: pytest.CaptureFixture[str]):
    RunOptions(progress="json").console().print("something")
    RunOptions(json=True).console().print("something")
    assert capsys.readouterr().out == ""
    with pytest.raises(UsageError, match="both write to standard output"):
        RunOptions(json=True, progress="json").console()


@pytest.mark.parametrize("command", ["run", "compare", "repeat"])
def test_each_command_that_measures_has_them(command: str, capsys: pytest.CaptureFixture[str]):
    cli.main([command, "--help"])
    said = capsys.readouterr().out
    assert "--quiet" in said and "--progress [auto|lines|json]" in said
