"""Options to measure only a part of a study: some of its arms, profiles, topologies and workloads."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

import click
from click.shell_completion import CompletionItem

from tunnelmark.cli.param_types import Name
from tunnelmark.plan.design import AXES, Names

_HELP = {
    "arms": "Measure only that arm of the study and what it is compared with",
    "profiles": "Measure only over that profile of the study",
    "topologies": "Measure only on that topology of the study",
    "workloads": "Measure only that workload, by its name in the study",
}


class _NameInStudy(Name):
    """The name of an arm, profile, topology or workload; the shell completes those of the study on the command line."""

    def __init__(self, axis: str) -> None:
        super().__init__(AXES[axis], tuple)
        self._axis = axis

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Return the study's names that begin with `incomplete`."""
        # While the option to complete has no value, click has not yet assigned the arguments to their names.
        study = ctx.params.get("study") or next((word for word in ctx.args if not word.startswith("-")), None)
        return Name(self.name, partial(_names, study, self._axis)).shell_complete(ctx, param, incomplete)


def _names(study: str | None, axis: str) -> Iterable[str]:
    from tunnelmark import registry
    from tunnelmark.plan.files import Files
    from tunnelmark.plan.load import load_study

    if study is None:
        return ()
    return [each.name for each in getattr(load_study(study, Files.standard(), registry.catalogue()), axis)]


OPTIONS = tuple(
    click.option(
        f"--{one}",
        f"only_{axis}",
        multiple=True,
        metavar="NAME",
        type=_NameInStudy(axis),
        help=f"{_HELP[axis]}; repeatable.",
    )
    for axis, one in AXES.items()
)


def taken(given: dict[str, Any]) -> Names:
    """Remove the values of the options in `OPTIONS` from a command's arguments, and return the names that they select.

    The keys are "arms", "profiles", "topologies" and "workloads"; a key for which no name was given is left out.
    """
    asked = {axis: given.pop(f"only_{axis}") for axis in AXES}
    return {axis: names for axis, names in asked.items() if names}
