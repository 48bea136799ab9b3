"""`tunnelmark.load` reads results for Python programs; the package itself stays light, and its examples are true."""

from __future__ import annotations

import doctest
import os
import subprocess
import sys
from pathlib import Path

import pytest

import tunnelmark
from tunnelmark import api
from tunnelmark.errors import StoreError
from tunnelmark.report.exports.views import VIEWS
from unit.builders import TCP, Study
from unit.stored import write
from unit.test_analysis_anywhere import WITHOUT

ROOT = Path(__file__).parents[2]

TABLES = ("trials", "samples", "metrics", "effects", "verdicts", "environment")


def test_the_examples_of_its_documentation_are_true(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    done = doctest.testmod(api)
    assert done.attempted >= 5 and done.failed == 0


@pytest.mark.parametrize("name", TABLES)
def test_each_table_has_the_columns_that_are_documented(name: str, tmp_path: Path) -> None:
    run = tunnelmark.load(write(Study(workloads=(TCP,)).results(), tmp_path / "results"))
    table = getattr(run, name)()
    assert table.schema.equals(VIEWS[name].schema, check_metadata=True)
    assert table.num_rows > 0 or name == "environment"  # nothing is recorded of a machine that was made up


def test_effects_are_those_of_the_analysis(tmp_path: Path) -> None:
    run = tunnelmark.load(str(write(Study(workloads=(TCP,), tcp={"tinc": 0.5}).results(), tmp_path / "results")))
    (analysis,) = run.analyses.values()
    found = {(row["arm"], row["against"], row["metric"]): row for row in run.effects().to_pylist()}
    assert len(found) == len(analysis.pairs) + len(analysis.same.twins)
    for pair in analysis.pairs:
        row = found[pair.arm, pair.against, pair.metric]
        assert (row["estimate"], row["q"], row["differs"]) == (pair.estimate, pair.q, pair.differs)
        assert (row["low"], row["high"]) == ((pair.interval.low, pair.interval.high) if pair.interval else (None, None))
    assert found["tinc", "direct", "goodput"]["estimate"] == pytest.approx(0.5, rel=0.1)


def test_a_folder_without_results_is_an_error_with_a_hint(tmp_path: Path) -> None:
    with pytest.raises(StoreError) as caught:
        tunnelmark.load(tmp_path / "none")
    assert caught.value.hint


def _python(code: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_the_package_itself_imports_nothing_heavy() -> None:
    done = _python("import sys, tunnelmark; print(sorted({'pyarrow', 'numpy', 'click', 'duckdb'} & set(sys.modules)))")
    assert done.stdout == "[]\n", done.stderr


def test_results_are_read_where_no_lab_can_be(tmp_path: Path) -> None:
    folder = write(Study(workloads=(TCP,)).results(), tmp_path / "results")
    code = "import sys, tunnelmark; print(tunnelmark.load(sys.argv[1]).verdicts().num_rows)"
    done = _python(WITHOUT + code, folder)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) == 14  # seven arms by two metrics


def test_what_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="nothing_of_that_name"):
        tunnelmark.nothing_of_that_name  # noqa: B018
