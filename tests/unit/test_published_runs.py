"""Runs that are published: made from results by a script, without a place of the machine, and what README.md says of them is what the command prints."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tunnelmark.cli import main
from tunnelmark.record import journal
from unit.builders import TCP, Study
from unit.stored import write

HERE = Path(__file__).resolve().parents[2]
RUNS = sorted(path.parent for path in (HERE / "published").glob("[0-9]*/plan.json"))
MACHINE = {
    "system": "Debian",
    "kernel": "6.1",
    "cpu": "Intel(R) Xeon(R) Processor",
    "cores": 2,
    "memory_bytes": 2**33,
    "virtualisation": "kvm",
}
README = "above\n<!-- runs:begin -->\nwhat was there\n<!-- runs:end -->\nbelow\n"


def publish(root: Path, *words: str | Path) -> subprocess.CompletedProcess[str]:
    command = f"{sys.executable} -c 'from tunnelmark.cli import main; raise SystemExit(main())'"
    return subprocess.run(
        [HERE / "scripts" / "publish", *words],
        env=os.environ | {"TUNNELMARK_ROOT": str(root), "TUNNELMARK_DEMO": command},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_run_is_published_with_its_verdicts_and_without_its_place(tmp_path: Path):
    (tmp_path / "README.md").write_text(README)
    results = write(Study(workloads=(TCP,), environment={"machine": MACHINE}).results(), tmp_path / "run")
    plan = json.loads((results / "plan.json").read_text())
    (results / "plan.json").write_text(json.dumps(plan | {"study": "vpncloud-ciphers"}))
    environment = json.loads((results / "environment.json").read_text())
    environment |= {"tunnelmark": "0.0", "machine": MACHINE, "command": ["tunnelmark", "run", str(results)]}
    (results / "environment.json").write_text(json.dumps(environment))
    done = publish(tmp_path, results)
    assert done.returncode == 0, done.stderr
    (folder,) = (tmp_path / "published").iterdir()
    assert folder.name.endswith("-2-core-intel-vm-vpncloud-ciphers")
    assert {path.name for path in folder.iterdir()} >= {
        "README.md",
        "journal.jsonl.gz",
        "environment.json",
        "report.md",
    }
    kept = [path.read_bytes() for path in folder.rglob("*") if path.is_file() and path.suffix != ".gz"]
    assert str(tmp_path).encode() not in b"".join((*kept, journal.read(folder / "journal.jsonl")))
    text = (tmp_path / "README.md").read_text()
    assert text.startswith("above\n<!-- runs:begin -->\n| run | held |") and text.endswith("<!-- runs:end -->\nbelow\n")
    assert f"[{folder.name}](published/{folder.name})" in text and "what was there" not in text
    assert publish(tmp_path).returncode == 0 and (tmp_path / "README.md").read_text() == text


def test_what_is_no_run_changes_nothing(tmp_path: Path):
    (tmp_path / "README.md").write_text(README)
    assert publish(tmp_path, tmp_path / "none").returncode != 0
    assert (tmp_path / "README.md").read_text() == README


@pytest.mark.parametrize("folder", RUNS, ids=lambda folder: folder.name)
def test_the_figures_of_a_published_run_are_those_that_its_command_prints(
    folder: Path, capsys: pytest.CaptureFixture[str]
):
    assert main(["study", "verdict", "--json", str(folder)]) == 0
    verdicts = json.loads(capsys.readouterr().out)["verdicts"]
    found = Counter(each["outcome"] for each in verdicts if not each["feature"])
    features = Counter(each["outcome"] for each in verdicts if each["feature"])
    row = [found[each] for each in ("held", "did not hold", "undecided", "not testable")]
    cells = " | ".join([*map(str, row), f"{features['held']} of {features.total()}" if features else ""])
    told = f"| [{folder.name}](published/{folder.name}) | {cells} |" in (HERE / "README.md").read_text()
    assert told == any(row), "a run of which no claim is asked has no row"
    assert (
        ", ".join(
            f"{n} {each}" for n, each in zip(row, ("held", "did not hold", "undecided", "not testable"), strict=True)
        )
        in (folder / "README.md").read_text()
    )
