"""Finds or builds programs that a user names for one arm: a file, a recipe's programs, or a revision of a source tree.

A file is copied into the cache, into a folder whose name is a hash of the file. The programs of a revision are kept
there in a folder whose name is the commit and a hash of the build's settings. So programs stay the same while a run
goes on, and a commit is built once with the same settings. A revision is checked out by `git worktree` into a temporary
folder, never into the user's tree.
"""

from __future__ import annotations

import hashlib
import json
import os
import pwd
import shutil
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tunnelmark.errors import MissingPart, UsageError, nearest
from tunnelmark.host import paths, programs
from tunnelmark.host.programs import Requirement
from tunnelmark.packages import status
from tunnelmark.packages.recipe import Recipe, recipes

GIT = "git:"
"""The prefix by which a user names a revision of a source tree: `git:v1.2`, `git:HEAD~1`."""

_RECORD = "build.json"
_END = 30  # lines of a build's output that its error shows
_KEPT = 30 * 86400.0  # seconds that a copy is kept without use
_HEX = 12


@dataclass(frozen=True, slots=True)
class SourceTree:
    """A git tree: its folder, the shell command that builds it there, and the paths of the programs that it makes."""

    folder: Path
    build: str
    programs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class OwnPrograms:
    """Paths of programs by name.

    `label` says what they are: `wireguard-go-2022 (...)`, `git:main (commit 1a2b3c4d5e6f)`.
    """

    label: str
    programs: Mapping[str, str]


def own_programs(
    named: Sequence[str], part: Requirement, source: SourceTree | None = None, *, make: bool = True
) -> OwnPrograms:
    """Return the programs that `--old` or `--new` names for a VPN (`part`), ready to be run.

    `named`: one path, recipe or `git:REV`, or several NAME=PATH. `source`: the tree that has the revision REV; None: a
    `git:REV` is refused (UsageError). Without `make` nothing is built or copied: what is named is only checked, and the
    result has a label and no programs. UsageError or MissingPart if what is named cannot be used.
    """
    if len(named) == 1 and named[0].startswith(GIT):
        return _of_revision(named[0].removeprefix(GIT), part, source, make=make)
    if len(named) == 1 and named[0] in recipes() and not Path(named[0]).is_file():
        return _of_recipe(recipes()[named[0]], part, make=make)
    found = dict(_named(text, part) for text in named)
    label = ", ".join(named)
    return OwnPrograms(label, {name: str(keep(path, name)) for name, path in found.items()} if make else {})


def keep(program: Path, name: str) -> Path:
    """Copy a program into the cache, under its hash and that name, and return the path of the copy.

    Copies that were not used for a month are removed.
    """
    found = programs.digest(program)
    folder = paths.cache("builds", found[: 2 * _HEX])
    target = folder / name
    if not target.exists():
        folder.mkdir(parents=True, exist_ok=True)
        copied = folder / f".{name}.{os.getpid()}"
        shutil.copyfile(program, copied)
        copied.chmod(0o755)
        copied.replace(target)
    os.utime(folder)
    _sweep(folder.parent)
    return target


def _sweep(base: Path) -> None:
    for folder in base.iterdir():
        with suppress(OSError):
            if time.time() - folder.stat().st_mtime > _KEPT:
                shutil.rmtree(folder)


def _named(text: str, part: Requirement) -> tuple[str, Path]:
    """Return a program's name and file from PATH or NAME=PATH; UsageError if they cannot be used."""
    name, equals, rest = text.partition("=")
    path = Path(text if not equals or Path(text).is_file() else rest).expanduser().absolute()
    if not equals or Path(text).is_file():
        name = _called(path.name, part, text)
    else:
        _known(name, part)
    if not path.is_file():
        known = [each for each in recipes() if set(recipes()[each].programs) & set(part.programs)]
        raise UsageError(
            f"{text} is neither a file nor a recipe", hint=f"name a program's path, git:REV, or {' or '.join(known)}"
        )
    if not os.access(path, os.X_OK):
        raise UsageError(f"{path} cannot be executed", hint=f"chmod +x {path}")
    return name, path


def _known(name: str, part: Requirement) -> None:
    """Raise UsageError if a VPN has no program of that name."""
    if name not in part.programs:
        raise UsageError(f"{part.name} has no program called {name!r}", hint=nearest(name, part.programs))


def _called(file: str, part: Requirement, text: str) -> str:
    """Return which of a VPN's programs a file is: that of its name, or the only one that its recipe brings.

    UsageError if its recipe brings several.
    """
    if file in part.programs:
        return file
    recipe = status.recipe_for(part)
    own = [name for name in part.programs if recipe is None or name in recipe.programs] or list(part.programs)
    if recipe is not None and len(own) != 1:
        raise UsageError(
            f"which program of {part.name} is {text}? It has {', '.join(own)}", hint=f"say {own[0]}={text}, and so on"
        )
    return own[0]


def _of_recipe(recipe: Recipe, part: Requirement, *, make: bool) -> OwnPrograms:
    shared = [name for name in recipe.programs if name in part.programs]
    if not shared:
        raise UsageError(
            f"the recipe {recipe.name} brings no program of {part.name}", hint=f"which has {', '.join(part.programs)}"
        )
    standing = status.standing(recipe)
    if standing.state != "ready":
        raise MissingPart(
            f"the recipe {recipe.name} is not installed ({standing.note})",
            hint=f"tunnelmark packages install {recipe.name}",
        )
    found = status.where(recipe)
    label = f"{recipe.name} ({standing.version})" if standing.version else recipe.name
    if not make:
        return OwnPrograms(label, {})
    inside = programs.recipe_folder(recipe.name)  # its programs stay where they are: they may need what is next to them
    kept = {name: found[name] if recipe.built else keep(found[name], name) for name in shared}
    if recipe.built and (strange := [path for path in kept.values() if not path.is_relative_to(inside)]):
        raise MissingPart(
            f"{strange[0]} is not what {recipe.name} has installed", hint=f"tunnelmark packages install {recipe.name}"
        )
    return OwnPrograms(label, {name: str(path) for name, path in kept.items()})


def _of_revision(revision: str, part: Requirement, source: SourceTree | None, *, make: bool) -> OwnPrograms:
    if source is None:
        raise UsageError(
            f"git:{revision} has no source tree", hint="add --source DIR --build COMMAND --program PATH_IN_TREE"
        )
    commit = _git(source.folder, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
    if commit is None:
        raise UsageError(
            f"{source.folder} has no revision {revision!r}", hint=f"see `git -C {source.folder} log --oneline --all`"
        )
    label = f"{GIT}{revision} (commit {commit[:_HEX]})"
    wanted = {}
    for text in source.programs:
        name, equals, inside = text.partition("=")
        if equals:
            _known(name, part)
        wanted[name if equals else _called(Path(text).name, part, text)] = inside if equals else text
    if not make:
        return OwnPrograms(label, {})
    asked = json.dumps([commit, source.build, sorted(wanted.items()), _prefix(source.folder)])
    folder = paths.cache("builds", f"{commit[:_HEX]}-{hashlib.sha256(asked.encode()).hexdigest()[:_HEX]}")
    if not _whole(folder):
        _build(source, commit, wanted, folder)
    os.utime(folder)
    return OwnPrograms(label, {name: str(folder / name) for name in wanted})


def _whole(folder: Path) -> bool:
    """Return whether a build is in the cache, and its programs still have the hashes that were recorded for them."""
    try:
        record = json.loads((folder / _RECORD).read_text())["programs"]
        return all(programs.digest(folder / name) == known for name, known in record.items())
    except (OSError, ValueError, KeyError):
        return False


def _build(source: SourceTree, commit: str, wanted: Mapping[str, str], folder: Path) -> None:
    caller = _caller()
    temporary = Path(tempfile.mkdtemp(prefix="tunnelmark-build-"))
    tree = temporary / "tree"
    try:
        if caller:
            os.chown(temporary, caller["user"], caller["group"])
        if _git(source.folder, "worktree", "add", "--detach", "--force", str(tree), commit) is None:
            raise UsageError(
                f"git cannot check {commit[:_HEX]} of {source.folder} out into {tree}",
                hint="try `git worktree add` by hand; a shallow clone may lack it (fetch-depth: 0)",
            )
        here = tree / _prefix(source.folder)
        done = subprocess.run(
            ["sh", "-c", source.build], cwd=here, stdin=subprocess.DEVNULL, capture_output=True, check=False, **caller
        )
        said = (done.stdout + done.stderr).decode(errors="replace").strip().splitlines()[-_END:]
        end = "\n".join(said)
        if done.returncode:
            raise UsageError(
                f"the build of {commit[:_HEX]} ended with {done.returncode}:\n{end}", hint=f"it ran: {source.build}"
            )
        for name, inside in wanted.items():
            if not (here / inside).is_file():
                raise UsageError(
                    f"the build of {commit[:_HEX]} made no {inside}:\n{end}",
                    hint=f"--program is the path of {name} in the tree, after the build",
                )
        _store({name: here / inside for name, inside in wanted.items()}, folder, source, commit)
    finally:
        _git(source.folder, "worktree", "remove", "--force", str(tree))
        shutil.rmtree(temporary, ignore_errors=True)


def _store(made: Mapping[str, Path], folder: Path, source: SourceTree, commit: str) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name, path in made.items():
        shutil.copyfile(path, folder / name)
        (folder / name).chmod(0o755)
    hashes = {name: programs.digest(folder / name) for name in made}
    record = {"commit": commit, "build": source.build, "programs": hashes}
    (folder / _RECORD).write_text(json.dumps(record, indent=2) + "\n")  # last: without it the folder is not whole


def _prefix(folder: Path) -> str:
    """Return the folder's path within its git tree; "" at the top. UsageError if it is in none."""
    found = _git(folder, "rev-parse", "--show-prefix")
    if found is None:
        raise UsageError(f"{folder} is not in a git tree", hint="--source is the folder in which --build runs")
    return found


def _git(folder: Path, *arguments: str) -> str | None:
    """Return what git prints, without blank space at both ends; None if it fails. MissingPart without git."""
    if shutil.which("git") is None:
        raise MissingPart("the program git is not installed", hint="apt-get install git")
    done = subprocess.run(
        ["git", "-C", str(folder), *arguments], stdin=subprocess.DEVNULL, capture_output=True, check=False, **_caller()
    )
    return done.stdout.decode(errors="replace").strip() if done.returncode == 0 else None


def _caller() -> dict[str, Any]:
    """Return the arguments with which subprocess runs a program as the user who called sudo; {} without sudo.

    That user owns the tree, and has the tools to build it.
    """
    known = os.environ.get("SUDO_UID", "")
    if os.geteuid() != 0 or not known.isdigit() or known == "0":
        return {}
    user = pwd.getpwuid(int(known))
    environment = os.environ | {"HOME": user.pw_dir, "USER": user.pw_name, "LOGNAME": user.pw_name}
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": [], "env": environment}
