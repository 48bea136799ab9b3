"""The state of recipes on this machine (ready, installable, missing, and why), and which recipe brings what an arm needs."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tunnelmark.errors import MissingPart
from tunnelmark.host import programs
from tunnelmark.host.programs import Requirement
from tunnelmark.packages import debian, installed, toolchains
from tunnelmark.packages.recipe import Recipe, recipes
from tunnelmark.units import clock

PackageState = Literal["ready", "installable", "missing"]


@dataclass(frozen=True, slots=True)
class RecipeStatus:
    """A recipe on this machine: ready, installable (it can be built or installed here), or missing (the user must bring it).

    `version`: from its record or from Debian; "" if neither has it. `note`: why it is not ready, or what is unusual.
    """

    state: PackageState
    version: str = ""
    note: str = ""


def standing(recipe: Recipe) -> RecipeStatus:
    """Return a recipe's status: ready if its programs are in its folder, where `--bin` names them, or, if Debian or the
    makers have them, on PATH.
    """
    folder = programs.recipe_folder(recipe.name)
    if recipe.built and not (differs := installed.changed(recipe, folder)):
        return RecipeStatus("ready", recipe.about.version)
    if (named := os.environ.get(programs.NAMED_VARIABLE)) and _found(recipe, named):
        return RecipeStatus("ready", "", "named by --bin")
    if recipe.built and _found(recipe, str(folder / "bin")):
        return RecipeStatus("ready", "", f"not as its recipe has it: {differs}")
    if not recipe.built and _found(recipe, programs.path_of(recipe.name)):
        known = debian.versions(recipe.packages) if recipe.packages else {}
        return RecipeStatus("ready", known.get(recipe.packages[0], "") if recipe.packages else "")
    why, hint = toolchains.obstacle(recipe)
    if why:
        return RecipeStatus("missing", "", hint if recipe.file.makers else f"it {why}: {hint}")
    return RecipeStatus("installable", "", f"about {clock(float(recipe.about.takes))}")


def to_do(recipe: Recipe) -> bool:
    """Return whether `install` has anything to do for a recipe: it is not installed by us, or the recipe has changed."""
    return bool(installed.changed(recipe, programs.recipe_folder(recipe.name)))


def recipe_for(part: Requirement) -> Recipe | None:
    """Return the recipe that the requirement names; None if no such recipe exists.

    If the requirement names no recipe, the first recipe is returned that installs at least one of the requirement's
    Debian packages and at least one of its programs; None if no recipe does.
    """
    known = recipes()
    if part.recipe:
        return known.get(part.recipe)
    return next(
        (
            one
            for one in known.values()
            if set(one.packages) & set(part.packages) and set(one.programs) & set(part.programs)
        ),
        None,
    )


def missing(part: Requirement) -> MissingPart | None:
    """Return the error that says what of a part is not installed, with a hint how to get it; None if all is there."""
    try:
        programs.require(part)
    except MissingPart as found:
        return MissingPart(found.message, hint=from_makers(part) or found.hint)
    return None


def from_makers(part: Requirement) -> str:
    """Return how to get a part whose programs are in no registry; "" for other parts."""
    recipe = recipe_for(part)
    if recipe is None or recipe.file.makers is None:
        return ""
    packages = f", and apt-get install {' '.join(part.packages)}" if part.packages else ""
    return f"{toolchains.obstacle(recipe)[1]}; put it on PATH, or use --bin NAME=PATH{packages}"


def absent(part: Requirement, recipe: Recipe, missing: MissingPart) -> str:
    """Return in words why a part with a recipe is not installed, and how to install it.

    `missing`: the error for the part. Its message and hint are used if the recipe's own programs are ready, so that
    something else is missing.
    """
    found = standing(recipe)
    if found.state == "ready":  # its own programs are here, and something else that it needs is not
        return f"{part.name}: {missing.message}; {missing.hint}"
    if found.state == "missing":
        return f"{part.name}: not installed here: {found.note}"
    return f"{part.name}: not installed here: it takes {found.note}; tunnelmark packages install {recipe.name}"


def _found(recipe: Recipe, path: str) -> bool:
    return all(shutil.which(program, path=path) for program in recipe.programs)


def where(recipe: Recipe) -> dict[str, Path]:
    """Return the paths of a recipe's programs that are installed, by name."""
    found = {program: shutil.which(program, path=programs.path_of(recipe.name)) for program in recipe.programs}
    return {program: Path(path) for program, path in found.items() if path}
