"""No circle in who uses whom: neither among the Python modules nor among the modules of a Rust crate."""

from __future__ import annotations

import ast
import re
import subprocess
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src"
CRATES = sorted(folder for folder in (ROOT / "crates").iterdir() if (folder / "src").is_dir())


def circle(graph: dict[str, set[str]]) -> list[str]:
    """The modules of a circle, in order; nothing without one."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def test_python_modules() -> None:
    files = {_module(file): file for file in (SOURCE / "tunnelmark").rglob("*.py")}
    graph = {name: {used for used in _uses(file, set(files)) if used != name} for name, file in files.items()}
    assert sum(map(len, graph.values())) > 1000
    assert circle(graph) == []


@pytest.mark.parametrize("crate", CRATES, ids=lambda crate: crate.name)
def test_modules_of_a_crate(crate: Path) -> None:
    """What a test of a module uses besides is its own affair."""
    files = {file.stem: file for file in (crate / "src").glob("*.rs")}
    graph = {}
    for name, file in files.items():
        text = file.read_text().partition("#[cfg(test)]")[0]
        graph[name] = (set(re.findall(r"\bcrate::(\w+)", text)) & set(files)) - {name}
    assert circle(graph) == []


def test_the_picture_of_the_architecture_is_current() -> None:
    done = subprocess.run([ROOT / "scripts" / "architecture", "--check"], check=False)
    assert done.returncode == 0, "write it anew: scripts/architecture"


def _module(file: Path) -> str:
    return ".".join(file.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")


def _uses(file: Path, modules: set[str]) -> set[str]:
    """The modules that one imports when it is imported, or later; not what only types need."""
    tree = ast.parse(file.read_text())
    for_types = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)
        for inner in ast.walk(node)
    }
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and id(node) not in for_types:
            names = (f"{node.module}.{alias.name}" for alias in node.names)
            found |= {name if name in modules else node.module for name in names}
    return found & modules
