"""`ab`: what is asked, what is refused, and the exit code that CI sees."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from tunnelmark import registry
from tunnelmark.cli import command as cli
from tunnelmark.cli import enough_blocks, vm
from tunnelmark.cli.ab_command import _guests, answer, link_of, require
from tunnelmark.cli.ab_question import COUNTED_METRICS, AbQuestion
from tunnelmark.errors import MissingPart, UsageError
from tunnelmark.plan.compose import two_builds
from tunnelmark.plan.composed_workloads import ComposedWorkload
from tunnelmark.plan.enough import Enough
from tunnelmark.plan.files import Files
from tunnelmark.plan.load import parse_study
from tunnelmark.plan.model import Study
from tunnelmark.plan.order import order
from tunnelmark.record import store
from tunnelmark.run.runner import RunContext
from unit import stored
from unit.analyse.test_build_change import results
from unit.cli.test_enough_blocks import Killed, run


def study(*workloads: str, blocks: int = 8) -> Study:
    files, catalogue = Files.standard(), registry.catalogue()
    text = two_builds(
        "wireguard-go",
        {"wireguard-go": "/opt/old/wireguard-go"},
        {"wireguard-go": "/opt/new/wireguard-go"},
        files,
        catalogue,
        labels=("old", "new"),
        profiles=("unshaped",),
        workloads=[ComposedWorkload(name) for name in workloads or ("tcp",)],
        blocks=blocks,
    )
    return parse_study(text, "ab", files, catalogue)


def asked(
    change: str | None = None, *named: str, most: int | None = None, budget: str | None = None, counted: bool = False
) -> Enough:
    context = RunContext(registry.vpns(), registry.workloads(), 212992)
    found = AbQuestion(change, named, most, budget, counted).of(study(), context).enough
    assert found is not None
    return found


def test_by_default_three_per_cent_of_the_primary_metrics_are_asked_for():
    assert asked() == Enough(8, 40, change=0.03)
    assert asked("5%", most=20, budget="30m") == Enough(8, 20, None, 1800.0, 0.05)


def test_by_counted_time_one_per_cent_and_instructions_decide_too():
    found = asked(counted=True)
    assert (found.change, found.most, found.metrics) == (0.01, 40, ("goodput", *COUNTED_METRICS))
    assert asked(None, "goodput", counted=True).metrics == ("goodput",)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("3",), "--change 3"),
        (("80 %",), "from 0.1 % to 50 %"),
        ((None, "godput"), "no metric called 'godput'"),
    ],
)
def test_what_cannot_be_asked_is_refused(arguments: tuple[str, ...], said: str):
    with pytest.raises(UsageError, match=said):
        asked(*arguments)
    with pytest.raises(UsageError, match="less than the 8"):
        asked(most=4)
    with pytest.raises(UsageError, match="counts instructions"):
        asked(budget="30m", counted=True)


def test_both_builds_run_programs_of_their_own_and_are_recorded_apart():
    context = RunContext(registry.vpns(), registry.workloads(), 212992)
    parts = {arm.name: context.part(arm) for arm in study().arms}
    assert parts["old"].own == parts["old-again"].own == ("/opt/old/wireguard-go",)
    assert parts["new"].own == ("/opt/new/wireguard-go",)
    assert [parts[name].name for name in ("old", "new")] == ["wireguard-go (old)", "wireguard-go (new)"]


def test_a_build_that_is_not_there_is_an_error_and_no_slowdown():
    context = RunContext(registry.vpns(), registry.workloads(), 212992)
    with pytest.raises(MissingPart, match="/opt/old/wireguard-go is not there"):
        require(study(), context)


@pytest.fixture
def no_kvm(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv(vm.NO_KVM, raising=False)
    yield
    os.environ.pop(vm.NO_KVM, None)


@pytest.mark.usefixtures("no_kvm")
@pytest.mark.parametrize(
    ("counted", "traffic"),
    [([], "tcp"), (["--counted"], "udp"), (["--counted", "--workload", "ping"], "ping")],
)
def test_by_counted_time_the_traffic_is_an_open_loop(
    counted: list[str],
    traffic: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
):
    """Over TCP the ratio of two equal builds scattered by 3 to 5 %, over paced UDP by 0.3 to 1.6 %."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cli.main(["ab", "tinc", "--old", "/bin/true", "--new", "/bin/false", "--dry-run", *counted]) == 0
    assert f"pair · {traffic}  " in capsys.readouterr().out


@pytest.mark.usefixtures("no_kvm")
def test_counted_time_is_that_of_an_emulated_guest():
    assert _guests(True, None, ()) == ("",)
    assert os.environ[vm.NO_KVM] == "1"
    assert _guests(False, None, ()) == ()
    with pytest.raises(UsageError, match="needs a virtual machine"):
        _guests(True, "netns", ())
    with pytest.raises(UsageError, match="one kernel"):
        _guests(False, "vm", ("6.1", "6.12"))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["tinc", "--new", "/bin/sh"], "--old"),
        (["tinc", "--old", "git:a", "--new", "git:b", "--source", "."], "needs a tree, a command and a program"),
        (["tinc", "--old", "git:a", "--new", "git:b"], "--source"),
        (["tinc", "--old", "tinc", "--new", "tinc", "--json", "--comment", "-"], "stdout"),
        (["tinc", "--old", "tinc", "--new", "tinc", "--dry-run", "--comment", "-"], "dry run"),
        (["tunc", "--old", "tinc", "--new", "tinc"], "tinc"),
    ],
)
def test_wrong_use_ends_with_2_and_says_what_would_be_right(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
):
    assert cli.main(["ab", *arguments]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(("new", "again", "code"), [(1.0, 1.0, 0), (1.1, 1.0, 0), (0.9, 1.0, 1), (0.9, 1.1, 3)])
def test_the_exit_code_is_the_verdict(
    new: float, again: float, code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    folder = stored.write(results(new, again=again), tmp_path / "ab")
    said = StringIO()
    comment = tmp_path / "comment.md"
    assert answer(folder, Console(file=said, width=200), comment=comment, as_json=True) == code
    plain = json.loads(capsys.readouterr().out)
    assert plain["outcome"] == {0: "no change", 1: "slower", 3: "undecided"}[code] or new > 1
    lines = said.getvalue().strip().splitlines()
    assert lines[0] == plain["answer"]
    assert lines[-1].startswith("report:")
    assert comment.read_text() == (folder / "comment.md").read_text()
    assert (folder / "report.html").exists()


def test_until_when_such_a_run_adds_blocks_is_said():
    assert enough_blocks.until(Enough(8, 40, change=0.03)) == (
        "a change of 3 % between old and new is found or excluded, or there are 40 blocks; 8 blocks at least"
    )


def test_a_run_ends_when_it_is_decided_and_the_same_after_it_was_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    context = RunContext(registry.vpns(), registry.workloads(), 212992)
    plan = order(AbQuestion(None, (), None, None, False).of(study(), context))
    said = run(tmp_path / "whole", plan, monkeypatch)
    assert "after 8 blocks, end: no change of 3 % or more" in said
    with pytest.raises(Killed):
        run(tmp_path / "killed", plan, monkeypatch, kill_after=13)
    run(tmp_path / "killed", plan, monkeypatch)
    whole, killed = (store.load(tmp_path / name) for name in ("whole", "killed"))
    assert [each.decided for each in whole.decisions] == [each.decided for each in killed.decisions] == ["found"]
    assert {row.trial for row in whole.trials} == {row.trial for row in killed.trials}
    assert len(killed.trials) == 8 * 4
    assert store.load_plan(tmp_path / "killed").enough == Enough(8, 40, change=0.03)


def test_a_comment_leads_to_the_job_that_wrote_it():
    github = {"GITHUB_SERVER_URL": "https://example.org", "GITHUB_REPOSITORY": "a/b", "GITHUB_RUN_ID": "7"}
    assert link_of(github) == "https://example.org/a/b/actions/runs/7"
    assert link_of({"CI_JOB_URL": "https://example.org/j/1"}) == "https://example.org/j/1"
    assert link_of({}) == ""
