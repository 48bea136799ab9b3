"""Writes Markdown: tables, and text that remains text whatever characters it has."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

_MARKUP = str.maketrans({mark: "\\" + mark for mark in "\\`*_[]"} | {"<": "&lt;", ">": "&gt;", "\n": " "})


def rows(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """Return a table in GitHub's Markdown; in its cells `|` is escaped, a newline becomes a space, and markup stays."""
    return "\n".join(
        "| " + " | ".join(_one_line(cell) for cell in line) + " |" for line in [head, ["---"] * len(head), *lines]
    )


def safe(text: str) -> str:
    """Escape text so that Markdown shows it as it is: what programs print must not become markup."""
    return text.translate(_MARKUP)


def prose(text: str) -> str:
    """Escape a sentence, but keep code between pairs of backticks; a backtick without its pair stays text."""
    return "".join(f"`{part}`" if is_code else safe(part) for part, is_code in code_parts(text))


def code_parts(text: str) -> list[tuple[str, bool]]:
    """Return a sentence's parts, each with whether it is code in backticks; only one part if a backtick has no pair."""
    parts = text.split("`")
    if len(parts) % 2 == 0:
        return [(text, False)]
    return [(part, bool(odd % 2)) for odd, part in enumerate(parts)]


def _one_line(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
