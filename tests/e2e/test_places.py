"""A clone works wherever it stands: below the folders of which every node has its own, in a private home, with spaces."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from support import clones
from support.command import journal
from tunnelmark.host.paths import data
from tunnelmark.host.programs import find

pytestmark = pytest.mark.root

NOBODY = 65534


@pytest.fixture
def folder(request: pytest.FixtureRequest) -> Iterator[Path]:
    """A new folder below the one named, which goes with the test."""
    with new_folder(request.param) as made:
        yield made


@pytest.fixture(scope="module")
def clone() -> Iterator[Path]:
    """A clone at a place that has it all: below /tmp, of which every node has its own, in a private home, in a path with spaces."""
    with new_folder("/tmp") as made:
        home = made / "a home with spaces"
        home.mkdir()
        yield of_nobody(clones.clone(home))


@contextmanager
def new_folder(below: str) -> Iterator[Path]:
    """A new folder for the length of the block."""
    with tempfile.TemporaryDirectory(prefix="tunnelmark-place-", dir=below) as made:
        yield Path(made)


def of_nobody(clone: Path) -> Path:
    """A clone whose folder becomes the private home of the user `nobody`."""
    home = clone.parent
    home.chmod(0o700)
    for path in (home, *home.rglob("*")):
        os.chown(path, NOBODY, NOBODY, follow_symlinks=False)
    return clone


def as_if_by_sudo(home: Path) -> dict[str, str]:
    """The environment that sudo gives a command of the user `nobody`, whose home is that folder."""
    return {
        "SUDO_USER": "nobody",
        "SUDO_UID": str(NOBODY),
        "SUDO_GID": str(NOBODY),
        "SUDO_COMMAND": "x",
        "HOME": str(home),
    }


def demonstrate(clone: Path, env: dict[str, str], *, measured: bool = False) -> None:
    """The demo's study, shortened, and an emulated link, in the clone; one VPN's daemon is a program of the clone itself."""
    own = clone / "own programs"
    own.mkdir()
    shutil.copy2(find("tincd"), own)
    done = clones.run(
        clone,
        "run",
        clones.study(clone, measured=measured),
        "--bin",
        f"tincd={own / 'tincd'}",
        "--out",
        "results",
        env=env,
    )
    assert done.returncode in (0, 1), done.stdout + done.stderr  # 1: a gate may fail on a busy machine
    assert (clone / "results" / "report.html").is_file(), done.stdout + done.stderr
    trials = journal(clone / "results")
    assert {(trial["arm"], trial["workload"]) for trial in trials} == {
        (arm, workload) for arm in ("direct", "direct-again", "tinc") for workload in ("ping", "tcp", "udp")
    }
    assert not [trial for trial in trials if trial["outcome"] == "failed"], trials  # void: the machine stood still
    environment = json.loads((clone / "results" / "environment.json").read_text())
    assert str(clone) in json.dumps(environment["vpns"]["tinc"])
    link = clones.run(clone, "check-link", "edge-loss-1+fast-ethernet", "--probes", "200", "--json", env=env)
    assert link.returncode in (0, 1), link.stdout + link.stderr
    assert json.loads(link.stdout)["lines"]


def test_a_clone_in_a_private_home_with_spaces_below_a_folder_that_nodes_have_of_their_own(clone: Path) -> None:
    """Through sudo, as another user's; as root's own it runs in the other tests here."""
    demonstrate(clone, as_if_by_sudo(clone.parent), measured=True)


@pytest.mark.proof("a clone may lie below any folder that nodes have of their own")
@pytest.mark.parametrize("folder", ["/run"], indirect=True)
def test_a_clone_below_another_folder_that_nodes_have_of_their_own(folder: Path) -> None:
    demonstrate(clones.clone(folder), {"HOME": str(folder)})


@pytest.mark.proof("a clone may lie in another user's private home, below a folder that nodes share")
@pytest.mark.parametrize("folder", ["/var/tmp"], indirect=True)
def test_a_clone_in_another_user_s_private_home_through_sudo(folder: Path) -> None:
    demonstrate(of_nobody(clones.clone(folder)), as_if_by_sudo(folder), measured=True)


def test_what_a_node_forgets_or_writes_is_not_the_clone_s(clone: Path) -> None:
    """Nodes see the clone, can run it, cannot change it, and forgetting what they wrote spares it."""
    before = {*clone.iterdir()}
    folder = clone.parents[1]
    up = clones.run(clone, "lab", "up", "pair", "--name", "places-lab")
    assert up.returncode == 0, up.stderr
    try:
        inside = ["lab", "exec", "--name", "places-lab", "a", "--"]
        seen = clones.run(
            clone, *inside, str(clone / ".venv/bin/python"), "-c", "import tunnelmark; print(tunnelmark.__file__)"
        )
        assert Path(seen.stdout.strip()).is_relative_to(clone), seen.stderr
        removed = clones.run(clone, *inside, "rm", "-rf", str(clone / "src"))
        assert removed.returncode != 0 and "Read-only" in removed.stderr
        there = set(clones.run(clone, *inside, "ls", "/tmp").stdout.split())
        # What these tests run from may be below /tmp, too, and the clone's programs are links to it.
        own = {place.parts[2] for place in (clones.ROOT, data()) if place.is_relative_to("/tmp")}
        assert {folder.name} <= there <= {folder.name} | own
        assert {*clone.iterdir()} == before
    finally:
        assert clones.run(clone, "lab", "down", "--name", "places-lab").returncode == 0
    assert (
        subprocess.run(
            ["git", "-C", clone, "-c", "safe.directory=*", "status"], check=False, capture_output=True
        ).returncode
        == 0
    )
