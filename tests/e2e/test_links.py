"""A study on an emulated link: the link is proved before and after, kept raw, and shown; resuming looks again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.command import run, small_study
from support.trials import measured, unless_spoilt
from tunnelmark import registry
from tunnelmark.errors import MissingPart
from tunnelmark.lab import emulator
from tunnelmark.plan.files import Files
from tunnelmark.plan.load import load_study
from tunnelmark.plan.order import order

pytestmark = pytest.mark.root


def proofs(results: Path) -> list[dict]:
    lines = (results / "journal.jsonl").read_text().splitlines()
    return [entry["link"] for entry in map(json.loads, lines) if "link" in entry]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The results of one block of pings over bad Wi-Fi."""
    try:
        emulator.program()
    except MissingPart as missing:
        pytest.skip(missing.hint)
    folder = tmp_path_factory.mktemp("links")
    # One look each: on a machine that is always busy, further ones find the same.
    done = run("run", small_study(folder, profile="wifi-bad+gigabit"), "--out", folder / "results", "--no-repeat")
    assert done.returncode in (0, 1), done.stderr + done.stdout
    return folder / "results"


def test_the_link_is_proved_before_and_after(results: Path):
    looks = [proof["when"] for proof in proofs(results)]  # one that the machine disturbed is taken again
    assert looks == sorted(looks, reverse=True)
    assert set(looks) == {"before", "after"}
    looked = [proof for proof in proofs(results) if proof["lines"]]  # without any: a prober that got no core in time
    assert looked
    for proof in looked:
        names = {line["name"] for line in proof["lines"]}
        struck = any(line["name"] == "loss" and line["achieved"] for line in proof["lines"])
        assert {"delay_mean", "loss", "distribution", "rate", "late"} | ({"burst"} if struck else set()) <= names
        assert {Path(file).name for file in proof["raw"]} >= {"probe.a.out", "probe.b.out", "emulator.middle.out"}
        assert all((results / file).is_file() for file in proof["raw"])


def test_a_trial_meets_the_link_and_keeps_what_its_emulator_says(tmp_path: Path):
    """Whatever a look at the link has found before: the trial itself."""
    study = load_study(str(small_study(tmp_path, profile="wifi-bad+gigabit")), Files.standard(), registry.catalogue())
    plan = order(study)
    attempt, _ = measured(plan, plan.trials[0], tmp_path)
    assert "emulator.middle.out" in attempt.raw
    unless_spoilt(attempt)
    assert attempt.outcome == "ok", attempt.failure
    (rtt,) = (s.value for s in attempt.samples if s.metric == "rtt_median" and s.time is None)
    assert 2 * 5.1 < rtt < 40  # the least of a pareto jitter of 4 ms is 2.9 ms below the delay of 8 ms


def test_environment_and_report_say_what_carried_it(results: Path):
    lab = json.loads((results / "environment.json").read_text())["lab"]
    assert lab["shaper"]["wifi-bad+gigabit"].startswith("cards that split and merge; tunnelmark-emulator, model stated")
    assert len(lab["emulator"]["sha256"]) == 64
    assert "The link as it was: wifi-bad+gigabit, pair" in (results / "report.html").read_text()
    assert {file.name for file in (results / "inputs" / "profiles").iterdir()} == {"wifi-bad.toml", "gigabit.toml"}


def test_going_on_looks_again_and_keeps_the_first_looks(results: Path):
    before = proofs(results)
    done = run("run", "--resume", results)
    assert done.returncode in (0, 1), done.stderr
    assert len(proofs(results)) >= len(before) + 2
    assert proofs(results)[: len(before)] == before
    assert all((results / file).is_file() for proof in proofs(results) for file in proof["raw"])
