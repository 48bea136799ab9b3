"""Markdown's marks: tables, and text that stays text whatever programs print."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

_MARKUP = str.maketrans({mark: "\\" + mark for mark in "\\`*_[]"} | {"<": "&lt;", ">": "&gt;", "\n": " "})


def rows(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """A table of GitHub's Markdown."""
    return "\n".join(
        "| " + " | ".join(_one_line(cell) for cell in line) + " |" for line in [head, ["---"] * len(head), *lines]
    )


def safe(text: str) -> str:
    """Text that Markdown takes as text: what programs print must not become markup."""
    return text.translate(_MARKUP)


def prose(text: str) -> str:
    """A sentence of ours or of a study, in which backticks mark what is code; a backtick without its pair stays text."""
    parts = text.split("`")
    if len(parts) % 2 == 0:
        return safe(text)
    return "".join(f"`{part}`" if odd % 2 else safe(part) for odd, part in enumerate(parts))


def _one_line(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
