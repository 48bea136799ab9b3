"""Trouble of every kind: a clear error with a hint; the other arms go on; the failure is in the report."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from support.command import command, complete, environment, finished, journal, run, settled, small_study
from tunnelmark.record.store import SPARE

pytestmark = pytest.mark.root

# Real daemons in trouble: the drivers below start the same wireguard-go as the arm of that name.
TROUBLED = """
from dataclasses import replace
from tunnelmark.vpns import wireguard_go
from tunnelmark.model.steps import Daemon

def deploy(mesh, options):
    deployment = wireguard_go.deploy(mesh, options)
    phases = tuple(tuple({change} for step in phase) for phase in deployment.phases)
    return replace(deployment, phases=phases)

DRIVER = replace(wireguard_go.DRIVER, name="{name}", deploy=deploy, programs={programs!r}, variants={{}}, builds={{}})
"""


def driver(folder: Path, name: str, change: str = "step", programs: tuple[str, ...] = ("wireguard-go",)) -> Path:
    """A driver in trouble in a folder for TUNNELMARK_PATH; `change` is applied to every step."""
    (folder / "vpns").mkdir(exist_ok=True)
    file = folder / "vpns" / f"{name.replace('-', '_')}.py"
    file.write_text(textwrap.dedent(TROUBLED).format(name=name, change=change, programs=programs))
    return folder


def outcomes(results: Path) -> dict[str, set[tuple[str, str | None]]]:
    found: dict[str, set[tuple[str, str | None]]] = {}
    for trial in settled(results):
        found.setdefault(trial["arm"], set()).add((trial["outcome"], trial["reason"]))
    return found


def go_on(results: Path) -> None:
    """The other arms went on."""
    for arm in ("direct", "direct-again"):
        assert outcomes(results)[arm] == {("ok", None)}


def test_a_missing_binary_is_named_with_what_brings_it(tmp_path: Path):
    driver(tmp_path, "lost", programs=("no-such-vpn",))
    study = small_study(tmp_path, arms=["lost", "wireguard-go"])
    done = run("run", study, "--out", tmp_path / "results", path=tmp_path)
    assert done.returncode == 1, done.stderr
    assert "no-such-vpn is not installed" in done.stdout
    assert "apt-get install wireguard-go" in done.stdout.replace("\n", " ")
    assert outcomes(tmp_path / "results")["lost"] == {("failed", "missing-part")}
    go_on(tmp_path / "results")
    assert outcomes(tmp_path / "results")["wireguard-go"] == {("ok", None)}
    assert "no-such-vpn is not installed" in (tmp_path / "results" / "report.html").read_text()


def test_where_every_vpn_is_missing_nothing_is_measured(tmp_path: Path):
    driver(tmp_path, "lost", programs=("no-such-vpn",))
    done = run("run", small_study(tmp_path, arms=["lost"]), "--out", tmp_path / "results", path=tmp_path)
    assert done.returncode == 2, done.stdout
    assert "no-such-vpn is not installed" in done.stderr
    assert not (tmp_path / "results").exists()


def test_a_daemon_that_never_gets_ready_is_given_up_in_time(tmp_path: Path):
    # The daemons run, but nobody tells them their keys.
    driver(
        tmp_path,
        "mute",
        change="step if isinstance(step, Daemon) or step.argv[0] != 'wg' else replace(step, argv=('true',))",
    )
    study = small_study(tmp_path, arms=["mute"], ready_timeout="2 s")
    done = run("run", study, "--out", tmp_path / "results", path=tmp_path)
    assert done.returncode == 1, done.stderr
    assert outcomes(tmp_path / "results")["mute"] == {("failed", "not-ready")}
    go_on(tmp_path / "results")
    trial = next(t for t in journal(tmp_path / "results") if t["arm"] == "mute")
    assert "within 2 s" in trial["message"] and trial["hint"]
    assert "wireguard-go" in trial["log"]
    assert trial["phases"]["server"] == trial["phases"]["measure"] == 0, "nothing may begin on a VPN that is not ready"


MORTAL = """
"$@" &
came() { awk -F '[: ]+' '$2 == "wg0" {print $4}' /proc/net/dev; }
until cat /proc/[0-9]*/cmdline 2> /dev/null | tr '\\0' ' ' | grep -q 'ping -n[ ]-D'; do sleep 0.02; done
before=$(came)
until [ "$(came)" -gt $((before + 20)) ]; do sleep 0.02; done
kill -9 $!
exit 124
"""
"""Starts a daemon and ends it when packets have come through its interface since the workload's own ping was started on its node."""


def test_a_daemon_that_dies_in_the_middle_of_a_trial_fails_it_at_once(tmp_path: Path):
    change = f"replace(step, argv=('sh', '-c', {MORTAL!r}, 'sh', *step.argv)) if isinstance(step, Daemon) else step"
    driver(tmp_path, "mortal", change=change)
    study = small_study(tmp_path, arms=["mortal"])
    study.write_text(study.read_text().replace('duration = "1 s"', 'duration = "5 s"'))
    done = run("run", study, "--out", tmp_path / "results", path=tmp_path)
    assert done.returncode == 1, done.stderr
    assert outcomes(tmp_path / "results")["mortal"] == {("failed", "daemon-died")}
    go_on(tmp_path / "results")
    trial = next(t for t in journal(tmp_path / "results") if t["arm"] == "mortal")
    assert "exit code 124" in trial["message"]
    client = next(tmp_path / "results" / file for file in trial["raw"] if "client" in file)
    assert "packets transmitted" not in client.read_text(), "ping went on to its end"
    report = (tmp_path / "results" / "report.html").read_text()
    assert "ended by itself" in report and "first class support for WireGuard" in report  # the daemon's log


def test_a_daemon_that_cannot_start_shows_its_own_words(tmp_path: Path):
    driver(
        tmp_path,
        "broken",
        change="replace(step, argv=('wireguard-go', '-f', 'a-name-that-is-too-long')) if isinstance(step, Daemon) else step",
    )
    study = small_study(tmp_path, arms=["broken"])
    done = run("run", study, "--out", tmp_path / "results", path=tmp_path)
    assert done.returncode == 1, done.stderr
    (reason,) = outcomes(tmp_path / "results")["broken"]
    assert reason == ("failed", "daemon-died")
    assert next(t for t in journal(tmp_path / "results") if t["arm"] == "broken")["log"]


def test_a_full_disk_stops_the_study_and_loses_nothing(tmp_path: Path):
    """A file system of 20 MiB: after some trials less than the spare is free. With room again, --resume completes."""
    study = small_study(tmp_path, blocks=2)
    disk = tmp_path / "disk"
    disk.mkdir()
    inside = " ".join(command("run", study, "--out", disk / "results")).replace(
        "from tunnelmark.cli import main; raise SystemExit(main())",
        "'from tunnelmark.cli import main; raise SystemExit(main())'",
    )
    again = inside.replace(f"run {study} --out {disk / 'results'}", f"run --resume {disk / 'results'}")
    lines = disk / "results" / "journal.jsonl"
    # Full as soon as there is a trial: what looks at links and void trials take before does not matter.
    script = f"""
        set -u
        mount -t tmpfs -o size=40m tmpfs {disk}
        ( until grep -qs '"trial"' {lines}; do sleep 0.1; done
          free=$(df --output=avail -B1 {disk} | tail -1)
          head -c $((free - {SPARE - (1 << 20)})) /dev/zero > {disk}/more ) &
        {inside}; echo first $?
        sed 's/^/1 /' {lines}
        mount -o remount,size=128m {disk}
        {again} > /dev/null; echo second $?
        sed 's/^/2 /' {lines}
    """
    done = finished(["unshare", "--mount", "bash", "-c", script], environment(), within=200)
    said = done.stdout + done.stderr
    assert "first 2" in said, said
    assert "left for results" in said and "--resume" in said
    assert any(f"second {code}" in said for code in (0, 1)), said
    first, second = (
        [
            entry["trial"]
            for entry in (
                json.loads(line[2:]) for line in done.stdout.splitlines() if line.startswith(f"{run_number} {{")
            )
            if "trial" in entry
        ]
        for run_number in (1, 2)
    )
    assert 1 <= len({trial["trial"] for trial in first}) < 4
    assert second[: len(first)] == first
    assert len({trial["trial"] for trial in second}) == 4
    complete(second, {trial["trial"] for trial in second})


@pytest.mark.parametrize(
    ("broken", "words"),
    [
        ("[study\n", ["line 1"]),
        ("bloks = 2\n[study]\n", ["bloks"]),
    ],
)
def test_a_broken_study_file_is_refused_with_its_place(tmp_path: Path, broken: str, words: list[str]):
    file = tmp_path / "broken.toml"
    file.write_text(broken)
    done = run("run", file)
    assert done.returncode == 2
    for word in [*words, "broken.toml", "hint:"]:
        assert word in done.stderr


def test_unknown_keys_and_wrong_values_name_file_key_and_what_would_be_right(tmp_path: Path):
    study = small_study(tmp_path)
    study.write_text(study.read_text().replace("blocks = 1", "bloks = 1"))
    done = run("run", study)
    assert done.returncode == 2
    assert "small.toml" in done.stderr and "bloks" in done.stderr and "blocks" in done.stderr


def test_a_negative_rate_is_refused(tmp_path: Path):
    (tmp_path / "profiles").mkdir()
    (tmp_path / "profiles" / "backwards.toml").write_text(
        '[profile]\ntitle = "x"\nsource = "x"\nrate = "-1 Mbit/s"\nqueue = "64 KiB"\n'
    )
    study = small_study(tmp_path, profile="backwards")
    done = run("run", study, path=tmp_path)
    assert done.returncode == 2
    assert "backwards.toml" in done.stderr and "rate" in done.stderr and "100 Mbit/s" in done.stderr


def test_unknown_names_suggest_the_nearest(tmp_path: Path):
    for arguments, nearest in (
        (["run", "quik"], "quick"),
        (["compare", "wiregard-go"], "wireguard-go"),
        (["compare", "tinc", "--profile", "gigabitt"], "gigabit"),
        (["reprot"], "report"),
    ):
        done = run(*arguments)
        assert done.returncode == 2
        assert f"did you mean {nearest}" in done.stderr


def test_results_that_are_no_results_are_refused(tmp_path: Path):
    done = run("report", tmp_path)
    assert done.returncode == 2
    assert "holds no results" in done.stderr


def test_without_root_the_hint_says_sudo(tmp_path: Path):
    as_nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    able = subprocess.run(
        [*as_nobody, sys.executable, "-c", "import tunnelmark"], capture_output=True, env=environment(), check=False
    )
    if able.returncode != 0:
        pytest.skip("another user cannot read this Python")
    done = subprocess.run(
        [*as_nobody, *command("run", "quick", "--out", tmp_path / "results")],
        capture_output=True,
        text=True,
        env=environment(),
        check=False,
    )
    assert done.returncode == 2
    assert "root" in done.stderr and "sudo" in done.stderr
