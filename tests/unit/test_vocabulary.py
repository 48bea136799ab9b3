"""One word for one thing: names that a stranger would not find, or would find twice, fail here."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MODULES = sorted((ROOT / "src" / "tunnelmark").rglob("*.py"))
CONVENTIONAL = {"__init__", "__main__", "base", "model", "easytier"}
"""Module names that may stand twice; `easytier` is a driver, and beside its recipe the script that starts the installed program."""

BANNED = {
    "crew",
    "kit",
    "eye",
    "eyes",
    "desk",
    "scene",
    "watchers",
    "WATCHER",
    "prove_link",
    "peers_home",
    "prove",
    "proof",
    "proofs",
    "proved",
}
"""Names that were private words: what they are called now stands in docs/glossary.md."""

PHRASES = ("tunnelmark peers", "prove-link", "make peers", "tunnelmark-wire")
"""Former names, which only the notes on them may say."""


def _names(file: Path) -> set[str]:
    found = tokenize.generate_tokens(io.StringIO(file.read_text()).readline)
    return {token.string for token in found if token.type == tokenize.NAME}


def test_no_two_modules_have_one_name() -> None:
    names = Counter(file.stem for file in MODULES if file.stem not in CONVENTIONAL)
    assert [name for name, number in names.items() if number > 1] == []


def _public_types(file: Path) -> set[str]:
    """Classes, and the aliases of types: `State = Literal[...]`."""
    found = set()
    for node in ast.parse(file.read_text()).body:
        match node:
            case (
                ast.ClassDef(name=name)
                | ast.Assign(targets=[ast.Name(id=name)])
                | ast.AnnAssign(target=ast.Name(id=name))
            ):
                found |= {name} if name[0].isupper() and not name.isupper() else set()
    return found


def test_no_two_public_types_have_one_name() -> None:
    names = Counter(name for file in MODULES for name in _public_types(file))
    assert [name for name, number in names.items() if number > 1] == []


@pytest.mark.parametrize("file", MODULES, ids=lambda file: str(file.relative_to(ROOT)))
def test_no_private_words_are_names(file: Path) -> None:
    assert _names(file) & BANNED == set()


def test_former_names_are_gone_from_what_users_read() -> None:
    documents = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "ARCHITECTURE.md", *(ROOT / "docs").glob("*.md")]
    assert [f"{file.name}: {phrase}" for file in documents for phrase in PHRASES if phrase in file.read_text()] == []


def _discouraged() -> re.Pattern[str]:
    """What the style of the prose linter replaces: Vale reads comments, docstrings and documents, but no strings and no data."""
    _, _, rules = (ROOT / "styles" / "Tunnelmark" / "Plain.yml").read_text().partition("swap:")
    swap = re.findall(r"^  '?(.+?)'?: ", rules, re.MULTILINE)
    return re.compile(r"\b(?:" + "|".join(swap) + r")\b", re.IGNORECASE)


def _strings(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def test_strings_and_data_are_in_plain_english_too() -> None:
    words = _discouraged()
    data = [file for kind in ("*.toml", "*.j2", "*.txt") for file in (ROOT / "src" / "tunnelmark").rglob(kind)]
    texts = [(file, text) for file in MODULES for text in _strings(file)]
    texts += [(file, file.read_text()) for file in data if "recipes" not in file.parts]
    texts += [(file, file.read_text()) for file in (ROOT / "web" / "src").glob("*.ts")]
    found = [
        (file.relative_to(ROOT), match.group(), text[max(0, match.start() - 40) : match.end() + 20])
        for file, text in texts
        for match in words.finditer(text)
    ]
    assert found == []


def test_each_word_of_the_glossary_stands_there_once() -> None:
    rows = [line for line in (ROOT / "docs" / "glossary.md").read_text().splitlines() if line.startswith("| **")]
    words = Counter(word for row in rows for word in re.findall(r"\*\*([^*]+)\*\*", row))
    assert len(words) > 60
    assert [word for word, number in words.items() if number > 1] == []


def test_the_readme_is_read_in_one_go() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) < 150
