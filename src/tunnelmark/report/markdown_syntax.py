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
    return "".join(f"`{part}`" if is_code else safe(part) for part, is_code in code_parts(text))


def code_parts(text: str) -> list[tuple[str, bool]]:
    """The parts of such a sentence, each with whether it is code; one part where a backtick lacks its pair."""
    parts = text.split("`")
    if len(parts) % 2 == 0:
        return [(text, False)]
    return [(part, bool(odd % 2)) for odd, part in enumerate(parts)]


def _one_line(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
