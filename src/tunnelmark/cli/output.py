"""Prints tables for people and JSON for programs; into a pipe, lines are never broken and never padded."""

from __future__ import annotations

import io
import json
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import IO, Any, TextIO, cast

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

_PIPED_WIDTH = 100_000  # columns where there is no terminal: a line of a table, or a command to copy, is never broken
_BLANKS = re.compile(r"[ \t]+(?=\n)")


class _Unpadded(io.TextIOBase):
    """A stream that removes the blanks at the end of each line; on a terminal these pad tables."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write the text; rich hands over whole lines."""
        self._stream.write(_BLANKS.sub("", text))
        return len(text)

    def flush(self) -> None:
        """Flush the stream below."""
        self._stream.flush()


def console(*, stderr: bool = False) -> Console:
    """Return a console for stdout or stderr. It breaks lines at a terminal's width; in a pipe or file it does not."""
    found = Console(highlight=False, stderr=stderr)
    if found.is_terminal:
        return found
    unpadded = cast("IO[str]", _Unpadded(sys.stderr if stderr else sys.stdout))
    return Console(highlight=False, width=_PIPED_WIDTH, file=unpadded)


def table(columns: Sequence[str], rows: Iterable[Sequence[str | Text]], *, title: str = "") -> None:
    """Print rows under columns. A cell that is too long continues in the next line; text is not read as markup."""
    shown = Table(*columns, title=title or None, title_justify="left", box=None, header_style="bold", pad_edge=False)
    for row in rows:
        shown.add_row(*(Text(cell) if isinstance(cell, str) else cell for cell in row))
    console().print(shown)


def as_json(value: Mapping[str, Any] | Sequence[Any]) -> None:
    """Print a value as indented JSON."""
    click.echo(json.dumps(value, indent=2, ensure_ascii=False))
