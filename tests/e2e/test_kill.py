"""`kill -9` of the command at any moment leaves nothing behind and loses no finished trial.

TUNNELMARK_KILLS sets how many kills the proof makes (default 24); TUNNELMARK_KILL_STUDY names another study than the
small one, such as `quick`.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import time
from pathlib import Path

import pytest

from support.command import command, environment, journal, run, small_study
from support.host import PATIENCE, Host, left_within

pytestmark = [pytest.mark.root, pytest.mark.slow, pytest.mark.timeout(3600)]

KILLS = int(os.environ.get("TUNNELMARK_KILLS", "24"))
STUDY = os.environ.get("TUNNELMARK_KILL_STUDY", "")
LATEST = 6.0  # seconds after its start by which the command is killed


def test_a_few_kills(tmp_path: Path):
    killed_again_and_again(tmp_path, kills=2, within=PATIENCE)


@pytest.mark.proof("kill -9 at any moment leaves nothing behind within a second, and loses no finished trial")
def test_random_kills(tmp_path: Path):
    killed_again_and_again(tmp_path, kills=KILLS, within=1.0)


def killed_again_and_again(tmp_path: Path, kills: int, within: float) -> None:
    seed = int(os.environ.get("TUNNELMARK_KILL_SEED", random.randrange(10**6)))
    print(f"kill seed {seed}")
    draw = random.Random(seed)
    study = STUDY or small_study(tmp_path, arms=["wireguard-go", "tinc", "nebula"], blocks=2)
    results = tmp_path / "results"
    before = Host.now()
    finished: list[dict] = []
    for number in range(kills):
        with subprocess.Popen(
            command(*going_on(study, results)), env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        ) as process:
            time.sleep(draw.uniform(0.05, LATEST))
            if process.poll() is not None:
                assert process.stderr is not None
                assert process.returncode in (0, 1), process.stderr.read().decode()
            process.send_signal(signal.SIGKILL)
        left = left_within(before, within)
        assert left == {}, f"kill {number + 1} of seed {seed} left {left}"
        if (results / "journal.jsonl").exists():
            now = journal(results)
            assert now[: len(finished)] == finished, "a finished trial was lost or changed"
            finished = now
    print(f"{kills} kills, {len(finished)} trials finished meanwhile")
    assert finished or kills < 10, "no kill came after a trial had ended, so that nothing could be lost"
    done = run(*going_on(study, results), timeout=1200)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    trials = journal(results)
    assert trials[: len(finished)] == finished
    assert len({(trial["trial"], trial["attempt"]) for trial in trials}) == len(trials), "an attempt was made twice"
    usable = [trial["trial"] for trial in trials if trial["outcome"] != "void" and not trial["wanting"]]
    assert len(set(usable)) == len(usable), "a trial was run again though it had a result"
    # One that the lab itself calls void, on a machine that stood still, is finished and kept like any other.
    assert {trial["outcome"] for trial in trials if trial["reason"] != "trial-void"} == {"ok"}
    assert left_within(before, within) == {}


def servers_of(pid: int) -> list[int]:
    """The lab servers among a process's children."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [
        int(each) for each in children if "tunnelmark.lab.server.server" in Path(f"/proc/{each}/cmdline").read_text()
    ]


def going_on(study: str | Path, results: Path) -> list[str | Path]:
    """The command that goes on from what there is, or begins where nothing had begun."""
    if (results / "plan.json").exists() and (results / "journal.jsonl").exists():
        return ["run", "--resume", results]
    if results.exists():  # killed while the folder was made
        subprocess.run(["rm", "-rf", results], check=True)
    return ["run", study, "--out", results]


def test_a_lab_whose_holder_is_killed_is_gone(tmp_path: Path):
    before = Host.now()
    assert run("lab", "up", "lan-3", "--name", "killed-lab", "--vpn", "tinc").returncode == 0
    state = Path("/run/tunnelmark/killed-lab.json")
    pid = json.loads(state.read_text())["pid"]
    os.kill(pid, signal.SIGKILL)
    assert left_within(before) == {}
    assert not state.exists()
    assert "killed-lab" not in [lab["name"] for lab in json.loads(run("lab", "list", "--json").stdout)]


def test_the_lab_server_killed_is_an_error_that_says_so(tmp_path: Path):
    """Not the command but its helper dies: the run ends with an error, and still leaves nothing."""
    before = Host.now()
    study = small_study(tmp_path, arms=["tinc"], blocks=3)
    with subprocess.Popen(
        command("run", study, "--out", tmp_path / "results"),
        env=environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    ) as process:
        while not (tmp_path / "results" / "journal.jsonl").exists() or not (servers := servers_of(process.pid)):
            assert process.poll() is None
            time.sleep(0.05)
        os.kill(servers[0], signal.SIGKILL)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 2
    assert b"lab server" in said
    assert left_within(before) == {}
