"""Programs that a user brings: a file, a recipe's, or a revision that is built elsewhere; what is refused says what to do."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest

from tunnelmark.errors import MissingPart, UsageError
from tunnelmark.host.programs import PACKAGES_VARIABLE, Requirement
from tunnelmark.packages import own_builds
from tunnelmark.packages.own_builds import SourceTree, own_programs

ONE = Requirement("wireguard-go", ("wireguard-go", "wg", "ip"), ("wireguard-go",))
ANCHOR = Requirement("anchor", ("tunnelmark-anchor", "ip"), ("iproute2",))
SEVERAL = Requirement("tailscale", ("tailscaled", "tailscale", "headscale"), (), recipe="tailscale")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv(PACKAGES_VARIABLE, str(tmp_path / "packages"))
    monkeypatch.delenv("SUDO_UID", raising=False)
    return tmp_path / "cache" / "tunnelmark" / "builds"


@pytest.fixture(autouse=True)
def plain_git(monkeypatch: pytest.MonkeyPatch) -> None:
    """No hooks, templates or ignored files of who runs the tests."""
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")


def script(file: Path, text: str = "echo 1") -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"#!/bin/sh\n{text}\n")
    file.chmod(0o755)
    return file


def git(folder: Path, *arguments: str) -> str:
    named = ("-c", "user.name=somebody", "-c", "user.email=somebody@example.org", "-c", "commit.gpgsign=false")
    done = subprocess.run(["git", "-C", folder, *named, *arguments], check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture
def tree(tmp_path: Path) -> SourceTree:
    """A tree of two commits, whose build copies a file; what is in it and not committed does not count."""
    folder = tmp_path / "tree"
    folder.mkdir()
    git(folder, "init", "--quiet", "--initial-branch=main")
    for number in ("1", "2"):
        script(folder / "source.sh", f"echo {number}")
        git(folder, "add", ".")
        git(folder, "commit", "--quiet", "--message", number)
    script(folder / "source.sh", "echo not committed")
    command = 'echo built >> "$BUILDS"; mkdir -p out && cp source.sh out/wireguard-go'
    return SourceTree(folder, command, ("out/wireguard-go",))


def test_a_file_is_copied_so_that_it_stays_what_it_was(tmp_path: Path, cache: Path):
    mine = script(tmp_path / "mine" / "wireguard-go-fast", "echo old")
    found = own_programs([str(mine)], ONE)
    kept = Path(found.programs["wireguard-go"])
    assert kept.is_relative_to(cache) and kept.name == "wireguard-go" and os.access(kept, os.X_OK)
    script(mine, "echo new")
    assert "echo old" in kept.read_text()
    assert found.label == str(mine)


def test_a_file_of_a_vpn_without_a_recipe_is_its_first_program(tmp_path: Path):
    assert [*own_programs([str(script(tmp_path / "patched"))], ANCHOR).programs] == ["tunnelmark-anchor"]


def test_where_a_vpn_has_several_programs_each_is_named(tmp_path: Path):
    mine = script(tmp_path / "mine")
    with pytest.raises(UsageError, match="which program of tailscale"):
        own_programs([str(mine)], SEVERAL)
    found = own_programs([f"tailscaled={mine}", f"tailscale={mine}"], SEVERAL)
    assert [*found.programs] == ["tailscaled", "tailscale"]
    assert [*own_programs([str(script(tmp_path / "headscale"))], SEVERAL).programs] == ["headscale"]


@pytest.mark.parametrize(
    ("named", "said", "hint"),
    [
        ("nowhere", "neither a file nor a recipe", "wireguard-go-2022"),
        ("wgg=/bin/sh", "no program called 'wgg'", "wg"),
        ("nebula", "brings no program of wireguard-go", "wireguard-go"),
        ("git:main", "has no source tree", "--source"),
    ],
)
def test_what_cannot_be_used_says_what_would(named: str, said: str, hint: str):
    with pytest.raises(UsageError, match=said) as refused:
        own_programs([named], ONE)
    assert hint in refused.value.hint


def test_a_file_that_cannot_be_executed_is_refused(tmp_path: Path):
    plain = script(tmp_path / "wireguard-go")
    plain.chmod(0o644)
    with pytest.raises(UsageError, match="cannot be executed"):
        own_programs([str(plain)], ONE)


def test_a_recipe_must_be_installed():
    with pytest.raises(MissingPart) as refused:
        own_programs(["wireguard-go-2022"], ONE)
    assert refused.value.hint == "tunnelmark packages install wireguard-go-2022"


def test_a_revision_is_built_outside_of_the_tree_and_once(
    tree: SourceTree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("BUILDS", str(tmp_path / "builds"))
    for _ in range(2):
        old, new = (own_programs([f"git:{revision}"], ONE, tree) for revision in ("HEAD~1", "main"))
    texts = [Path(each.programs["wireguard-go"]).read_text().splitlines()[-1] for each in (old, new)]
    assert texts == ["echo 1", "echo 2"]
    assert old.label == f"git:HEAD~1 (commit {git(tree.folder, 'rev-parse', 'HEAD~1')[:12]})"
    assert (tmp_path / "builds").read_text().count("built") == 2
    assert git(tree.folder, "worktree", "list").count("\n") == 0
    assert sorted(path.name for path in tree.folder.iterdir()) == [".git", "source.sh"]
    assert "not committed" in (tree.folder / "source.sh").read_text()


def test_a_build_that_was_tampered_with_is_made_again(
    tree: SourceTree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("BUILDS", str(tmp_path / "builds"))
    program = Path(own_programs(["git:main"], ONE, tree).programs["wireguard-go"])
    program.write_text("other")
    own_programs(["git:main"], ONE, tree)
    assert "echo 2" in program.read_text()


@pytest.mark.parametrize(
    ("build", "program", "said"),
    [
        ("echo no such compiler >&2; exit 7", "x", "ended with 7:\nno such compiler"),
        ("true", "out/wireguard-go", "made no out/wireguard-go"),
    ],
)
def test_a_build_that_fails_shows_the_end_of_what_it_said(
    tree: SourceTree, build: str, program: str, said: str, cache: Path
):
    with pytest.raises(UsageError, match=said):
        own_programs(["git:main"], ONE, SourceTree(tree.folder, build, (f"wireguard-go={program}",)))
    assert git(tree.folder, "worktree", "list").count("\n") == 0
    assert not cache.exists() or not list(cache.iterdir())


def test_a_revision_that_is_not_there_is_refused(tree: SourceTree, tmp_path: Path):
    with pytest.raises(UsageError, match="no revision 'mian'"):
        own_programs(["git:mian"], ONE, tree)
    with pytest.raises(UsageError, match="no revision"):
        own_programs(["git:main"], ONE, SourceTree(tmp_path, "true", ("x",)))


def test_nothing_is_built_or_copied_for_a_dry_run(tree: SourceTree, tmp_path: Path, cache: Path):
    assert own_programs(["git:main"], ONE, tree, make=False).programs == {}
    own_programs([str(script(tmp_path / "mine"))], ONE, make=False)
    assert not cache.exists()


def test_copies_that_nothing_used_for_a_month_are_removed(tmp_path: Path):
    first = own_builds.keep(script(tmp_path / "a", "echo a"), "wireguard-go")
    long_ago = time.time() - 40 * 86400
    os.utime(first.parent, (long_ago, long_ago))
    own_builds.keep(script(tmp_path / "b", "echo b"), "wireguard-go")
    assert not first.exists()
