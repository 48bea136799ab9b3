"""Results are analysed where no lab can run: without netlink, the lab, or anything that measures."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from unit.builders import Study
from unit.stored import write

WITHOUT = """
import importlib, importlib.abc, pkgutil, sys

class Absent(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        gone = ("pyroute2", "tunnelmark.lab", "tunnelmark.linux", "tunnelmark.run", "tunnelmark.doctor", "tunnelmark.workloads")
        if name.startswith(gone):
            raise ImportError(f"{name} is not here")

sys.meta_path.insert(0, Absent())
"""

IMPORTS = (
    WITHOUT
    + """
for package in ("tunnelmark.analyse", "tunnelmark.report"):
    for module in pkgutil.walk_packages(importlib.import_module(package).__path__, f"{package}."):
        importlib.import_module(module.name)
"""
)

REPORT = (
    WITHOUT
    + """
from tunnelmark.cli import main
sys.exit(main(["report", sys.argv[1]]))
"""
)


def _run(code: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False)


def test_analysis_and_reports_import_neither_lab_nor_run() -> None:
    done = _run(IMPORTS)
    assert done.returncode == 0, done.stderr


def test_a_report_is_made_where_no_lab_can_be(tmp_path: Path) -> None:
    results = write(Study().results(), tmp_path / "results")
    done = _run(REPORT, results)
    assert done.returncode in (0, 1), done.stderr  # 1: a gate of the made-up results has failed
    assert "is not here" not in done.stderr + done.stdout, done.stderr
    assert {"report.html", "report.md", "samples.parquet"} <= {file.name for file in results.iterdir()}
