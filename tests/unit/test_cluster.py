"""Blocks over workers of a real Dask scheduler: all are there once, whatever of the cluster is lost; what a block measures is made up here."""

from __future__ import annotations

import asyncio
import errno
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from distributed import Client

from support import virtual_blocks
from support.cluster_nodes import ClusterNodes, kill, nodes
from tunnelmark.cluster import dispatch, scheduler_connection
from tunnelmark.cluster.dispatch import Watcher, Way
from tunnelmark.cluster.tasks import BlockDone, BlockTask, WorkerFacts, differing, machine_of, programs_hash
from tunnelmark.errors import LabError

ASKS = BlockTask("study", {}, {})
TASKS = [BlockTask("study", {}, {}, number) for number in range(1, 9)]

Meanwhile = Callable[[ClusterNodes, int], object]


def spread(
    way: Callable[[str], Way],
    *,
    tasks: Sequence[BlockTask] = TASKS,
    workers: int = 2,
    fit: Callable[[WorkerFacts, Sequence[WorkerFacts]], str] = lambda *_: "",
    held: Callable[[WorkerFacts, Sequence[WorkerFacts]], bool] = lambda *_: False,
    meanwhile: Meanwhile = lambda *_: None,
) -> tuple[list[BlockDone], dict[str, list[Any]]]:
    """Spread the blocks over workers; `meanwhile` is called with the cluster and the number of blocks after each of them."""
    done: list[BlockDone] = []
    said: dict[str, list[Any]] = {"taken": [], "left out": [], "waits": []}
    with nodes(workers) as cluster:

        def note(one: BlockDone) -> None:
            done.append(one)
            meanwhile(cluster, len(done))

        watcher = Watcher(
            note, fit, said["taken"].append, lambda *why: said["left out"].append(why), said["waits"].append, held
        )
        asyncio.run(dispatch.spread(tasks, ASKS, way(cluster.address), watcher))
    return done, said


def virtual(address: str, measure: Callable[[BlockTask, str], BlockDone] = virtual_blocks.measured) -> Way:
    return Way(address, measure=measure, facts=virtual_blocks.facts, patience=120)


def numbers(done: list[BlockDone]) -> list[int]:
    return sorted(one.number for one in done)


def test_every_block_is_measured_once_and_workers_share_them() -> None:
    done, said = spread(virtual)
    assert numbers(done) == list(range(1, 9))
    assert {one.worker for one in done} <= {found.worker for found in said["taken"]} <= {"w1", "w2"}


def test_a_worker_that_is_not_fit_gets_none() -> None:
    done, said = spread(virtual, fit=lambda found, _: "other programs" if found.worker == "w1" else "")
    assert numbers(done) == list(range(1, 9))
    assert {one.worker for one in done} == {"w2"}
    assert said["left out"] in ([], [("w1", "other programs")])


def test_a_worker_that_was_left_out_is_asked_again() -> None:
    asked: list[str] = []

    def fit(found: WorkerFacts, taken: Sequence[WorkerFacts]) -> str:
        asked.append(found.worker)
        return "busy" if len(asked) < 3 else ""

    done, said = spread(lambda address: replace(virtual(address), again=0.1), workers=1, fit=fit)
    assert numbers(done) == list(range(1, 9))
    assert said["left out"] == [("w1", "busy")]


def test_blocks_of_a_worker_that_was_killed_go_to_another() -> None:
    def lose(cluster: ClusterNodes, count: int) -> None:
        if count == 2:
            kill(cluster.workers[0])
            cluster.add()

    done, _ = spread(virtual, workers=1, meanwhile=lose)
    assert numbers(done) == list(range(1, 9))
    assert [one.worker for one in done] == ["w1"] * 2 + ["w2"] * 6


def test_blocks_go_on_when_the_scheduler_was_killed_and_started_again() -> None:
    def restart(cluster: ClusterNodes, count: int) -> None:
        if count == 2:
            kill(cluster.scheduler)
            cluster.start_scheduler()

    done, _ = spread(virtual, workers=1, meanwhile=restart)
    assert numbers(done) == list(range(1, 9))


def test_a_worker_whose_machine_another_one_measures_on_is_not_asked_again() -> None:
    alone: list[str] = []
    disturbing: list[str] = []

    def fit(found: WorkerFacts, taken: Sequence[WorkerFacts]) -> str:
        (disturbing if taken else alone).append(found.worker)
        return "it is on the same machine" if taken else "" if len(set(alone)) == 2 else "the other is not there yet"

    def held(found: WorkerFacts, taken: Sequence[WorkerFacts]) -> bool:
        return bool(taken)

    done, _ = spread(lambda address: replace(virtual(address), again=0.1), fit=fit, held=held)
    assert len({one.worker for one in done}) == 1
    assert len(disturbing) <= 1, "at most what was asked already when the first one was taken"


def test_a_block_that_fails_everywhere_is_its_own_error() -> None:
    with pytest.raises(LabError, match="no room") as caught:
        spread(lambda address: replace(virtual(address, virtual_blocks.fails), again=0.1))
    assert "failed 3 times, on w" in caught.value.message


def test_blocks_that_fail_on_one_worker_come_from_the_others() -> None:
    asked: set[str] = set()

    def fit(found: WorkerFacts, taken: Sequence[WorkerFacts]) -> str:
        asked.add(found.worker)
        ready = bool(taken) if found.worker == "w1" else "w1" in asked
        return "" if ready else "the other is not there yet"

    def way(address: str) -> Way:
        return replace(virtual(address, virtual_blocks.fails_on_w1), again=0.1)

    long = [BlockTask("study", {}, {"seconds": 2.5}, number) for number in (1, 2, 3)]
    done, said = spread(way, tasks=long, fit=fit)
    assert numbers(done) == [1, 2, 3]
    assert {one.worker for one in done} == {"w2"}
    assert any("failed on worker w1" in words for words in said["waits"])
    assert ("w1", "block N failed there: no room (make some)") in {
        (name, re.sub(r"\d+", "N", why, count=1)) for name, why in said["left out"]
    }


def test_a_worker_on_which_a_block_has_failed_gets_no_other_for_a_while() -> None:
    done, said = spread(lambda address: virtual(address, virtual_blocks.fails_on_w1))
    assert {one.worker for one in done} == {"w2"}
    assert len(said["waits"]) <= 1


def test_a_result_that_cannot_be_kept_ends_it_at_once() -> None:
    kept: list[int] = []

    def full(_: ClusterNodes, count: int) -> None:
        kept.append(count)
        raise OSError(errno.ENOSPC, "no room on the disk")

    with pytest.raises(OSError, match="no room on the disk"):
        spread(virtual, meanwhile=full)
    assert kept == [1]


def test_a_worker_that_does_not_say_what_it_has_is_left_out() -> None:
    left_out: list[tuple[str, str]] = []
    watcher = Watcher(lambda _: None, lambda *_: "", left_out=lambda *why: left_out.append(why))
    with nodes(1) as cluster, Client(cluster.address) as client:
        client.wait_for_workers(1, timeout=60)
        way = replace(virtual(cluster.address), facts=virtual_blocks.says_nothing, patience=1.0)
        with pytest.raises(LabError, match="it has not said within 1 s what it would measure with"):
            asyncio.run(dispatch.spread(TASKS, ASKS, way, watcher))
    assert len(left_out) == 1 and left_out[0][0].startswith("tcp://127.0.0.1:")


def test_a_block_ends_when_its_command_has_gone_and_its_worker_stays(tmp_path: Path) -> None:
    begun, done = tmp_path / "begun", list[BlockDone]()
    watcher = Watcher(done.append, lambda *_: "")

    async def gone(address: str) -> None:
        way = virtual(address, virtual_blocks.endless)
        command = asyncio.create_task(dispatch.spread([BlockTask(str(begun), {}, {}, 1)], ASKS, way, watcher))
        while not (begun.exists() and begun.read_text()):
            await asyncio.sleep(0.05)
        command.cancel()
        await asyncio.wait([command])

    with nodes(1) as cluster:
        asyncio.run(gone(cluster.address))
        asyncio.run(dispatch.spread(TASKS, ASKS, virtual(cluster.address), watcher))
        assert numbers(done) == list(range(1, 9))
        deadline = time.monotonic() + 30
        while Path("/proc", begun.read_text()).exists():
            assert time.monotonic() < deadline, "its process goes on"
            time.sleep(0.1)


def test_a_cluster_without_a_fit_worker_is_an_error_that_says_what_to_do() -> None:
    with pytest.raises(LabError, match="no worker that is fit") as caught:
        spread(lambda address: replace(virtual(address), patience=1.0), workers=0)
    assert "--resume" in caught.value.hint


def test_a_scheduler_that_is_not_there_is_an_error_that_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scheduler_connection, "_CONNECT", 0.3)
    watcher = Watcher(lambda _: None, lambda *_: "")
    with pytest.raises(LabError, match="does not answer"):
        asyncio.run(dispatch.spread(TASKS, ASKS, replace(virtual("tcp://127.0.0.1:9"), patience=0.2), watcher))


# ------------------------------------------------------------------------------- which workers are alike


def test_workers_are_alike_when_their_programs_are_whatever_their_paths_and_kernels() -> None:
    def environment(sha: str, path: str, kernel: str = "6.1") -> dict[str, Any]:
        vpns = {
            "tinc": {"programs": {"tincd": {"path": path, "sha256": sha}}},
            "direct": {"version": kernel, "programs": {}},
        }
        return {"tunnelmark": "0.1.0", "vpns": vpns, "workloads": {}}

    mine, alike, other = environment("a", "/x"), environment("a", "/y", "6.8"), environment("b", "/x")
    assert programs_hash(mine) == programs_hash(alike) != programs_hash(other)
    assert differing(mine, alike) == [] and differing(mine, other) == ["tinc is not the same program"]
    assert "tunnelmark 0.2.0, not 0.1.0" in differing(mine, {**alike, "tunnelmark": "0.2.0"})


def test_a_machine_is_told_from_another_by_system_boot_and_name() -> None:
    def of(identity: str, boot: str, host: str) -> str:
        return machine_of({"fingerprint": {"identity": identity, "boot": boot}, "worker_host": host})

    assert len({of("a", "1", "x"), of("b", "1", "x"), of("a", "2", "x"), of("a", "1", "y"), of("a", "1", "x")}) == 4
