"""What `bench/ab.py --real` puts into the anchor fits the anchor's source, and its builds are asked for as a user's are."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "bench"))

from _ab_real import CASES, FORWARD, PATCHES, command, patched, tree  # noqa: E402 (bench is no package)


@pytest.mark.parametrize("branch", PATCHES)
def test_each_slowdown_fits_in_one_place(branch: str):
    text = (TOP / FORWARD).read_text()
    changed = patched(text, branch)
    assert changed != text
    assert changed.count("{") == changed.count("}")


def test_a_slowdown_that_fits_nowhere_is_refused():
    with pytest.raises(ValueError, match="0 places"):
        patched("fn main() {}", "copies")


def test_the_tree_has_a_branch_for_each_and_only_the_anchor_differs(tmp_path: Path):
    made = tree(tmp_path / "anchor-tree")
    for branch in PATCHES:
        differs = subprocess.run(
            ["git", "-C", made, "diff", "--name-only", "base", branch], check=True, capture_output=True, text=True
        )
        assert differs.stdout.split() == [str(FORWARD)]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_each_case_is_a_command_with_two_builds(case, tmp_path: Path):
    words = command(case, tmp_path / "out", 3, ["--counted"])
    assert words[words.index("--old") + 1] != words[words.index("--new") + 1] or case.name == "2023-2023"
    assert ("--source" in words) == case.old.startswith("git:")
    assert words[-1] == "--counted"
