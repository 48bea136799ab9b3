"""A study whose rate is left to the machine, on one that is held to a quarter: what is fixed is the same everywhere."""

from __future__ import annotations

import json
import subprocess
import tomllib
from pathlib import Path

import pytest

from support.command import command, complete, environment, journal, planned, small_study
from support.slow_machine import enforced, slowed
from tunnelmark.plan.files import PACKAGED
from tunnelmark.units import Rate

pytestmark = [pytest.mark.root, pytest.mark.slow]

PROFILE = "auto-little"
"""Two rates to try are enough to show that one is fixed."""

UDP = '[[workload]]\nworkload = "udp"\noptions = { duration = "1 s", rate = "30 %" }\n'


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The results of such a study and what the command printed."""
    folder = tmp_path_factory.mktemp("slow")
    (folder / "profiles").mkdir()
    text = (PACKAGED / "profiles" / "auto.toml").read_text()
    (folder / "profiles" / f"{PROFILE}.toml").write_text(
        text.replace("auto, at most 1 Gbit/s", "auto, at most 100 Mbit/s")
    )
    study = small_study(folder, profile=PROFILE)
    study.write_text(study.read_text() + UDP)
    with slowed(0.25) as extra:
        everything = environment() | extra | {"TUNNELMARK_MEASURE": "yes", "XDG_CACHE_HOME": str(folder / "cache")}
        done = subprocess.run(
            command("run", study, "--out", folder / "results", path=folder),
            env=everything,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        assert enforced(extra) > 0
    assert done.returncode in (0, 1), done.stderr + done.stdout  # a gate may fail on a busy machine
    return folder / "results", done.stdout


def test_one_rate_is_fixed_and_stands_wherever_somebody_looks(results: tuple[Path, str]):
    folder, said = results
    (fixed,) = tomllib.loads((folder / "inputs" / "fixed.toml").read_text())["rate"]
    rate = Rate.parse(fixed["rate"])
    assert 50_000_000 <= rate <= 100_000_000
    plan = json.loads((folder / "plan.json").read_text())
    assert [profile["rate"] for profile in plan["profiles"]] == [rate]
    assert fixed["because"] in plan["profiles"][0]["source"]
    udp = next(use for use in plan["workloads"] if use["name"] == "udp")
    # A full frame takes 24 bytes more on Ethernet than in memory.
    assert udp["offered_by"] == {PROFILE: pytest.approx(0.3 * rate * 1514 / 1538, rel=1e-4)}
    measured = json.loads((folder / "environment.json").read_text())["measured"]
    assert measured["rates"][PROFILE]["rate"] == rate
    assert measured["wakeups"]["longest"] > 0
    assert f"{PROFILE}: {rate}" in said


def test_every_arm_had_it(results: tuple[Path, str]):
    folder, _ = results
    assert {trial["arm"] for trial in journal(folder)} == {"direct", "direct-again"}
    assert len(planned(folder)) == 4
    complete(journal(folder), planned(folder))


def test_what_was_measured_is_known_for_the_next_study(results: tuple[Path, str]):
    kept = json.loads((results[0].parent / "cache" / "tunnelmark" / "machine.json").read_text())
    assert "wakeups" in kept["measured"]


def test_a_resumed_run_has_the_rate_without_measuring_again(results: tuple[Path, str]):
    folder, _ = results
    done = subprocess.run(
        command("run", "--resume", folder),
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in (0, 1), done.stderr
    (fixed,) = tomllib.loads((folder / "inputs" / "fixed.toml").read_text())["rate"]
    assert f"tbf rate {fixed['rate']}" in done.stdout
