"""Who measures is told to who waits; what disturbs a measurement waits, or says that it does not."""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from rich.console import Console

from tunnelmark import registry
from tunnelmark.cli import ab_command, matrix_command, other_work, real_hosts
from tunnelmark.cli import command as cli
from tunnelmark.cli import measurement_lock as module
from tunnelmark.cli import measuring as measuring_command
from tunnelmark.cli.measurement_lock import alone, measuring, quiet
from tunnelmark.cli.retry_options import NO_WAIT
from tunnelmark.errors import UsageError
from tunnelmark.lab.ssh.inventory import Inventory
from tunnelmark.run import assets
from tunnelmark.run.runner import RunContext
from tunnelmark.workloads.base import Asset

HOSTS = Inventory.model_validate(
    {"hosts": [{"name": "alpha", "ssh": "root@192.0.2.1", "address": "198.51.100.1", "interface": "eth1"}]}
)
PATIENCE = 60  # seconds until a thread must have done what it does at once


@pytest.fixture(autouse=True)
def lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(module, "LOCK", tmp_path / "measuring.lock")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.delenv(NO_WAIT, raising=False)
    return tmp_path / "measuring.lock"


@pytest.fixture(autouse=True)
def no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing else that may go on on this machine is the tests' concern."""
    monkeypatch.setattr(other_work, "others", tuple)


def console() -> tuple[Console, io.StringIO]:
    return Console(file=(said := io.StringIO()), width=400), said


def until(said: io.StringIO, words: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while words not in said.getvalue():
        assert time.monotonic() < deadline, said.getvalue()
        time.sleep(0.01)


def test_who_measures_is_known_by_all_that_it_says_of_itself() -> None:
    assert measuring() is None
    with alone(console()[0], "the study quick", Path("results/one"), 600.0):
        holder = measuring()
        assert holder is not None and holder.pid == os.getpid()
        assert f"the study quick (results in {Path.cwd()}/results/one, process {os.getpid()}, for " in holder.words()
        assert "about " in holder.words() and holder.words().endswith(" left)")
    assert measuring() is None


@pytest.mark.parametrize("on", [HOSTS, None], ids=["hosts", "here"])
def test_what_is_measured_on_other_hosts_keeps_no_one_out_here(on: Inventory | None) -> None:
    with real_hosts.alone(on, console()[0], "the study quick") as held:
        assert (held is None) == (measuring() is None) == (on is not None)


def test_what_is_left_is_told_anew() -> None:
    with alone(console()[0], "the study quick", None, 6000.0) as held:
        assert held is not None
        assert (before := measuring()) is not None and before.until is not None
        held.left(0.0)
        assert (after := measuring()) is not None and after.until is not None
        assert after.until < before.until
        assert "left" in before.words() and "nearly done" in after.words()


def test_a_second_run_waits_and_says_for_whom(lock: Path) -> None:
    (first, _), (second, said) = console(), console()
    order: list[str] = []

    def wait() -> None:
        with alone(second, "the study two"):
            order.append("second")

    with alone(first, "the study one", None, 120.0):
        thread = threading.Thread(target=wait)
        thread.start()
        until(said, "waiting for a run on this machine to end: the study one")
        assert f"process {os.getpid()}" in said.getvalue() and "left" in said.getvalue()
        order.append("first")
    thread.join(PATIENCE)
    assert order == ["first", "second"]


def test_what_counts_instructions_waits_for_nothing_that_counts_them_too() -> None:
    (first, _), (second, said) = console(), console()
    with alone(first, "the study one", counted=True), alone(second, "the study two", counted=True):
        assert not said.getvalue()
        assert measuring() is None, "work that would disturb a measurement does not disturb these"


@pytest.mark.parametrize("counted", [True, False], ids=["then-wall-time", "then-counted-time"])
def test_what_measures_by_wall_time_and_what_counts_keep_each_other_out(counted: bool) -> None:
    (first, _), (second, said) = console(), console()

    def wait() -> None:
        with alone(second, "the study two", counted=not counted):
            pass

    with alone(first, "the study one", counted=counted):
        thread = threading.Thread(target=wait)
        thread.start()
        until(said, "waiting for a run on this machine to end: the study one")
    thread.join(PATIENCE)


def test_what_disturbs_a_run_waits_for_its_end() -> None:
    (first, _), (other, said) = console(), console()
    order: list[str] = []

    def wait() -> None:
        quiet(other, "a lab")
        order.append("lab")

    with alone(first, "the study one", None, 120.0):
        thread = threading.Thread(target=wait)
        thread.start()
        until(said, "because a lab would disturb it; --no-wait goes on at once")
        assert "the study one" in said.getvalue()
        order.append("run")
    thread.join(PATIENCE)
    assert order == ["run", "lab"]


@pytest.mark.parametrize("by", ["option", "environment"])
def test_or_goes_on_with_a_warning(by: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if by == "environment":
        monkeypatch.setenv(NO_WAIT, "1")
    other, said = console()
    with alone(console()[0], "the study one"):
        quiet(other, "a lab", wait=by != "option")
    assert said.getvalue().startswith("warning: a lab disturbs the study one (process")


def test_where_nobody_measures_nothing_is_said() -> None:
    other, said = console()
    quiet(other, "a lab")
    assert said.getvalue() == ""


@pytest.mark.parametrize("content", ["4711", '{"pid": 4711, "new": 1}', "", "{"])
def test_what_another_version_says_is_taken_as_far_as_it_goes(content: str, lock: Path) -> None:
    lock.write_text(content)
    holder = module._holder()
    assert holder.pid == (4711 if content == "4711" else None)
    assert holder.words().startswith("another run (process ")


def test_a_run_that_begins_says_what_goes_on_beside_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        other_work, "others", lambda: (other_work.OtherWork("packages install of 3", 4711, time.time() - 130),)
    )
    mine, said = console()
    with alone(mine, "the study one"):
        pass
    assert "warning: running at the same time: packages install of 3 (process 4711, for 2 min " in said.getvalue()


@pytest.fixture
def builder() -> Iterator[subprocess.Popen[str]]:
    """Another process that says what it does."""
    code = "from tunnelmark.cli import other_work\nwith other_work.told('a build of this test'): print('ready', flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield process
        process.kill()


def test_work_is_seen_by_others_until_its_process_ends(
    builder: subprocess.Popen[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()  # the real one
    seen = [work for work in other_work.others() if work.pid == builder.pid]
    assert [work.what for work in seen] == ["a build of this test"]
    assert f"a build of this test (process {builder.pid}, for " in seen[0].words()
    builder.kill()
    builder.wait()
    assert builder.pid not in {work.pid for work in other_work.others()}


def test_nobody_sees_himself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    with other_work.told("x" * 300):  # longer than a name may be
        assert f"@tunnelmark/{os.getpid()}/" in Path("/proc/net/unix").read_text()
        assert os.getpid() not in {work.pid for work in other_work.others()}


@pytest.fixture
def announced(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What waits for a measurement or is announced, in order, without waiting."""
    said: list[str] = []

    def told(what: str) -> contextlib.AbstractContextManager[None]:
        said.append(what)
        return contextlib.nullcontext()

    def quiet(_: Console, what: str, *, wait: bool = True) -> None:
        said.append(f"{what}{' waits' if wait else ''}")

    for place in (module, measuring_command):
        monkeypatch.setattr(place, "quiet", quiet)
    monkeypatch.setattr(other_work, "told", told)
    return said


@pytest.mark.parametrize("wait", [True, False])
def test_what_a_workload_needs_is_made_when_nothing_is_measured(
    wait: bool, announced: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []
    monkeypatch.setattr(assets, "absent", lambda asked: [asset for asset in asked if asset.name != "there"])
    monkeypatch.setattr(assets, "make", lambda asset, _: made.append(asset.name))
    context = SimpleNamespace(assets=lambda _: [(Asset(name, ()), "") for name in ("there", "clip")])
    plan: Any = None
    measuring_command.prepare(plan, cast(RunContext, context), console()[0], wait=wait)
    assert made == ["clip"]
    assert announced == [f"making what workloads need{' waits' if wait else ''}", "making clip"]


def test_who_holds_the_lock_does_not_wait_for_itself(announced: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(assets, "absent", lambda asked: asked)
    monkeypatch.setattr(assets, "make", lambda *_: None)
    plan, context = cast(Any, None), SimpleNamespace(assets=lambda _: [(Asset("clip", ()), "")])
    measuring_command.prepare(plan, cast(RunContext, context), console()[0], held=True)
    assert announced == ["making clip"]


def test_nothing_is_waited_for_where_nothing_is_to_be_made(announced: list[str]) -> None:
    plan: Any = None
    context = SimpleNamespace(assets=lambda _: [])
    measuring_command.prepare(plan, cast(RunContext, context), console()[0])
    assert announced == []


def test_a_revision_is_built_when_nothing_is_measured(
    announced: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def built(*_: object, make: bool) -> None:
        raise UsageError(f"built: {make}, after {announced}", hint="none")

    monkeypatch.setattr(ab_command, "own_programs", built)
    tree = ["--source", str(tmp_path), "--build", "true", "--program", "tincd"]
    asked = ["ab", "tinc", "--old", "git:HEAD~1", "--new", "git:HEAD", *tree]
    assert cli.main([*asked, "--dry-run"]) == 2
    assert "built: False, after []" in capsys.readouterr().err
    assert cli.main(asked) == 2
    assert announced == ["building a revision waits", "the build of a revision"]


def test_what_matrix_measures_keeps_others_out(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    held: list[str] = []

    async def look(name: str, version: str) -> dict[str, Any]:
        holder = measuring()
        held.append(f"{name} {version} by {holder.what if holder else 'none'}")
        return {}

    monkeypatch.setattr(matrix_command, "_look", look)
    monkeypatch.setattr(matrix_command, "part_version", lambda _: "1.0")
    monkeypatch.setattr(registry, "measured_file", lambda: tmp_path / "measured.json")
    matrix_command._measure(["tinc"])
    assert held == ["tinc 1.0 by matrix --measure"]
