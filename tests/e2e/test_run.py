"""A study from its file to its report, as a user runs it."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from support.command import command, environment, journal, run, settled, small_study
from support.host import Host, left_within

pytestmark = pytest.mark.root


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The results of a small study with one VPN, and what the command printed."""
    folder = tmp_path_factory.mktemp("run")
    study = small_study(folder, arms=["wireguard-go"], blocks=3, tcp=True)
    before = Host.now()
    done = run("run", study, "--out", folder / "results")
    assert done.returncode in (0, 1), done.stderr + done.stdout  # 1: a gate may fail on a busy machine
    assert left_within(before) == {}
    return folder / "results", done.stdout


def test_every_trial_succeeds_in_every_block(finished: tuple[Path, str]):
    trials = settled(finished[0])
    assert len(trials) == 3 * 3 * 2
    assert {trial["outcome"] for trial in trials} == {"ok"}
    for block in (1, 2, 3):
        arms = {trial["arm"] for trial in trials if trial["block"] == block}
        assert arms == {"direct", "direct-again", "wireguard-go"}


def test_the_terminal_shows_the_table_the_gates_and_the_report(finished: tuple[Path, str]):
    _, said = finished
    for words in ("wireguard-go", "A/A", "direct fills the link", "inside measuring windows", "report.html"):
        assert words in said


def test_every_raw_output_and_daemon_log_is_kept(finished: tuple[Path, str]):
    results, _ = finished
    for trial in journal(results):
        assert trial["raw"], trial["trial"]
        for file in trial["raw"]:
            assert (results / file).is_file()
    tcp = next(t for t in journal(results) if t["arm"] == "wireguard-go" and t["workload"] == "tcp")
    names = {Path(file).name for file in tcp["raw"]}
    assert {"daemon.a.wireguard-go.log", "daemon.b.wireguard-go.log", "client.a.out", "server.b.out"} <= names


def test_no_key_is_kept(finished: tuple[Path, str]):
    """In no form in which a driver writes one: WireGuard's configuration, PEM, or a table of a program's own."""
    secret = re.compile(
        r"private[-_ ]?key[\"']?\s*[:=]|-BEGIN [A-Z ]*PRIVATE KEY-|preshared[-_ ]?key\s*=", re.IGNORECASE
    )
    for written in ("PrivateKey = 6Mt=", '"private_key": "6Mt="', "-----BEGIN OPENSSH PRIVATE KEY-----"):
        assert secret.search(written)
    results, _ = finished
    kept = [path for path in results.rglob("*") if path.is_file()]
    assert len(kept) > 10
    assert [path for path in kept if secret.search(path.read_text(errors="replace"))] == []


def test_the_tables_hold_what_the_journal_holds(finished: tuple[Path, str]):
    results, _ = finished
    trials = journal(results)
    samples = pq.read_table(results / "samples.parquet").to_pylist()
    assert len(samples) == sum(len(trial["samples"]) for trial in trials)
    assert set(samples[0]) >= {
        "study",
        "attempt",
        "block",
        "arm",
        "profile",
        "topology",
        "workload",
        "link",
        "metric",
        "unit",
        "value",
        "time",
    }
    assert len(pq.read_table(results / "trials.parquet")) == len(trials)


def test_the_environment_is_beside_it(finished: tuple[Path, str]):
    environment = json.loads((finished[0] / "environment.json").read_text())
    assert environment["vpns"]["wireguard-go"]["version"]
    assert environment["lab"]["congestion_control"] == "cubic"
    assert environment["lab"]["cores"].keys() == {"a", "b"}
    assert environment["lab"]["offloads"]["tx-udp-segmentation"] == "on"  # as behind a real card


def test_the_report_is_one_file_that_needs_no_network(finished: tuple[Path, str]):
    html = (finished[0] / "report.html").read_text()
    assert "wireguard-go" in html
    for loaded in ('src="http', "src='http", 'rel="stylesheet" href', "@import", "url(http"):
        assert loaded not in html


def test_report_makes_the_same_again_from_the_journal(finished: tuple[Path, str]):
    results, _ = finished
    html = (results / "report.html").read_text()
    (results / "report.html").unlink()
    done = run("report", results)
    assert done.returncode in (0, 1), done.stderr
    assert (results / "report.html").read_text() == html
    assert json.loads(run("report", results, "--json").stdout)


def test_the_order_is_the_plan_s(finished: tuple[Path, str]):
    results, _ = finished
    plan = json.loads((results / "plan.json").read_text())
    assert list(dict.fromkeys(trial["trial"] for trial in journal(results))) == plan["trials"]


def test_a_dry_run_prints_the_same_order_every_time(tmp_path: Path):
    study = small_study(tmp_path, arms=["tinc"], blocks=2)
    first, second = (run("run", study, "--dry-run").stdout for _ in range(2))
    assert first == second
    assert "6 trials in 2 blocks, seed 7" in first
    assert run("run", study, "--dry-run", "--seed", "8").stdout != first


def test_a_part_of_a_study_is_run_and_stays_that_part_when_it_goes_on(tmp_path: Path):
    study, results = small_study(tmp_path, arms=["tinc", "wireguard-go"], tcp=True), tmp_path / "results"
    done = run("run", study, "--arm", "tinc", "--workload", "ping", "--out", results)
    assert done.returncode in (0, 1), done.stderr
    assert run("run", "--resume", results, "--blocks", "2").returncode in (0, 1)
    assert {(trial["arm"], trial["workload"], trial["block"]) for trial in settled(results)} == {
        (arm, "ping", block) for arm in ("direct", "direct-again", "tinc") for block in (1, 2)
    }
    said = "A part of the study was measured: direct, direct-again, tinc · ping."
    assert said in (results / "report.md").read_text()
    assert run("run", "--resume", results, "--arm", "tinc").returncode == 2


def test_compare_needs_no_study_file(tmp_path: Path):
    done = run("compare", "tinc", "--workload", "ping", "--blocks", "1", "--out", tmp_path / "results", "--json")
    assert done.returncode in (0, 1), done.stderr
    assert json.loads(done.stdout)["study"] == "compare"
    assert done.stdout == run("report", tmp_path / "results", "--json").stdout
    assert "report.html" in done.stderr
    arms = {trial["arm"] for trial in journal(tmp_path / "results")}
    assert arms == {"direct", "direct-again", "anchor-chacha20", "tinc", "tinc-again"}


def test_what_new_writes_works_together_as_it_is(tmp_path: Path):
    for kind, name, *more in (
        ("profile", "my-dsl"),
        ("topology", "site"),
        ("workload", "stream"),
        ("vpn", "meshy"),
        ("vpn", "hubby", "--like", "openvpn"),
    ):
        assert run("new", kind, name, *more, "--dir", tmp_path).returncode == 0
    files = ("--profile", tmp_path / "profiles/my-dsl.toml", "--topology", tmp_path / "topologies/site.toml")
    chosen = ("--workload", "stream", "--blocks", "1", "--profile", "gigabit", "--out", tmp_path / "results")
    done = run("compare", "meshy", "hubby", *files, *chosen, path=tmp_path)
    assert done.returncode in (0, 1), done.stderr
    trials = journal(tmp_path / "results")
    assert {(trial["profile"], trial["topology"]) for trial in trials} == {("my-dsl", "site"), ("gigabit", "site")}
    assert {trial["arm"]: trial["outcome"] for trial in trials if trial["arm"] in ("meshy", "hubby")} == {
        "meshy": "ok",
        "hubby": "ok",
    }, {trial["message"] for trial in trials}
    assert [line for line in done.stdout.splitlines() if line != line.rstrip()] == []


def test_two_runs_do_not_measure_each_other(tmp_path: Path):
    """The first has an hour to go, and is ended when the second has said for whom it waits."""
    (tmp_path / "long").mkdir()
    study, long = small_study(tmp_path), small_study(tmp_path / "long", blocks=400)

    def begin(file: Path, name: str) -> subprocess.Popen[str]:
        argv = command("run", file, "--out", tmp_path / name)
        return subprocess.Popen(argv, env=environment(), stdout=subprocess.PIPE, text=True)

    with begin(long, "one") as first:
        assert first.stdout is not None
        while not ((tmp_path / "one" / "journal.jsonl").exists() and journal(tmp_path / "one")):
            assert first.poll() is None
            time.sleep(0.05)
        with begin(study, "two") as second:
            assert second.stdout is not None
            assert any(f"process {first.pid}" in line for line in second.stdout)
            first.send_signal(signal.SIGINT)
            first.stdout.read()
            assert first.wait() == 130
            second.stdout.read()
            assert second.wait() in (0, 1)
    ends = [trial["started"] + sum(trial["phases"].values()) for trial in journal(tmp_path / "one")]
    assert max(ends) < min(trial["started"] for trial in journal(tmp_path / "two"))


def test_a_lab_to_play_in_stands_until_it_is_taken_down():
    before = Host.now()
    up = run("lab", "up", "lan-3", "--name", "test-lab", "--vpn", "nebula", "--timings")
    assert up.returncode == 0, up.stderr
    assert "lab up in" in up.stdout and "removed in" in up.stdout
    try:
        inside = run("lab", "exec", "--name", "test-lab", "b", "--", "ping", "-n", "-q", "-c1", "-w10", "10.60.0.3")
        assert inside.returncode == 0, inside.stdout
        assert run("lab", "exec", "--name", "test-lab", "b", "hostname").stdout == "b\n"
        assert run("lab", "exec", "--name", "test-lab", "b", "--", "sh", "-c", "exit 7").returncode == 7
        assert "did you mean" in run("lab", "exec", "--name", "test-lab", "midle", "true").stderr
    finally:
        down = run("lab", "down", "--name", "test-lab")
    assert down.returncode == 0, down.stderr
    assert left_within(before) == {}
