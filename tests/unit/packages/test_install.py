"""The installer on real builds: small Go programs of the test's own, which need no registry and no root."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tunnelmark.cli import command as cli
from tunnelmark.host.programs import packages_home
from tunnelmark.packages import installed, toolchains
from tunnelmark.packages.build_steps import BuildStep
from tunnelmark.packages.install import InstallOutcome, _fitting, _run, cache, install
from tunnelmark.packages.recipe import Recipe, load, recipe
from tunnelmark.packages.status import standing
from tunnelmark.plan.files import PATH_VARIABLE

pytestmark = pytest.mark.skipif(not shutil.which("go", path=toolchains.build_path()), reason="needs Go to build with")

MAIN = 'package main\n\nimport "os"\n\nfunc main() { os.Stdout.WriteString("%s\\n") }\n'


class Silent:
    def begin(self, recipe: Recipe) -> None:
        pass

    def end(self, outcome: InstallOutcome) -> None:
        pass


@pytest.fixture(autouse=True)
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    environ = os.environ | {"GOTOOLCHAIN": "local", "PATH": toolchains.build_path()}
    shared = subprocess.run(["go", "env", "GOCACHE"], capture_output=True, text=True, check=True, env=environ).stdout
    monkeypatch.setenv("GOCACHE", shared.strip())  # the standard library is built once, not in every test
    monkeypatch.setenv("TUNNELMARK_PACKAGES", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def make(folder: Path, name: str, says: str = "hello", main: str = "", go: str = "1.21") -> Recipe:
    module = folder / "recipes" / name
    module.mkdir(parents=True, exist_ok=True)
    (module / "go.mod").write_text(f"module tunnelmark.invalid/{name}\n\ngo {go}\n")
    (module / "go.sum").write_text("")
    (module / "main.go").write_text(main or MAIN % says)
    file = folder / "recipes" / f"{name}.toml"
    file.write_text(
        f'[recipe]\ntitle = "x"\nhomepage = "https://example.org"\nversion = "1.0"\nprograms = ["{name}"]\n'
        f'[[go]]\nprograms = {{{name} = "tunnelmark.invalid/{name}"}}\n'
    )
    return load(file)


def do(*chosen: Recipe, jobs: int = 2) -> dict[str, InstallOutcome]:
    return {outcome.name: outcome for outcome in asyncio.run(install(chosen, Silent(), jobs))}


def said_by(name: str) -> str:
    return subprocess.run([packages_home() / name / "bin" / name], capture_output=True, text=True, check=True).stdout


def test_it_builds_records_and_then_leaves_alone(tmp_path: Path) -> None:
    one, two = make(tmp_path, "one"), make(tmp_path, "two", "hello from two")
    outcomes = do(one, two)
    assert {name: outcome.result for name, outcome in outcomes.items()} == {"one": "ready", "two": "ready"}, outcomes
    assert said_by("two") == "hello from two\n"
    written = json.loads((packages_home() / "one" / installed.FILE).read_text())
    assert written["version"] == "1.0"
    assert written["recipe"] == one.digest()
    assert len(written["programs"]["one"]["sha256"]) == 64
    assert written["toolchain"].startswith("go 1.")
    assert standing(one).state == "ready"
    before = (packages_home() / "one" / "bin" / "one").stat().st_mtime_ns
    assert do(one)["one"].result == "kept"
    assert (packages_home() / "one" / "bin" / "one").stat().st_mtime_ns == before
    assert not (cache() / "one").exists(), "what is built is not kept twice"


def test_a_changed_recipe_is_built_anew(tmp_path: Path) -> None:
    do(make(tmp_path, "one"))
    changed = make(tmp_path, "one", "hello again")
    assert "its recipe has changed" in standing(changed).note
    assert do(changed)["one"].result == "ready"
    assert said_by("one") == "hello again\n"


def test_a_program_that_somebody_replaced_is_built_anew(tmp_path: Path) -> None:
    one = make(tmp_path, "one")
    do(one)
    program = packages_home() / "one" / "bin" / "one"
    program.write_text("#!/bin/sh\necho mine\n")
    assert "one is not the one that was installed" in standing(one).note
    assert do(one)["one"].result == "ready"
    assert said_by("one") == "hello\n"


def test_one_that_fails_says_why_and_stops_no_other(tmp_path: Path) -> None:
    outcomes = do(make(tmp_path, "bad", main="package main\n\nfunc main() { nonsense() }\n"), make(tmp_path, "good"))
    assert outcomes["good"].result == "ready"
    bad = outcomes["bad"]
    assert bad.result == "failed"
    assert "undefined: nonsense" in bad.message
    assert bad.log and bad.log.is_file() and str(bad.log) in bad.hint
    assert not (packages_home() / "bad").exists()


def test_a_recipe_without_its_hashes_is_not_built(tmp_path: Path) -> None:
    main = 'package main\n\nimport _ "golang.org/x/sys/unix"\n\nfunc main() {}\n'
    outcome = do(make(tmp_path, "one", main=main))["one"]
    assert outcome.result == "failed"
    assert "golang.org/x/sys/unix" in outcome.message


def test_what_needs_a_newer_toolchain_is_named_and_not_tried(tmp_path: Path) -> None:
    outcome = do(make(tmp_path, "one", go="1.999.0"))["one"]
    assert outcome.result == "impossible"
    assert outcome.message.startswith("needs Go 1.999.0 or later; here is ")
    assert "go.dev" in outcome.hint


def test_what_no_registry_carries_says_where_its_makers_publish_it() -> None:
    outcome = do(recipe("mycelium"))["mycelium"]
    assert outcome.result == "missing"
    assert "releases" in outcome.hint


@pytest.mark.slow
@pytest.mark.proof("an installation of VPNs that is killed leaves nothing half, and the same command goes on")
def test_an_installation_that_is_killed_leaves_nothing_half_and_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = make(tmp_path, "first"), make(tmp_path, "second")
    do(first)
    monkeypatch.setenv(PATH_VARIABLE, str(tmp_path))
    monkeypatch.setenv("TUNNELMARK_NO_WAIT", "1")  # whoever measures on this machine is not the test's concern
    monkeypatch.setenv("GOCACHE", str(tmp_path / "cold"))  # so that the build lasts
    argv = [sys.executable, "-c", "from tunnelmark.cli import main; main()", "packages", "install", "first", "second"]
    command = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    log = cache() / "logs" / "second.log"
    deadline = time.monotonic() + 30
    while not (log.is_file() and log.read_text().startswith("$ go build")):
        assert time.monotonic() < deadline
        assert command.poll() is None, command.communicate()
        time.sleep(0.01)
    command.kill()
    said = command.communicate()[0].decode()
    assert "first              in place" in said
    assert not (packages_home() / "second").exists()
    with (cache() / "second.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # the orphaned build ends, and with it the last holder
    outcomes = do(first, second)
    assert outcomes["first"].result == "kept"
    assert outcomes["second"].result == "ready"


def test_a_build_steps_back_behind_other_work_and_is_not_starved_by_it(tmp_path: Path) -> None:
    log = tmp_path / "log"
    step = BuildStep(("sh", "-c", "nice; cat /proc/self/autogroup; ionice"), tmp_path)
    with log.open("wb") as output, (tmp_path / "lock").open("a") as lock:
        asyncio.run(_run(step, output, log, lock))
    said = log.read_text().splitlines()
    assert said[1] == str(min(19, os.nice(0) + 5))
    assert "best-effort: prio 7" in said
    if Path("/proc/self/autogroup").exists():
        assert said[2].endswith("nice 5")


def test_ctrl_c_ends_a_build_with_all_its_processes(tmp_path: Path) -> None:
    log, note = tmp_path / "log", tmp_path / "pid"
    step = BuildStep(("sh", "-c", f"sleep 60 & echo $! >{note}; wait"), tmp_path)

    async def stopped() -> None:
        with log.open("wb") as output, (tmp_path / "lock").open("a") as lock:
            task = asyncio.create_task(_run(step, output, log, lock))
            while not (note.is_file() and note.read_text().strip()):
                await asyncio.sleep(0.01)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    asyncio.run(stopped())
    assert ends(int(note.read_text()))


def ends(pid: int) -> bool:
    """Whether a process is gone soon: its new parent has to reap it."""
    deadline = time.monotonic() + 30
    while Path("/proc", str(pid)).exists():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def test_memory_bounds_how_many_are_built_at_once() -> None:
    large, small = recipe("netbird"), recipe("wireguard-go-2026")
    room = large.about.memory + small.about.memory
    assert _fitting([large], [], 2, 0) is large, "one always runs"
    assert _fitting([large], [large], 2, room) is None
    assert _fitting([large, small], [large], 2, room) is small
    assert _fitting([small], [large, small], 2, 10 * room) is None


@pytest.mark.parametrize("arguments", [[], ["tinc", "--all"], ["--all", "--quick"]])
def test_it_must_be_told_what_to_install(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["packages", "install", *arguments]) == 2
    assert "--all or --quick" in capsys.readouterr().err


def test_the_command_s_exit_code_says_whether_all_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    make(tmp_path, "good")
    make(tmp_path, "bad", main="package main\n\nfunc main() { nonsense() }\n")
    monkeypatch.setenv(PATH_VARIABLE, str(tmp_path))
    assert cli.main(["packages", "install", "good"]) == 0
    assert cli.main(["packages", "install", "good", "bad"]) == 1
    said = capsys.readouterr().out
    assert "undefined: nonsense" in said
    assert "1 kept  1 failed" in said or "1 failed  1 kept" in said
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
