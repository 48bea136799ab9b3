"""Finds study, profile and topology files by name in an ordered list of folders.

Each folder holds `studies/`, `profiles/` and `topologies/`; the first folder that has a name wins. On the command line
a file can also be named by its path. That command then uses the file name without `.toml` as the name.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from tunnelmark import former_names
from tunnelmark.errors import PlanError, UnknownName, UsageError, nearest
from tunnelmark.plan import auto
from tunnelmark.plan.auto import Fixed
from tunnelmark.plan.fields import NAME_PATTERN
from tunnelmark.plan.profiles import JOIN

FileKind = Literal["study", "profile", "topology"]

FOLDERS: Mapping[FileKind, str] = {"study": "studies", "profile": "profiles", "topology": "topologies"}

FORMER: Mapping[FileKind, Mapping[str, str]] = {
    "study": former_names.STUDIES,
    "topology": former_names.TOPOLOGIES,
}
"""Present names of tunnelmark's files by former name. A former name works, with a warning, if no file has it."""

PACKAGED = Path(__file__).resolve().parent.parent / "data"

PATH_VARIABLE = "TUNNELMARK_PATH"

SUFFIX = ".toml"


@dataclass(frozen=True, slots=True)
class Files:
    """The folders to search, in order. Files that were named by their paths (`by_path`) come before them."""

    folders: tuple[Path, ...]
    by_path: tuple[tuple[FileKind, str, Path], ...] = ()

    @classmethod
    def standard(cls, environ: Mapping[str, str] | None = None) -> Files:
        """Return tunnelmark's own folder, then those in the environment variable TUNNELMARK_PATH."""
        added = (os.environ if environ is None else environ).get(PATH_VARIABLE, "")
        return cls((PACKAGED, *(Path(folder).expanduser() for folder in added.split(os.pathsep) if folder)))

    def names(self, kind: FileKind) -> tuple[str, ...]:
        """Return the names of all files of that kind, sorted."""
        found = {file.stem for folder in self.folders for file in folder.glob(f"{FOLDERS[kind]}/*{SUFFIX}")}
        return tuple(sorted(found | {name for each, name, _ in self.by_path if each == kind}))

    def find(self, kind: FileKind, name: str) -> Path:
        """Return the path of the study, profile or topology file (`kind`) with that name.

        A file that was named by its path wins, then the first folder that has the name. Raises UnknownName, with a hint
        (see `elsewhere`), if such a file does not exist.
        """
        # Membership first: a name with a slash in it must not lead out of the folders.
        known = self.names(kind)
        if name not in known:
            unknown = UnknownName(kind, name, known)
            unknown.hint = elsewhere(kind, name, known)  # it may be a file near by
            raise unknown
        given = (path for each, other, path in self.by_path if (each, other) == (kind, name))
        candidates = (folder / FOLDERS[kind] / f"{name}{SUFFIX}" for folder in self.folders)
        return next(given, None) or next(file for file in candidates if file.is_file())

    def current(self, kind: FileKind, name: str) -> str:
        """Return the present name of a file for its former name, and warn; any other name is returned as it is."""
        now = FORMER.get(kind, {}).get(name)
        if now is None or name in self.names(kind):
            return name
        logging.getLogger("tunnelmark").warning("the %s %s is called %s now", kind, name, now)
        return now

    def with_paths(self, kind: FileKind, text: str) -> tuple[Files, str]:
        """Return the files plus those that `text` names by path, and `text` with names in place of the paths.

        `./profiles/my-dsl.toml` becomes `my-dsl`, and `gso+./profiles/my-dsl.toml` becomes `gso+my-dsl`. A former name
        becomes the present name (see `current`). PlanError if a path leads to no file, UsageError if the file's name is
        not valid, or if another file with the same name and another content is known already.
        """
        whole = kind == "study" or Path(text).is_file()  # a folder may have a + in its name
        parts = [text] if whole else text.split(JOIN)
        files, names = self, []
        for part in parts:
            if _is_path(part):
                files, part = files._with_path(kind, part)
            names.append(files.current(kind, part))
        return files, JOIN.join(names)

    def _with_path(self, kind: FileKind, text: str) -> tuple[Files, str]:
        path = Path(text).expanduser()
        if not os.path.isfile(path):
            beside = [str(file) for file in sorted(path.parent.glob(f"*{SUFFIX}"))]
            hint = nearest(str(path), beside) if beside else nearest(path.stem, self.names(kind))
            raise PlanError(text, "", "there is no such file", hint=hint)
        name = path.stem
        if path.suffix != SUFFIX or not re.fullmatch(NAME_PATTERN, name):
            raise UsageError(
                f"{text} is not a {kind} file: its name would appear in results",
                hint="rename it: lower-case letters, digits, dots and dashes, then .toml, such as my-dsl.toml",
            )
        if name in self.names(kind) and read_text(other := self.find(kind, name)) != read_text(path):
            raise UsageError(
                f"{text} is not the {kind} {name} that is known already ({other})",
                hint="results would call both by one name: rename the file",
            )
        return replace(self, by_path=(*self.by_path, (kind, name, path.absolute()))), name

    def fixed(self) -> dict[str, Fixed]:
        """Return, by profile, the rates that were fixed for `rate = "auto"`, from the first folder with a file of them.

        {} if no folder has such a file (`auto.FILE`). PlanError if it cannot be used.
        """
        for folder in self.folders:
            if (file := folder / auto.FILE).is_file():
                return auto.read(read_text(file), str(file))
        return {}

    def find_study(self, name_or_path: str) -> Path:
        """Return the path of the study file with that name (`quick`) or path (`./my.toml`).

        The path `studies/quick.toml` also leads to the study `quick` of the search folders, so commands with such a
        path work in any directory. PlanError if a path leads to no file, UnknownName if a name is unknown.
        """
        path = Path(name_or_path)
        if path.suffix != ".toml" and len(path.parts) == 1:
            return self.find("study", self.current("study", name_or_path))
        if os.path.isfile(path):  # unlike Path.is_file, False where a folder on the way may not be entered
            return path
        known = self.names("study")
        if path.parts == (FOLDERS["study"], path.name) and (name := self.current("study", path.stem)) in known:
            return self.find("study", name)
        raise PlanError(name_or_path, "", "there is no such file", hint=nearest(path.stem, known))


def elsewhere(kind: FileKind, name: str, known: Sequence[str]) -> str:
    """Return the hint for an unknown name: a file of that name near by, the nearest names, or how to name a file."""
    near = (place / f"{name}{SUFFIX}" for place in (Path(FOLDERS[kind]), Path()))
    if not _is_path(name) and (file := next(filter(Path.is_file, near), None)):
        return f"did you mean the file ./{file}? Name it by its path, or make its folder known by {PATH_VARIABLE}"
    hint = nearest(name, known)
    if hint.startswith("did you"):
        return hint
    return f"{hint}; a file of your own is named by its path (./mine{SUFFIX}), or its folder by {PATH_VARIABLE}"


def _is_path(text: str) -> bool:
    """Return whether the text must be a path, because it cannot be a name."""
    return "/" in text or text.endswith(SUFFIX)


def read_text(file: Path) -> str:
    """Return the text of a plan file; PlanError if it cannot be read."""
    try:
        return file.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise PlanError(str(file), "", f"is not UTF-8 text (byte {error.start})", hint="save it as UTF-8") from error
    except OSError as error:
        raise PlanError(
            str(file), "", f"cannot be read: {error.strerror}", hint="check the path and its permissions"
        ) from error
