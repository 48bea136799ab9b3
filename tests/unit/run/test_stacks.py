"""Recording of stacks: whose processors are whose, what must be there, how it is asked for, how it is folded."""

from __future__ import annotations

import dataclasses
import os
import stat
import subprocess
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest

from tunnelmark.cli import collector_options
from tunnelmark.cli import run as command
from tunnelmark.errors import MissingPart
from tunnelmark.host import programs
from tunnelmark.model import stack_kinds
from tunnelmark.plan.load import STACKS, parse_study
from tunnelmark.run.collectors import collectors, light, stacks
from unit.plan.studies import ARMS, CATALOGUE, FILES, STUDY, WORKLOADS

KNOWN = dataclasses.replace(CATALOGUE, collectors={"cpu": True, STACKS: False})


def program(folder: Path, name: str, script: str) -> None:
    """Put a shell script where programs are looked for."""
    file = folder / name
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(file.stat().st_mode | stat.S_IXUSR)


def test_the_collector_of_stacks_is_off_unless_asked_for():
    assert collectors()[STACKS] is stacks.COLLECTOR
    assert STACKS not in light()
    names = ("stacks", *stacks.KINDS_OF_DAEMONS)
    assert {metric.name for metric in stacks.COLLECTOR.metrics} == {
        f"{name}_{side}" for name in names for side in stacks.FILES
    }


def test_daemons_are_known_by_the_names_of_their_threads(tmp_path: Path):
    for thread, name in ((7, "tailscaled"), (8, "wg worker")):
        (tmp_path / "7" / "task" / str(thread)).mkdir(parents=True)
        (tmp_path / "7" / "task" / str(thread) / "comm").write_text(f"{name}\n")
    assert stacks.threads((7, 9), tmp_path) == {"tailscaled", "wg worker"}


def test_shares_of_the_daemons_are_of_all_samples_of_the_side():
    text = (
        "wireguard-go;main;__sys_sendmsg_[k];udp_sendmsg_[k] 30\n"
        "wireguard-go;main;tun_chr_write_iter_[k] 20\n"
        "wireguard-go;main;__sys_sendmsg_[k];handle_softirqs_[k] 10\n"
        "iperf3;main;__sys_sendmsg_[k] 40\n"
    )
    found = stack_kinds.shares_of(text, frozenset({"wireguard-go"}))
    assert (found["socket send"], found["TUN write"], found["soft interrupts"]) == (30, 20, 10)
    assert stack_kinds.shares_of("", frozenset({"wireguard-go"})) == {}


def test_a_study_or_the_command_asks_for_it():
    plain = parse_study(STUDY + ARMS + WORKLOADS, "mine.toml", FILES, KNOWN)
    assert plain.watch == ("cpu",)
    asked = parse_study(STUDY + "profile_stacks = true\n" + ARMS + WORKLOADS, "mine.toml", FILES, KNOWN)
    assert asked.watch == ("cpu", STACKS)
    assert collector_options.with_stacks(plain, True) == dataclasses.replace(
        asked, text=plain.text, inputs=plain.inputs
    )
    assert collector_options.with_stacks(plain, False) == plain
    assert collector_options.with_stacks(asked, True) == asked
    for name in ("run", "compare"):
        assert "--profile-stacks" in {option for param in getattr(command, name).params for option in param.opts}


def test_without_perf_it_is_refused_before_the_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setattr(programs, "search_path", lambda: str(tmp_path))
    with pytest.raises(MissingPart, match="perf is not installed") as caught:
        stacks.require()
    assert "apt-get install linux-perf" in caught.value.hint


def test_processors_that_nodes_share_belong_to_nobody():
    ends = {"source": "a", "target": "b"}
    assert stacks.own_cores({"a": [0], "b": [1]}, ends) == {"source": [0], "target": [1]}
    assert stacks.own_cores({"a": [0, 2], "b": [1], "c": [2]}, ends) == {"source": [0], "target": [1]}
    assert stacks.own_cores({"a": [0], "b": [1], "c": [0]}, ends) == {}


def test_a_go_program_is_known_whoever_stripped_it(tmp_path: Path):
    (tmp_path / "go").write_bytes(b"\x7fELF" + bytes(5000) + b"\xff Go buildinf:\x08\x02")
    (tmp_path / "other").write_bytes(b"\x7fELF" + bytes(5000))
    (tmp_path / "empty").touch()
    assert [stacks.is_go(tmp_path / name) for name in ("go", "other", "empty", "missing")] == [
        True,
        False,
        False,
        False,
    ]
    assert stacks.unwinding([]) == "dwarf"
    assert stacks.unwinding([os.getpid()]) == "dwarf"


def test_a_recorder_whose_parent_is_gone_does_not_start():
    """Between its birth and its being bound to us we may have died: then it finds another parent."""
    argv = stacks.bound_to_us(["echo", "started"])
    orphaned = ["1" if word == str(os.getpid()) else word for word in argv]
    assert subprocess.run(argv, capture_output=True, text=True, check=False).stdout == "started\n"
    assert subprocess.run(orphaned, capture_output=True, text=True, check=False).stdout == ""


def test_what_perf_recorded_is_folded_by_side(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    program(tmp_path, "perf", "echo recorded $3")
    program(
        tmp_path,
        "tunnelmark-flame",
        f'echo "$@" > {tmp_path}/asked; cat > {tmp_path}/read; echo \'{{"source": {{}}}}\'',
    )
    monkeypatch.setattr(programs, "search_path", lambda: f"{tmp_path}:/usr/bin:/bin")
    assert stacks.fold(tmp_path / "data", tmp_path / "p", {"source": [0, 2], "target": [1]}) == {"source": {}}
    assert (tmp_path / "read").read_text() == f"recorded {tmp_path}/data\n"
    assert (tmp_path / "asked").read_text() == f"fold --to {tmp_path}/p --side source=0,2 --side target=1\n"


def test_what_cannot_be_folded_says_why(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    program(tmp_path, "perf", "exit 0")
    program(tmp_path, "tunnelmark-flame", "echo no room >&2; exit 1")
    monkeypatch.setattr(programs, "search_path", lambda: f"{tmp_path}:/usr/bin:/bin")
    with pytest.raises(ValueError, match="no room"):
        stacks.fold(tmp_path / "data", tmp_path / "p", {})


def test_stacks_are_passed_on_for_as_long_as_further_ones_come(monkeypatch: pytest.MonkeyPatch):
    """How long perf needs for each is the machine's: there may be as long between two as for all."""
    (source, perf), (flame, target) = os.pipe(), os.pipe()
    further, waits = [b"1", b"2", b"3"], []

    def wait(reads: Sequence[int], writes: Sequence[int], _: Sequence[int], seconds: float) -> tuple[object, ...]:
        waits.append(seconds)
        if reads and further:
            os.write(perf, further.pop(0))
        elif reads:
            os.close(perf)
        return reads, writes, ()

    monkeypatch.setattr(stacks, "select", SimpleNamespace(select=wait))
    stacks._pass_on(source, target)
    assert os.read(flame, 64) == b"123"
    assert waits == [stacks._END] * 7, "for each of three to come and to be taken, and for the end"
    for each in (source, flame, target):
        os.close(each)


def test_perf_that_writes_no_further_stack_has_failed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setattr(stacks, "_END", 0.2)
    monkeypatch.setattr(programs, "search_path", lambda: f"{tmp_path}:/usr/bin:/bin")
    program(tmp_path, "tunnelmark-flame", "cat")
    program(tmp_path, "perf", "echo 1; exec sleep 60")
    with pytest.raises(TimeoutError, match="no further stack"):
        stacks.fold(tmp_path / "data", tmp_path / "p", {})
