"""The manners of the code that no linter checks: first sentences, sizes, paths, the error tree, the docs' links."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tunnelmark import errors

ROOT = Path(__file__).parents[2]
MODULES = sorted((ROOT / "src").rglob("*.py"))
TESTS = sorted((ROOT / "tests").rglob("*.py"))
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
LONGEST = 400  # lines; about 300 is meant

# Folders that exist only where somebody works: none may stand in a file of the project.
MACHINE_PATH = re.compile(r"/(?:home|Users|root|work)/[\w.-]+|/tmp/\w+/\w+")


def name(file: Path) -> str:
    return str(file.relative_to(ROOT))


def project_files() -> Iterator[Path]:
    for top in ("src", "tests", "docs", "scripts", "bench", "deploy", "tools", ".ci"):
        yield from (file for file in (ROOT / top).rglob("*") if file.is_file() and "__pycache__" not in file.parts)
    yield from (
        file for file in ROOT.iterdir() if file.is_file() and file.name != ".git"
    )  # a worktree's names its checkout


@pytest.mark.parametrize("file", [*MODULES, *TESTS], ids=name)
def test_every_module_says_what_it_owns(file: Path) -> None:
    docstring = ast.get_docstring(ast.parse(file.read_text()))
    assert docstring
    assert docstring.split("\n\n")[0].rstrip().endswith((".", ":")), "the first paragraph is a sentence"


@pytest.mark.parametrize("file", [*MODULES, *TESTS], ids=name)
def test_no_file_is_long(file: Path) -> None:
    assert len(file.read_text().splitlines()) <= LONGEST


def test_no_file_names_a_folder_of_one_machine() -> None:
    found = []
    for file in project_files():
        if file == Path(__file__) or file.suffix in {".lock", ".png", ".parquet", ".pyc"}:
            continue
        text = file.read_text(errors="replace")
        found += [f"{name(file)}: {match[0]}" for match in MACHINE_PATH.finditer(text)]
    assert not found


def test_the_lock_names_no_host() -> None:
    assert "://" not in (ROOT / "requirements.lock").read_text()


def test_the_lock_has_what_the_project_asks_for() -> None:
    lock = (ROOT / "requirements.lock").read_text()
    asked = re.findall(r'^    "([a-z0-9-]+)[<>=~]', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert len(asked) > 10
    assert [package for package in asked if f"\n{package}==" not in lock] == []


def test_every_dependency_is_explained() -> None:
    document = (ROOT / "docs" / "dependencies.md").read_text()
    asked = re.findall(r'^    "([a-z0-9-]+)[<>=~]', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert [package for package in asked if f"| {package} " not in document] == []


def _errors() -> list[type[errors.TunnelmarkError]]:
    return [
        thing
        for _, thing in inspect.getmembers(errors, inspect.isclass)
        if issubclass(thing, errors.TunnelmarkError) and thing.__module__ == errors.__name__
    ]


def test_the_tree_in_the_docstring_is_the_tree() -> None:
    drawn = re.findall(r"^([│├└─ ]*)(\w+)(?: {2,}\S.*)?$", errors.__doc__ or "", re.MULTILINE)
    depth = {word: len(prefix) // 3 for prefix, word in drawn if word in dir(errors)}
    assert depth == {error.__name__: len(error.__mro__) - len(errors.TunnelmarkError.__mro__) for error in _errors()}


@pytest.mark.parametrize("file", MODULES, ids=name)
def test_every_error_of_ours_is_raised_with_a_hint(file: Path) -> None:
    ours = {error.__name__ for error in _errors()} - {"UnknownName"}  # which makes its own
    for node in ast.walk(ast.parse(file.read_text())):
        if not (isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call)):
            continue
        call = node.exc
        if isinstance(call.func, ast.Name) and call.func.id in ours:
            assert any(keyword.arg in ("hint", None) for keyword in call.keywords), f"line {node.lineno} has no hint"


@pytest.mark.parametrize("file", MODULES, ids=name)
def test_public_classes_and_dataclasses_between_stages_are_documented(file: Path) -> None:
    for node in ast.parse(file.read_text()).body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            assert ast.get_docstring(node), f"{node.name} has no docstring"


@pytest.mark.parametrize("file", DOCUMENTS, ids=name)
def test_links_of_the_documents_lead_somewhere(file: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", file.read_text()):
        assert (file.parent / target).exists(), f"{target} is not there"


FINDINGS = sorted(page for page in (ROOT / "docs" / "findings").glob("*.md") if page.name != "README.md")
PARTS = ["Question", "Design", "Data", "Effect", "Mechanism", "What would refute it", "Limits", "Repeat it"]


@pytest.mark.parametrize("page", FINDINGS, ids=name)
def test_a_finding_says_what_a_reviewer_asks_for_and_is_in_the_list(page: Path) -> None:
    assert re.findall(r"^## (.*)$", page.read_text(), re.MULTILINE) == PARTS
    assert f"]({page.name})" in (page.parent / "README.md").read_text()


@pytest.mark.parametrize("script", [*sorted((ROOT / "scripts").iterdir()), ROOT / ".ci" / "run"], ids=name)
def test_scripts_can_be_run_and_parsed(script: Path) -> None:
    assert script.stat().st_mode & 0o111
    if "python3" in script.read_text().partition("\n")[0]:
        compile(script.read_text(), str(script), "exec")
    else:
        assert subprocess.run(["bash", "-n", script], check=False).returncode == 0
