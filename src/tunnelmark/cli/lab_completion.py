"""Completes names in the shell: of labs that are up or have failed, of their nodes and of their daemons."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable

import click
from click.shell_completion import CompletionItem

from tunnelmark.cli import lab_states
from tunnelmark.errors import UsageError
from tunnelmark.plan.fields import NAME_PATTERN


class _Found(click.ParamType[str]):
    """A name that the shell can complete; which names are known depends on the words before it."""

    def __init__(self, name: str, known: Callable[[str, str], Iterable[str]]) -> None:
        self.name = name
        self._known = known

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        return str(value)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        lab, node = ctx.params.get("name") or lab_states.USUAL, ctx.params.get("node") or ""
        return [CompletionItem(name) for name in sorted(self._known(lab, node)) if name.startswith(incomplete)]


class _LabName(_Found):
    """A lab's name. It is part of file names, so UsageError if it has other characters than `NAME_PATTERN` allows."""

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if not re.fullmatch(NAME_PATTERN, value):
            raise UsageError(
                f"{value!r} cannot be the name of a lab",
                hint="lower-case letters, digits, dots and dashes, such as mine",
            )
        return value


def _labs(_: str, __: str) -> Iterable[str]:
    return lab_states.names()


def _nodes(lab: str, _: str) -> Iterable[str]:
    files = lab_states.files_of(lab)
    try:
        return list(json.loads(files.state.read_text())["nodes"])
    except (OSError, ValueError):
        return lab_states.logs_in(files.kept)


def _programs(lab: str, node: str) -> Iterable[str]:
    files = lab_states.files_of(lab)
    return lab_states.logs_in(files.logs).get(node) or lab_states.logs_in(files.kept).get(node, {})


LAB = _LabName("lab", _labs)
NODE = _Found("node", _nodes)
PROGRAM = _Found("program", _programs)
