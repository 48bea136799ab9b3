"""Reads recipes: which version of a VPN is installed, from which registry, and how long that takes.

A recipe is a file `NAME.toml` in `data/recipes/` or in the `recipes/` of a folder in TUNNELMARK_PATH. Some recipes have
a folder NAME next to the file: with a Go module and its checksums, locked Python requirements, or a script.
One kind of table says where the VPN comes from: `[[go]]`, `[[crate]]`, `[pypi]`, `[debian]`, or `[makers]` when no
registry carries it. Only `[[go]]` and `[[crate]]` may be used together, for a VPN that has programs of both kinds.
"""

from __future__ import annotations

import functools
import hashlib
import json
import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from tunnelmark import former_names
from tunnelmark.errors import UnknownName
from tunnelmark.plan.fields import DurationText, NameField, SizeText
from tunnelmark.plan.files import Files, read_text
from tunnelmark.plan.problems import Problems, parse
from tunnelmark.plan.study_schema import TomlTable
from tunnelmark.units import Duration, Size

PackageSource = Literal["go", "crate", "pypi", "debian", "makers"]

FOLDER = "recipes"
_OLD_TABLE = re.compile(f"^{re.escape(former_names.RECIPE_TABLE)}", re.MULTILINE)

_Program = Annotated[str, StringConstraints(strict=True, pattern=r"^[A-Za-z0-9][A-Za-z0-9._+-]*$")]
_Hash = Annotated[str, StringConstraints(strict=True, pattern=r"^[0-9a-f]{64}$")]
_EXACT = r"^v?[0-9]+(\.[0-9]+)*([.+-][0-9A-Za-z.+-]+)?$"


class RecipeTable(TomlTable):
    """The table `[recipe]`: what is installed, and the time and memory that the installation needs on two cores.

    Both are texts with a unit: `takes`, such as `90 s`, and `memory`, such as `1.5 GB`.
    """

    title: str = Field(description="one line of text for people", min_length=1)
    homepage: str = Field(description="an address that begins with https://", pattern=r"^https://")
    version: str = Field(default="", description="the exact version, such as '1.10.3'")
    programs: list[_Program] = Field(min_length=1, description='a list of program names such as ["nebula"]')
    takes: DurationText = Field(default=Duration(10), description="how long it takes on two cores, such as '90 s'")
    memory: SizeText = Field(default=Size(500_000_000), description="what its build needs, such as '1.5 GB'")
    ci: bool = Field(default=False, description="true where CI installs it")


class GoTable(TomlTable):
    """A table `[[go]]`: the Go package of each program. Our own Go module in the folder `module` pins the versions."""

    module: str = Field(default=".", description="a folder in the recipe's own that has go.mod and go.sum")
    programs: dict[_Program, str] = Field(min_length=1, description='programs and packages, such as {a = "host/a"}')
    ldflags: str = Field(default="", description="linker options in addition to -s -w")
    cc: bool = Field(default=False, description="true where it cannot do without a C compiler")


class CrateTable(TomlTable):
    """A table `[[crate]]`: a crate that is built with its own lock file; `sha256` is the hash of its archive."""

    name: NameField = Field(description="the crate's name")
    version: str = Field(pattern=_EXACT, description="the exact version, such as '2.3.0'")
    sha256: _Hash = Field(description="the SHA-256 of the crate's archive: 64 hexadecimal digits")
    rust: str = Field(default="", description="the first Rust that builds it, such as '1.88'")
    packages: list[NameField] = Field(
        default_factory=list, description="Debian packages that its build needs: libraries"
    )


class PypiTable(TomlTable):
    """The table `[pypi]`: wheels in a virtual environment, and a program of ours that runs on it."""

    requirements: str = Field(default="requirements.lock", description="a file in the recipe's folder, with hashes")
    scripts: dict[_Program, str] = Field(min_length=1, description='programs and scripts, such as {a = "a.py"}')


class DebianTable(TomlTable):
    """The table `[debian]`: packages of the system, in the version that it has."""

    packages: list[NameField] = Field(min_length=1, description='a list of Debian packages such as ["tinc"]')


class MakersTable(TomlTable):
    """The table `[makers]`: no registry carries the VPN; the user puts programs on PATH or names them with --bin."""

    where: str = Field(description="where its makers publish it, an address", pattern=r"^https://")


class RecipeFile(TomlTable):
    """A recipe file."""

    recipe: RecipeTable = Field(description="a table [recipe] with title, homepage and programs")
    go: list[GoTable] = Field(default_factory=list, description="tables [[go]]")
    crate: list[CrateTable] = Field(default_factory=list, description="tables [[crate]]")
    pypi: PypiTable | None = Field(default=None, description="a table [pypi]")
    debian: DebianTable | None = Field(default=None, description="a table [debian]")
    makers: MakersTable | None = Field(default=None, description="a table [makers]")


_REQUIRED = re.compile(r"^(?:require\s+|\t)(\S+) (v\S+)", re.MULTILINE)
"""A regular expression for a module in go.mod and its version."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """A checked recipe. `folder`: the folder of its further files, next to the recipe's file; it need not exist."""

    name: str
    file: RecipeFile
    folder: Path

    @property
    def about(self) -> RecipeTable:
        """The table `[recipe]` of its file."""
        return self.file.recipe

    @property
    def sources(self) -> tuple[PackageSource, ...]:
        """The kinds of registry from which it is installed: the names of its tables, such as `go`."""
        return _sources(self.file)

    @property
    def built(self) -> bool:
        """Whether it is installed into its own folder below `packages_home()`, not as a part of the system."""
        return self.sources[0] in ("go", "crate", "pypi")

    @property
    def programs(self) -> tuple[str, ...]:
        return tuple(self.about.programs)

    @property
    def packages(self) -> tuple[str, ...]:
        """The Debian packages that it installs; () if it is not a recipe of Debian packages."""
        return tuple(self.file.debian.packages) if self.file.debian else ()

    def versions(self) -> Mapping[str, str]:
        """Return the versions that the recipe's Go modules pin, by program; {} without Go modules.

        Programs of one recipe may have different versions.
        """
        found: dict[str, str] = {}
        for table in self.file.go:
            asked = dict(_REQUIRED.findall((self.folder / table.module / "go.mod").read_text(encoding="utf-8")))
            for program, package in table.programs.items():
                modules = [module for module in asked if f"{package}/".startswith(f"{module}/")]
                found |= {program: asked[max(modules, key=len)].removeprefix("v")} if modules else {}
        return found

    def digest(self) -> str:
        """Return the SHA-256 of all that decides what is installed.

        A new title or estimate of time does not change it.
        """
        beside = {"title", "homepage", "takes", "memory", "ci"}
        what = self.file.model_dump(mode="json", exclude={"recipe": beside, "crate": {"__all__": {"packages"}}})
        what["peer"] = what.pop("recipe")  # its name when what is installed here was
        found = hashlib.sha256(json.dumps([self.name, what], sort_keys=True).encode())
        for file in self.files():
            found.update(b"\0" + str(file.relative_to(self.folder)).encode() + b"\0" + file.read_bytes())
        return found.hexdigest()

    def files(self) -> list[Path]:
        """Return the files in its folder, sorted by path; [] if it has no folder."""
        inside = (file for file in self.folder.rglob("*") if file.is_file() and "__pycache__" not in file.parts)
        return sorted(inside) if self.folder.is_dir() else []


@functools.cache
def _all(files: Files) -> Mapping[str, Recipe]:
    found: dict[str, Recipe] = {}
    for folder in files.folders:
        for path in (
            *sorted(folder.glob(f"{FOLDER}/*.toml")),
            *sorted(folder.glob(f"{former_names.RECIPES_FOLDER}/*.toml")),
        ):
            found.setdefault(path.stem, load(path))
    return MappingProxyType(dict(sorted(found.items())))


def recipes(files: Files | None = None) -> Mapping[str, Recipe]:
    """Return every recipe by name, sorted; PlanError if a recipe file is wrong.

    `files`: the folders to search; None: those of `Files.standard()`.
    """
    return _all(files or Files.standard())


def recipe(name: str, files: Files | None = None) -> Recipe:
    """Return a recipe by its name; UnknownName if there is none. `files`: as in `recipes`."""
    known = recipes(files)
    if name not in known:
        raise UnknownName("recipe", name, known)
    return known[name]


def load(path: Path) -> Recipe:
    """Read and check a recipe file, and the files that must be in the folder next to it.

    PlanError if something is wrong.
    """
    text = read_text(path)
    if _OLD_TABLE.search(text):
        logging.getLogger("tunnelmark").warning("%s: the table [peer] is called [recipe] now", path)
        text = _OLD_TABLE.sub("[recipe]", text)
    file = parse(text, str(path), RecipeFile)
    made = Recipe(path.stem, file, path.parent / path.stem)
    problems = Problems(str(path))
    found = made.sources
    if not found or (len(found) > 1 and set(found) != {"go", "crate"}):
        said = " and ".join(found) or "no table"
        problems.add((), f"{said}: this does not say where it comes from", "keep one of: " + ", ".join(_SOURCES))
        problems.raise_if_any()
    _check(made, problems)
    problems.raise_if_any()
    return made


_SOURCES: tuple[PackageSource, ...] = ("crate", "go", "pypi", "debian", "makers")


def _sources(file: RecipeFile) -> tuple[PackageSource, ...]:
    return tuple(source for source in _SOURCES if getattr(file, source))


def _check(made: Recipe, problems: Problems) -> None:
    file = made.file
    if made.built and not file.recipe.version:
        problems.add(("recipe", "version"), "is missing", "what is built has an exact version")
    brought = {program for table in file.go for program in table.programs} | set(file.pypi.scripts if file.pypi else ())
    if (lost := brought - set(made.programs)) or (made.built and not file.crate and brought != set(made.programs)):
        hint = "built: " + ", ".join(sorted(brought))
        problems.add(("recipe", "programs"), f"are not what is built{': ' + ', '.join(lost) if lost else ''}", hint)
    needed = [f"{table.module}/{name}" for table in file.go for name in ("go.mod", "go.sum")]
    if file.pypi:
        needed += [file.pypi.requirements, *file.pypi.scripts.values()]
    for name in needed:
        if ".." in Path(name).parts or not (made.folder / name).is_file():
            problems.add((made.sources[0],), f"{made.name}/{name} is not there", "put it into the recipe's folder")
