"""What is added by a page of docs/add-a-*.md works, and is in the files that the page names, and in no other."""

from __future__ import annotations

import ast
import asyncio
import importlib.util
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tokenize
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, cast

import pytest

from tunnelmark.run.collectors.base import CollectorContext
from tunnelmark.workloads.base import Reading
from unit.workloads.recorded import recorded

ROOT = Path(__file__).resolve().parents[2]


def page(name: str) -> str:
    return (ROOT / "docs" / name).read_text()


def block(name: str, language: str) -> str:
    """The one block of code in that language on a page."""
    (found,) = re.findall(rf"^```{language}\n(.*?)^```$", page(name), re.MULTILINE | re.DOTALL)
    return str(found)


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A copy of the package, to which something is added."""
    copy = tmp_path / "src"
    shutil.copytree(ROOT / "src", copy, ignore=shutil.ignore_patterns("__pycache__"))
    return copy


def files(package: Path) -> dict[str, bytes]:
    return {str(file.relative_to(package)): file.read_bytes() for file in package.rglob("*.*") if file.is_file()}


def ask(package: Path, *words: str) -> Any:
    """What the command of that copy prints as JSON."""
    code = "from tunnelmark.cli import main; raise SystemExit(main())"
    env = {name: value for name, value in os.environ.items() if not name.startswith("TUNNELMARK_")}
    done = subprocess.run(
        [sys.executable, "-B", "-c", code, *words],
        env=env | {"PYTHONPATH": str(package)},
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout) if "--json" in words else done.stdout


def module_of(file: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None and spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)  # pydantic looks for names there
    spec.loader.exec_module(module)
    return module


def test_a_vpn_is_a_driver_and_its_row_of_the_matrix(package: Path) -> None:
    before = files(package)
    ask(package, "new", "vpn", "foo", "--dir", str(package / "tunnelmark"))
    assert set(files(package)) - set(before) == {"tunnelmark/vpns/foo.py", "tunnelmark/data/matrix/foo.toml"}
    assert before.items() <= files(package).items()
    assert "foo" in [row["name"] for row in ask(package, "list", "vpns", "--json")]
    assert all(name in page("add-a-vpn.md") for name in ("vpns/foo.py", "matrix/foo.toml"))


def test_a_workload_and_a_metric_are_one_file(package: Path) -> None:
    before = files(package)
    ask(package, "new", "workload", "foo", "--dir", str(package / "tunnelmark"))
    assert set(files(package)) - set(before) == {"tunnelmark/workloads/foo.py"}
    file = package / "tunnelmark" / "workloads" / "foo.py"
    text = file.read_text()
    for part in block("add-a-metric.md", "diff").split("@@\n")[1:]:
        old = "".join(line[1:] for line in part.splitlines(keepends=True) if line[0] in " -")
        new = "".join(line[1:] for line in part.splitlines(keepends=True) if line[0] in " +")
        assert text.count(old) == 1, f"the page's lines are not those of the file: {old}"
        text = text.replace(old, new)
    file.write_text(text)
    assert before.items() <= files(package).items()
    (row,) = [row for row in ask(package, "list", "workloads", "--json") if row["name"] == "foo"]
    assert "retransmits" in json.dumps(row)
    module = module_of(file)
    reading = cast(Reading, module.WORKLOAD.read(recorded("tcp-ipv4"), module.MyOptions()))
    assert {sample.metric for sample in reading.samples} == {"goodput", "retransmits"}


def test_a_collector_is_one_file(package: Path) -> None:
    before = files(package)
    place = "tunnelmark/run/collectors/threads.py"
    assert f"src/{place}" in page("add-a-collector.md")
    (package / place).write_text(block("add-a-collector.md", "python"))
    assert set(files(package)) - set(before) == {place}
    code = "from tunnelmark import registry; print(sorted(registry.catalogue().collectors))"
    done = subprocess.run(
        [sys.executable, "-B", "-c", code], env={"PYTHONPATH": str(package)}, capture_output=True, text=True, check=True
    )
    assert "'threads'" in done.stdout
    collector = module_of(package / place).COLLECTOR
    context = SimpleNamespace(daemons={"a": (os.getpid(),), "b": ()}, ends={"source": "a", "target": "b"})

    async def look() -> dict[str, float]:
        sampler = collector.watch(cast(CollectorContext, context))
        await sampler.begin()
        return {sample.metric: sample.value for sample in (await sampler.end()).samples}

    seen = asyncio.run(look())
    assert set(seen) == {metric.name for metric in collector.metrics}
    assert seen["threads_source"] >= 1
    assert seen["threads_target"] == 0


def knows(file: Path, word: str) -> bool:
    """Whether a file's code, and not only its comments, has a word."""
    text = file.read_text()
    if file.suffix == ".rs":
        return any(
            re.search(word, line, re.IGNORECASE) for line in text.splitlines() if not line.lstrip().startswith("//")
        )
    docs = {
        (node.body[0].lineno, node.body[0].end_lineno)
        for node in ast.walk(ast.parse(text))
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef))
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return any(
        re.search(word, token.string, re.IGNORECASE)
        for token in tokens
        if token.type in (tokenize.NAME, tokenize.STRING)
        and not any(begin <= token.start[0] <= (end or begin) for begin, end in docs)
    )


def test_an_impairment_is_in_the_files_that_the_page_names() -> None:
    ours = [
        file
        for folder in ("src", "crates/emulator-core/src", "crates/emulator/src")
        for file in (ROOT / folder).rglob("*.*")
        if file.suffix in (".py", ".rs") and "tests" not in file.stem
    ]
    named = set(re.findall(r"`((?:src|crates)/[\w./-]+\.(?:py|rs))`", page("add-an-impairment.md")))
    named -= {name for name in named if "/tests/" in name}
    assert {str(file.relative_to(ROOT)) for file in ours if knows(file, r"\bcorrupt(ion|ed)?\b")} == named
