"""A study over a cluster, as the command sees it: which workers it takes, what it refuses, and how it goes on."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from tunnelmark import cli, registry
from tunnelmark.cli import link_capacities, spread
from tunnelmark.cli.cluster_options import BlockTarget
from tunnelmark.cli.run_options import RunOptions
from tunnelmark.cluster.tasks import HOST, BlockDone, WorkerFacts, programs_hash, study_of, task_of
from tunnelmark.errors import UsageError
from tunnelmark.plan.enough import Enough
from tunnelmark.plan.files import Files
from tunnelmark.plan.load import load_study, save_inputs
from tunnelmark.plan.model import Study
from tunnelmark.record.gathered import GatheredRuns, is_gathered, of_one_machine
from tunnelmark.units import Rate
from unit.gathered_blocks import block

CONSOLE = Console(quiet=True)
THREE = BlockTarget(local=3)


def study() -> Study:
    return load_study("quick", Files.standard(), registry.catalogue(), blocks=4)


def worker(name: str, *, host: str = "", sha: str = "a", busy: float = 0.0, steal: float = 0.0) -> WorkerFacts:
    environment: dict[str, Any] = {
        "tunnelmark": "0.1.0",
        "vpns": {"tinc": {"programs": {"tincd": {"sha256": sha}}}},
        "workloads": {},
        "machine": {"cores": 2, "cpu": "a processor", "kernel": "6.1"},
        "load": {"before": {"busy": busy, "steal": steal}},
        "fingerprint": {"identity": "x", "boot": "1"},
        HOST: host or name,
    }
    return WorkerFacts(name, environment, programs_hash(environment))


def listener(tmp_path: Path, *, counted: bool = False, wait: bool = True) -> spread._Listener:
    gathered = GatheredRuns.begin(tmp_path / "run", {}, {"study": "quick"})
    return spread._Listener(CONSOLE, gathered, counted=counted, wait=wait)


@pytest.mark.parametrize(
    ("second", "why"),
    [
        (worker("b"), ""),
        (worker("b", sha="other"), "tinc is not the same program"),
        (worker("b", busy=0.9), "other work takes 0.9 of its 2 cores"),
        (worker("b", steal=0.3), "its host takes 0.3 of its 2 cores away"),
        (worker("b", host="a"), "it is on the same machine as a, and a machine measures one block at a time"),
    ],
)
def test_a_worker_is_left_out_with_its_reason(second: WorkerFacts, why: str, tmp_path: Path) -> None:
    found, first = listener(tmp_path), worker("a")
    assert found.fit(first, []) == ""
    assert found.fit(second, [first]) == why


def test_a_busy_worker_is_taken_where_nothing_is_waited_for_and_where_time_is_counted(tmp_path: Path) -> None:
    busy = worker("b", host="a", busy=2.0)
    assert listener(tmp_path / "1", counted=True).fit(busy, [worker("a")]) == ""
    assert (
        listener(tmp_path / "2", wait=False).fit(replace(busy, environment={**busy.environment, HOST: "b"}), []) == ""
    )


def test_a_worker_that_may_not_measure_decides_nothing_for_the_others(tmp_path: Path) -> None:
    found = listener(tmp_path)
    assert found.fit(worker("busy", sha="old", busy=0.9), []) == "other work takes 0.9 of its 2 cores"
    assert found.fit(worker("a"), []) == ""


def test_a_worker_with_other_programs_is_left_out_also_where_time_is_counted(tmp_path: Path) -> None:
    found = listener(tmp_path, counted=True)
    assert found.fit(worker("a"), []) == ""
    assert found.fit(worker("b", sha="other"), []) == "tinc is not the same program"


def test_a_run_that_goes_on_takes_workers_with_the_programs_of_its_blocks_alone(tmp_path: Path) -> None:
    found = listener(tmp_path)
    assert found.fit(worker("a"), []) == ""
    sent = block(1)
    found.done(BlockDone(1, "a", sent["plan"], sent["environment"], sent["journal"], sent["raw"], 1.0))
    found._gathered.close()
    with GatheredRuns(tmp_path / "run") as gathered:
        again = spread._Listener(CONSOLE, gathered, counted=False, wait=True)
        assert again.fit(worker("b", sha="other"), []) == "tinc is not the same program"
        assert again.fit(worker("c"), []) == ""


def test_a_run_that_has_no_block_yet_goes_on_with_any_programs(tmp_path: Path) -> None:
    found = listener(tmp_path)
    assert found.fit(worker("a"), []) == ""
    found._gathered.close()
    with GatheredRuns(tmp_path / "run") as gathered:
        again = spread._Listener(CONSOLE, gathered, counted=False, wait=True)
        assert again.fit(worker("b", sha="other"), []) == ""


def test_a_machine_that_another_worker_measures_on_is_not_disturbed(tmp_path: Path) -> None:
    found = listener(tmp_path)
    assert found.held(worker("b", host="a"), [worker("a")])
    assert not found.held(worker("b", host="a"), [])
    assert not found.held(worker("b"), [worker("a")])
    assert not listener(tmp_path / "2", counted=True).held(worker("b", host="a"), [worker("a")])


def begun(folder: Path) -> Path:
    """A folder that is asked for four blocks and has the second."""
    whole = study()
    asked = {key: value for key, value in asdict(task_of(whole, None)).items() if key != "inputs"}
    with GatheredRuns.begin(folder, whole.inputs, asked) as gathered:
        gathered.keep(**block(2))
    return folder


def test_a_dry_run_of_one_that_was_begun_says_which_blocks_are_left_and_measures_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = begun(tmp_path / "run")
    with GatheredRuns(folder):  # another command measures meanwhile
        assert cli.main(["run", "--resume", str(folder), "--dry-run"]) == 0
    assert capsys.readouterr().out == "quick: 3 of 4 blocks to measure: 1, 3, 4\n"


@pytest.mark.parametrize("option", ["--rate=1 Gbit/s", "--no-repeat", "--other-boot"])
def test_what_would_change_nothing_of_a_run_that_was_begun_is_refused(
    option: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["run", "--resume", str(begun(tmp_path / "run")), "--cluster", "tcp://127.0.0.1:9", option]) == 2
    said = capsys.readouterr().err
    assert "would change nothing" in said and f"leave {option.partition('=')[0]} out" in said


def test_what_a_worker_gets_makes_the_same_plan() -> None:
    whole = study()
    task = task_of(whole, 2)
    assert task.number == 2
    assert {name: task.settings[name] for name in ("blocks", "seed", "attempts")} == {
        "blocks": 4,
        "seed": whole.seed,
        "attempts": whole.attempts,
    }
    assert "studies/quick.toml" in task.inputs


@pytest.mark.parametrize(
    ("changed", "kernels", "why"),
    [
        ({"enough": Enough(floor=5, most=20, precision=0.05)}, (), "cannot be added one by one"),
        ({}, ("6.1", "6.12"), "one kernel"),
    ],
)
def test_what_a_cluster_cannot_do_is_refused_before_anything_is_made(
    changed: dict[str, Any], kernels: tuple[str, ...], why: str, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match=why) as caught:
        spread.begin(replace(study(), **changed), tmp_path / "run", THREE, kernels, CONSOLE, spread.Ways())
    assert caught.value.hint
    assert not (tmp_path / "run").exists()


def test_a_rate_that_is_left_to_the_machine_is_refused(tmp_path: Path) -> None:
    loaded = load_study("quick", Files.standard(), registry.catalogue())
    open_ = replace(loaded.profiles[0], auto=Rate(10**9))
    with pytest.raises(UsageError, match="another rate on each machine") as caught:
        spread.begin(replace(loaded, profiles=(open_,)), tmp_path / "run", THREE, (), CONSOLE, spread.Ways())
    assert "--rate '200 Mbit/s'" in str(caught.value.hint)


def test_a_rate_that_is_stated_goes_to_every_worker(tmp_path: Path) -> None:
    stated = link_capacities.stated(load_study("quick", Files.standard(), registry.catalogue()), Rate(200_000_000))
    save_inputs(stated, tmp_path)
    read = study_of(asdict(task_of(stated, 1, ())), tmp_path, registry.catalogue())
    assert [(profile.rate, profile.auto) for profile in read.profiles] == [(200_000_000, None)]


def test_a_rate_is_stated_only_where_one_is_left_to_the_machine() -> None:
    with pytest.raises(UsageError, match="has a rate of its own") as caught:
        link_capacities.stated(load_study("cascade", Files.standard(), registry.catalogue()), Rate(10**9))
    assert "--profile auto" in str(caught.value.hint)


def test_the_options_name_the_machines_and_say_them_again() -> None:
    assert not RunOptions().where
    assert RunOptions(local=3).where.words() == "--local 3"
    assert RunOptions(cluster="tls://lab:8786", tls=Path("a b")).where.words() == "--cluster tls://lab:8786 --tls 'a b'"
    assert RunOptions(hosts=Path("hosts.txt")).where.words() == "--hosts hosts.txt"


def test_a_folder_of_one_machine_is_a_run_and_others_are_themselves(tmp_path: Path) -> None:
    assert of_one_machine(tmp_path) == tmp_path and not is_gathered(tmp_path)
