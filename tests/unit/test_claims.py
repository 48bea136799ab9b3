"""The verdicts of `make proof`: a claim holds, is refuted, or was not tested, with the reason."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from support.claims import judge

TESTS = """
import pytest

@pytest.mark.proof("water is wet")
@pytest.mark.parametrize("drop", [1, 2])
def test_wet(drop, report):
    report(f"drop {drop} was looked at")

@pytest.mark.proof("fire is cold")
def test_cold():
    assert False

@pytest.mark.proof("stones are hard")
def test_hard():
    pytest.skip("no stone is here")

def test_of_no_claim():
    pass
"""


def test_one_failure_refutes_and_skips_alone_prove_nothing():
    one, two, three = judge(
        [
            ("c", "skipped", "no daemon"),
            ("b", "passed", ""),
            ("b", "skipped", "no kernel"),
            ("a", "passed", ""),
            ("a", "failed", ""),
            ("c", "skipped", "no daemon"),
        ]
    )
    assert (one.claim, one.verdict) == ("a", "REFUTED")
    assert (two.verdict, two.reasons) == ("holds in part", ("skipped: no kernel",))
    assert (three.verdict, three.reasons) == ("not tested", ("skipped: no daemon",))
    assert three.lines() == ["not tested     c (2 skipped)", "               skipped: no daemon"]


def _pytest(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    (folder / "conftest.py").write_text(
        "from support.claims import Claims, report, tell_claim\n"
        "def pytest_configure(config):\n"
        "    if not hasattr(config, 'workerinput'):\n"
        "        config.pluginmanager.register(Claims())\n"
        "def pytest_collection_modifyitems(items):\n"
        "    for item in items:\n"
        "        tell_claim(item)\n"
    )
    argv = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-o", "markers=proof(claim): a claim", *arguments]
    tests = Path(__file__).parents[1]
    environment = {"PYTHONPATH": str(tests), "PATH": "/usr/bin:/bin"}
    return subprocess.run(argv, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def test_the_run_ends_with_a_verdict_for_each_claim_also_with_several_workers(tmp_path: Path):
    (tmp_path / "test_it.py").write_text(TESTS)
    for workers in ("0", "2"):
        done = _pytest(tmp_path, "-n", workers)
        assert done.returncode == 1
        said = done.stdout.splitlines()
        assert [
            line.split("(")[0].strip() for line in said if "(" in line and line.startswith(("holds", "REF", "not "))
        ] == [
            "REFUTED        fire is cold",
            "not tested     stones are hard",
            "holds          water is wet",
        ]
        assert "               skipped: no stone is here" in said
        assert said.count("drop 1 was looked at") == 1


def test_a_mark_without_its_claim_is_a_mistake(tmp_path: Path):
    (tmp_path / "test_it.py").write_text("import pytest\n\n@pytest.mark.proof\ndef test_it():\n    pass\n")
    done = _pytest(tmp_path, "-n", "0")
    assert done.returncode != 0
    assert "needs one claim, as a sentence" in done.stdout + done.stderr
