"""Makes files to start from (a profile, a topology, a CI workflow), and checks the names of new things."""

from __future__ import annotations

import keyword
import re
from collections.abc import Collection
from importlib import resources
from typing import Literal

from tunnelmark.errors import UsageError
from tunnelmark.plan.fields import NAME_PATTERN

LONGEST = 40  # characters; names head the columns of tables


def scaffold(kind: Literal["profile", "topology"], name: str, path: str) -> str:
    """Return the text of a new profile or topology, which loads as it is; `path`: its file, for commands.

    UsageError if `name` cannot be used in a study file, or is too long for tables.
    """
    if not re.fullmatch(NAME_PATTERN, name):
        raise UsageError(
            f"{name!r} is not a valid name for a {kind}",
            hint="take lower-case letters, digits, dots and dashes, a letter or digit first, such as `my-dsl`",
        )
    _require_short(name)
    template = resources.files("tunnelmark.plan").joinpath(f"{kind}.toml.txt").read_text(encoding="utf-8")
    return template.replace("@NAME@", name).replace("@PATH@", path)


Forge = Literal["github", "gitlab"]
WORKFLOWS: dict[Forge, str] = {
    "github": ".github/workflows/tunnelmark-ab.yml",
    "gitlab": ".gitlab/tunnelmark-ab.yml",
}
"""The path of the workflow file: where a forge's runners look for it, or from where a user includes it."""


def workflow(forge: Forge, vpn: str, program: str) -> str:
    """Return the text of a CI workflow that compares two revisions of a VPN; `program`: the file that a build makes."""
    template = resources.files("tunnelmark.plan").joinpath(f"ab-{forge}.yml.txt").read_text(encoding="utf-8")
    return template.replace("@VPN@", vpn).replace("@PROGRAM@", program)


def module_name(what: str, name: str, taken: Collection[str]) -> str:
    """Return the name of the Python module for a new VPN or workload called `name`.

    `what`: the word for the new thing in errors, `VPN` or `workload`. `taken`: the names of the modules in its package
    that hold no VPN or workload, such as `base`.
    UsageError if `name` is taken, cannot be used in a study file or as a module's name, or is too long for tables.
    """
    module = name.replace("-", "_").replace(".", "_")
    if not re.fullmatch(NAME_PATTERN, name) or not module.isidentifier() or keyword.iskeyword(module):
        raise UsageError(
            f"{name!r} is not a valid name for a {what}",
            hint=f"take lower-case letters, digits and dashes, a letter first, such as `my-{what.lower()}`",
        )
    _require_short(name)
    if module in taken:
        raise UsageError(f"{name!r} names a part of tunnelmark itself", hint="choose another name")
    return module


def _require_short(name: str) -> None:
    if len(name) > LONGEST:
        raise UsageError(f"{name!r} has {len(name)} characters", hint=f"take at most {LONGEST}")
