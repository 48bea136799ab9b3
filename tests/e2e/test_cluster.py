"""A study over workers that are killed, come late, and lose their scheduler and the command: every block is there, and none twice.

Workers are processes with a host name of their own and a lock of measurements of their own, as on several machines; they share
this one's cores, so the figures mean nothing here. TUNNELMARK_CLUSTER_SEEDS sets how many times the proof is made (default 20).
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from support.cluster_nodes import ClusterNodes, kill
from support.command import command, environment, small_study
from support.host import PATIENCE, Host, left_within
from tunnelmark import registry
from tunnelmark.plan.files import Files
from tunnelmark.plan.load import load_study
from tunnelmark.plan.order import order
from tunnelmark.record import several_runs
from tunnelmark.record.gathered import is_gathered

pytestmark = [pytest.mark.root, pytest.mark.slow, pytest.mark.timeout(3600)]

SEEDS = int(os.environ.get("TUNNELMARK_CLUSTER_SEEDS", "20"))
_LONG = 900.0  # seconds for a study; what hangs is found by then


def test_a_worker_and_the_command_are_killed(tmp_path: Path) -> None:
    study = small_study(tmp_path, blocks=2)
    before = Host.now()
    with ClusterNodes(apart=True) as cluster:
        first = cluster.add()
        begun = start(study, tmp_path / "run", cluster)
        until_measuring(first)
        kill(first)
        cluster.add()
        until(lambda: blocks(tmp_path / "run"))
        kill(begun)
        finished = blocks(tmp_path / "run")
        again = go_on(tmp_path / "run", cluster)
        assert again.wait(_LONG) in (0, 1)
        assert finished
    whole(study, tmp_path / "run", 2)
    assert left_within(before, PATIENCE) == {}


@pytest.mark.proof("no block is lost and none twice, whatever of a cluster dies")
@pytest.mark.parametrize("seed", range(1, SEEDS + 1))
def test_everything_of_a_cluster_dies_once(seed: int, tmp_path: Path) -> None:
    draw = random.Random(seed)
    study, results = small_study(tmp_path, blocks=8), tmp_path / "run"
    before = Host.now()
    with ClusterNodes(apart=True) as cluster:
        for _ in range(3):
            cluster.add()
        running = start(study, results, cluster)
        happenings = ["worker", "worker", "late", "scheduler", "command"]
        draw.shuffle(happenings)
        struck = 0
        for what in happenings:
            time.sleep(draw.uniform(2, 12))
            struck += running.poll() is None
            if what == "worker":
                kill(draw.choice([worker for worker in cluster.workers if worker.poll() is None]))
            elif what == "late":
                cluster.add()
            elif what == "scheduler":
                kill(cluster.scheduler)
                cluster.start_scheduler()
            else:
                if running.poll() is None:
                    kill(running)
                    there = blocks(results)
                    running = go_on(results, cluster) if is_gathered(results) else start(study, results, cluster)
                    assert blocks(results) >= there
        assert struck, "the study had ended before anything happened"
        assert running.wait(_LONG) in (0, 1)
    whole(study, results, 8)
    assert left_within(before, PATIENCE) == {}


def start(study: Path, results: Path, cluster: ClusterNodes) -> subprocess.Popen[bytes]:
    return _run(study, "--out", results, "--cluster", cluster.address)


def go_on(results: Path, cluster: ClusterNodes) -> subprocess.Popen[bytes]:
    return _run("--resume", results, "--cluster", cluster.address)


def _run(*arguments: str | Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(command("run", *arguments), env=environment(), stdin=subprocess.DEVNULL)


def whole(study: Path, results: Path, count: int) -> None:
    """The folder has the trials that one machine would have measured, each once."""
    plan = order(load_study(str(study), Files.standard(), registry.catalogue()))
    found = [row.trial for _, run in several_runs.load(results) for row in run.trials]
    assert sorted(set(found)) == sorted(trial.id for trial in plan.trials)
    assert len({trial.block for trial in plan.trials}) == count
    assert blocks(results) == frozenset(range(1, count + 1))
    measured = [block for session in by_session(results) for block in session]
    assert sorted(measured) == sorted(set(measured)), "a block is in two sessions"


def blocks(results: Path) -> frozenset[int]:
    """The blocks of a folder, read without tidying it."""
    return frozenset().union(*by_session(results))


def by_session(results: Path) -> list[set[int]]:
    """The blocks of each session of a folder."""
    return [
        {json.loads(line)["block"] for line in journal.read_text().splitlines() if line.endswith("}")}
        for journal in results.glob("sessions/*/journal.jsonl")
    ]


def until_measuring(worker: subprocess.Popen[bytes]) -> None:
    """Until a worker has begun a block: the laboratory's server runs below it."""
    until(lambda: any("lab.server" in _line(pid) for pid in _below(worker.pid)))


def _below(pid: int) -> list[int]:
    found = []
    for file in Path("/proc").glob(f"{pid}/task/*/children"):
        try:
            for child in map(int, file.read_text().split()):
                found += [child, *_below(child)]
        except OSError:
            continue
    return found


def _line(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        return ""


def until(holds: Callable[[], object]) -> None:
    """Until something holds; an error if it does not come."""
    deadline = time.monotonic() + _LONG
    while not holds():
        assert time.monotonic() < deadline, "it did not come"
        time.sleep(0.05)
