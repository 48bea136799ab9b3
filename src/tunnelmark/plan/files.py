"""Where study, profile and topology files are found: an ordered list of folders, and a search by name.

Each folder holds `studies/`, `profiles/` and `topologies/`; the first folder that has a name wins.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tunnelmark.errors import PlanError, UnknownName, nearest
from tunnelmark.plan import auto
from tunnelmark.plan.auto import Fixed

Kind = Literal["study", "profile", "topology"]

FOLDERS: Mapping[Kind, str] = {"study": "studies", "profile": "profiles", "topology": "topologies"}

PACKAGED = Path(__file__).resolve().parent.parent / "data"

PATH_VARIABLE = "TUNNELMARK_PATH"


@dataclass(frozen=True, slots=True)
class Files:
    """The folders to search, in order."""

    folders: tuple[Path, ...]

    @classmethod
    def standard(cls, environ: Mapping[str, str] | None = None) -> Files:
        """What tunnelmark brings, then the folders of the environment variable TUNNELMARK_PATH."""
        added = (os.environ if environ is None else environ).get(PATH_VARIABLE, "")
        return cls((PACKAGED, *(Path(folder).expanduser() for folder in added.split(os.pathsep) if folder)))

    def names(self, kind: Kind) -> tuple[str, ...]:
        """The names of that kind, sorted."""
        return tuple(sorted({file.stem for folder in self.folders for file in folder.glob(f"{FOLDERS[kind]}/*.toml")}))

    def find(self, kind: Kind, name: str) -> Path:
        """The file of that name; UnknownName with the nearest names if no folder has it."""
        # Membership first: a name with a slash in it must not lead out of the folders.
        known = self.names(kind)
        if name not in known:
            raise UnknownName(kind, name, known)
        candidates = (folder / FOLDERS[kind] / f"{name}.toml" for folder in self.folders)
        return next(file for file in candidates if file.is_file())

    def fixed(self) -> dict[str, Fixed]:
        """Which rate a profile's `auto` stands for, by profile: what the first folder says that says so."""
        for folder in self.folders:
            if (file := folder / auto.FILE).is_file():
                return auto.read(read_text(file), str(file))
        return {}

    def find_study(self, name_or_path: str) -> Path:
        """The study file behind a name (`quick`) or a path (`./my.toml`).

        `studies/quick.toml` works from any directory when `quick` is in the search folders, so that
        the line in the README does too. PlanError if a path leads to no file, UnknownName if a name
        is unknown.
        """
        path = Path(name_or_path)
        if path.suffix != ".toml" and len(path.parts) == 1:
            return self.find("study", name_or_path)
        if os.path.isfile(path):  # unlike Path.is_file, False where a folder on the way may not be entered
            return path
        known = self.names("study")
        if path.parts == (FOLDERS["study"], path.name) and path.stem in known:
            return self.find("study", path.stem)
        raise PlanError(name_or_path, "", "there is no such file", hint=nearest(path.stem, known))


def read_text(file: Path) -> str:
    """The text of a plan file; PlanError if it cannot be read."""
    try:
        return file.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise PlanError(str(file), "", f"is not UTF-8 text (byte {error.start})", hint="save it as UTF-8") from error
    except OSError as error:
        raise PlanError(
            str(file), "", f"cannot be read: {error.strerror}", hint="check the path and its permissions"
        ) from error
