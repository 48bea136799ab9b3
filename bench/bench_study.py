"""How much of a study's wall time lies inside measuring windows: three blocks of the quick study."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.command import journal, run

SHARE = 0.75


@pytest.mark.root
def test_most_of_the_wall_time_is_measuring(tmp_path: Path) -> None:
    results = tmp_path / "results"
    done = run("run", "quick", "--blocks", "3", "--out", results)
    assert done.returncode in (0, 1), done.stderr
    trials = journal(results)
    entries = [json.loads(line) for line in (results / "journal.jsonl").read_text().splitlines()]
    wall = next(entry["wall"] for entry in entries if "wall" in entry)
    measured = sum(trial["phases"]["measure"] for trial in trials)
    print(f"\n{len(trials)} trials in {wall:.1f} s, {100 * measured / wall:.0f} % of it inside measuring windows")
    for phase in trials[0]["phases"]:
        print(f"  {phase:<8} {sum(trial['phases'][phase] for trial in trials):6.1f} s")
    assert {trial["outcome"] for trial in trials} == {"ok"}
    assert measured / wall >= SHARE
