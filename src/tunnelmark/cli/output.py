"""Shows the same rows as a table for people or as JSON for programs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

_PIPED_WIDTH = 200  # columns when there is no terminal to ask, so that no cell is cut for a reader or grep


def table(columns: Sequence[str], rows: Iterable[Sequence[str | Text]], *, title: str = "") -> None:
    """Print rows under columns; a cell that is too long goes on below, and nothing is read as markup."""
    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=_PIPED_WIDTH)
    shown = Table(*columns, title=title or None, title_justify="left", box=None, header_style="bold", pad_edge=False)
    for row in rows:
        shown.add_row(*(Text(cell) if isinstance(cell, str) else cell for cell in row))
    console.print(shown)


def as_json(value: Mapping[str, Any] | Sequence[Any]) -> None:
    """Print a value as indented JSON."""
    click.echo(json.dumps(value, indent=2, ensure_ascii=False))
