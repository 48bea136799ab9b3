"""`lab up --backend ssh` and the commands that follow it, as a user runs them: a real relay and real agents, without namespaces."""

from __future__ import annotations

import json
import os
import select
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from support import plain_hosts
from support.command import command, environment, finished

# Every process of ours keeps its states in a folder of the test, whoever runs it.
_PLACES = "from pathlib import Path\nfrom tunnelmark.cli import lab_states\nlab_states.STATES = Path({!r})\n"


@dataclass(frozen=True, slots=True)
class Place:
    """Where a test's labs have their states, and its inventory of two hosts."""

    folder: Path
    states: Path
    hosts: Path

    def run(self, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        """A command `tunnelmark lab`, to its end."""
        ours = environment() | {"PATH": self.path, "XDG_RUNTIME_DIR": str(self.states.parent)}
        ours["PYTHONPATH"] = os.pathsep.join([str(self.folder / "site"), ours["PYTHONPATH"]])
        return finished(command("lab", *arguments), ours, within=120)

    @property
    def path(self) -> str:
        return os.pathsep.join([str(self.folder / "bin"), os.environ["PATH"]])


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    plain_hosts.ssh_first(tmp_path)
    (tmp_path / "site").mkdir()
    made = Place(tmp_path, tmp_path / "tunnelmark", plain_hosts.inventory(tmp_path, 2))
    (tmp_path / "site" / "sitecustomize.py").write_text(_PLACES.format(str(made.states)))
    yield made
    made.run("down")


def up(place: Place) -> None:
    done = place.run("up", "--backend", "ssh", "--inventory", place.hosts)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "lab is up: pair, gigabit"
    assert [line.split()[0] + " " + line.split("  on ")[1] for line in lines[1:]] == ["a h1", "b h2", "middle h1"]


def test_a_lab_over_hosts_is_used_as_one_of_this_machine(place: Place) -> None:
    up(place)
    done = place.run("exec", "b", "--", "sh", "-c", "echo $0 -x; echo wrong >&2; exit 7", "word")
    assert (done.returncode, done.stdout, done.stderr) == (7, "word -x\n", "wrong\n")
    assert place.run("exec", "middle", "true").returncode == 0
    assert "did you mean" in (unknown := place.run("exec", "bb", "true")).stderr and unknown.returncode == 2
    assert place.run("list").stdout.startswith("lab is up: pair, gigabit\n  a ")
    (state,) = json.loads(place.run("list", "--json").stdout)
    assert state["nodes"]["b"] == {"host": "h2", "underlay": state["nodes"]["b"]["underlay"], "overlay": None}
    assert "node a has no daemon: the lab has no VPN" in place.run("logs", "a").stderr
    again = place.run("up", "--backend", "ssh", "--inventory", place.hosts)
    assert again.returncode == 2 and "is up already" in again.stderr
    down = place.run("down")
    assert down.returncode == 0 and down.stdout.startswith("lab is gone, in ")
    assert list(place.states.iterdir()) == []
    assert "no lab called 'lab' is up" in place.run("exec", "b", "true").stderr


def test_why_a_lab_is_gone_is_said_by_the_commands_that_come_after(place: Place) -> None:
    up(place)
    (state,) = json.loads(place.run("list", "--json").stdout)
    relay = place.run("exec", "b", "--", "sh", "-c", "ps -o ppid= -p $PPID").stdout
    os.kill(int(relay), 9)
    with open(os.pidfd_open(state["pid"]), "rb") as holder:
        assert select.select([holder], [], [], 60)[0], "it ends by itself"
    why = "the lab 'lab' is gone: the connection to host h2 ended"
    said = place.run("list")
    assert why in said.stderr and said.stdout == "" and said.returncode == 0
    for words in (("exec", "a", "true"), ("shell", "a"), ("logs", "a")):
        done = place.run(*words)
        assert done.returncode == 2 and why in done.stderr and "`tunnelmark lab up`" in done.stderr, words
    again = place.run("up", "--backend", "ssh", "--inventory", place.hosts)
    assert again.returncode == 0 and why in again.stderr
    assert why not in place.run("list").stderr
    assert place.run("down").returncode == 0
    assert list(place.states.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "said", "hint"),
    [
        (["--backend", "ssh"], "--backend ssh needs an inventory of its hosts", "--inventory FILE"),
        (["--inventory", "HOSTS"], "--inventory needs --backend ssh", "--backend ssh"),
        (
            ["lan-3", "--backend", "ssh", "--inventory", "HOSTS"],
            "3 nodes, and the hosts of the inventory",
            "more hosts",
        ),
        (["--backend", "ssh", "--inventory", "HOSTS", "--bin", "tincd=/bin/sh"], "--bin is for a lab on", "install"),
        (
            ["--backend", "ssh", "--inventory", "HOSTS", "--no-wait"],
            "--no-wait is for a lab on this",
            "wait for its end",
        ),
        (
            ["--backend", "ssh", "--inventory", "HOSTS", "--let-cores-sleep"],
            "--let-cores-sleep is for a",
            "leave it out",
        ),
        (["--backend", "vm"], "'vm' is not one of 'netns', 'ssh'", "--help"),
    ],
)
def test_what_cannot_be_is_said_before_a_host_is_reached(
    place: Place, arguments: list[str], said: str, hint: str
) -> None:
    (place.folder / "bin" / "ssh").write_text(f"#!/bin/sh\n: >{place.folder}/reached\n")
    done = place.run("up", *(str(place.hosts) if word == "HOSTS" else word for word in arguments))
    assert done.returncode == 2
    assert said in done.stderr and hint in done.stderr.partition("hint: ")[2], done.stderr
    assert not (place.folder / "reached").exists()


def test_a_host_that_cannot_be_reached_is_an_error_and_leaves_nothing(place: Place) -> None:
    (place.folder / "bin" / "ssh").write_text("#!/bin/sh\necho 'ssh: no route' >&2\nexit 255\n")
    done = place.run("up", "--backend", "ssh", "--inventory", place.hosts)
    assert done.returncode == 2 and "host h1: ssh: no route" in done.stderr and "try: ssh root@h1" in done.stderr
    assert list(place.states.iterdir()) == []
