"""Names on the command line that the shell completes: VPNs, workloads, profiles, topologies, studies, results.

A name is not checked here: the code that looks it up raises UnknownName with the nearest names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

from tunnelmark.errors import TunnelmarkError, UsageError

_F = TypeVar("_F", bound=Callable[..., Any])


class Name(click.ParamType[str]):
    """A name from a list that is read only when the shell completes it; `path` allows a file's path as well.

    `joined` is the sign that may join several names; the last one is completed.
    """

    def __init__(
        self, name: str, known: Callable[[], Iterable[str]], *, path: bool = False, joined: str | None = None
    ) -> None:
        self.name = name
        self._known = known
        self._path = path
        self._joined = joined

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        return str(value)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Return the known names that begin with `incomplete`; if none does, the shell completes a path (`path`)."""
        before, join, begun = incomplete.rpartition(self._joined) if self._joined else ("", "", incomplete)
        try:
            items = [CompletionItem(before + join + name) for name in self._known() if name.startswith(begun)]
        except (TunnelmarkError, OSError):  # a broken extra file: the command itself will say so
            items = []
        if self._path and not items:
            return [CompletionItem(incomplete, type="file")]
        return items


class ResultsFolder(click.Path):
    """An argument that is a results folder. The shell completes the folders in `results/`, or else any folder."""

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Return the results folders, newest first, whose path begins with `incomplete`, or else those whose name does.

        If there are none, the shell completes the path of any folder.
        """
        from tunnelmark.record.results import JOURNAL
        from tunnelmark.record.several_runs import FILE

        whole = (path for name in (JOURNAL, FILE) for path in Path("results").glob(f"*/{name}"))
        found = sorted(whole, key=_changed, reverse=True)
        folders = [journal.parent for journal in found]
        items = [
            CompletionItem(str(each)) for each in folders if f"{each}".startswith(incomplete.removeprefix("./"))
        ] or [CompletionItem(str(each)) for each in folders if each.name.startswith(incomplete)]
        return items or [CompletionItem(incomplete, type="dir")]


def _changed(path: Path) -> float:
    """Return when a file was last written, in seconds since the Unix epoch; 0 if it cannot be read."""
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def once(flag: str, *, default: str, help: str, **settings: Any) -> Callable[[_F], _F]:  # noqa: A002 (click's word)
    """Return an option that may be given only once; UsageError if it is given again. Click itself takes the last."""

    def single(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> str:
        if len(values) > 1:
            raise UsageError(f"{flag} is given {len(values)} times", hint=f"give it once, not {' and '.join(values)}")
        return values[0]

    return click.option(
        flag, multiple=True, default=(default,), callback=single, help=f"{help}  [default: {default}]", **settings
    )


def _vpns() -> Iterable[str]:
    from tunnelmark import registry

    return registry.arms()


def _workloads() -> Iterable[str]:
    from tunnelmark import registry

    return registry.workloads()


def _studies() -> Iterable[str]:
    from tunnelmark.plan.files import Files

    return Files.standard().names("study")


def _profiles() -> Iterable[str]:
    from tunnelmark.plan.files import Files

    return Files.standard().names("profile")


def _topologies() -> Iterable[str]:
    from tunnelmark.plan.files import Files

    return Files.standard().names("topology")


def _recipes() -> Iterable[str]:
    from tunnelmark.packages.recipe import recipes

    return recipes()


def _parts() -> Iterable[str]:
    from tunnelmark.report.on_request import ALL, PARTS

    return (*PARTS, ALL)


VPN = Name("vpn", _vpns)
PART = Name("part", _parts, joined=",")
RECIPE = Name("recipe", _recipes)
BUILD = Name("build", _recipes, path=True)
WORKLOAD = Name("workload", _workloads)
STUDY = Name("study", _studies, path=True)
PROFILE = Name("profile", _profiles, path=True, joined="+")
TOPOLOGY = Name("topology", _topologies, path=True)
RESULTS = ResultsFolder(path_type=Path, file_okay=False)
RESULTS_OR_FILE = ResultsFolder(path_type=Path)
