"""Control groups give the middle node a budget of real-time scheduling, where the kernel asks for one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tunnelmark.linux import cgroups
from tunnelmark.linux.cgroups import ControlGroup, Hierarchies


def shared(mounts: Path) -> Path:
    return mounts / "cpu" / "tunnelmark.realtime"


@pytest.fixture
def group(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ControlGroup:
    """A group on a kernel with budgets in the v1 hierarchy."""
    made = Path.mkdir

    def with_budget(folder: Path, *arguments, **keywords) -> None:
        made(folder, *arguments, **keywords)
        if tmp_path / "cpu" in folder.parents:
            (folder / "cpu.rt_runtime_us").write_text("0")

    monkeypatch.setattr(Path, "mkdir", with_budget)
    for mount in ("cpu", "unified"):
        made(tmp_path / mount)
        (tmp_path / mount / "mine").mkdir()
    return ControlGroup(Hierarchies(tmp_path / "unified", tmp_path / "cpu"), "mine")


def test_a_leaf_gets_a_budget_only_if_it_is_asked_for_and_the_kernel_has_budgets(tmp_path: Path, group: ControlGroup):
    group.leaf("a")
    group.leaf("middle", realtime=True)
    group.join("middle")
    assert (tmp_path / "cpu/mine/a/cpu.rt_runtime_us").read_text() == "0"
    assert (shared(tmp_path) / "cpu.rt_runtime_us").read_text() == "940000"
    assert not (tmp_path / "unified/mine/middle/cpu.rt_runtime_us").exists()


def test_labs_that_stand_at_once_share_the_budget(tmp_path: Path, group: ControlGroup):
    for lab in ("lab1.middle", "lab2.middle"):
        group.leaf(lab, realtime=True)
        group.join(lab)
        assert (shared(tmp_path) / "cgroup.procs").read_text() == "0"
        assert (tmp_path / "unified/mine" / lab / "cgroup.procs").exists()
        assert (tmp_path / "cpu/mine" / lab).is_dir()  # whoever enters the node by hand joins this one


def test_labs_get_their_groups_below_the_one_that_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """In each hierarchy that has it; a quota there then holds for the lab as a whole."""
    (tmp_path / "cpu" / "slow").mkdir(parents=True)
    (tmp_path / "unified").mkdir()
    monkeypatch.setattr(cgroups, "mounted", lambda: (tmp_path / "unified", tmp_path / "cpu"))
    assert cgroups.find() == Hierarchies(tmp_path / "unified", tmp_path / "cpu", tmp_path / "cpu")
    monkeypatch.setenv(cgroups.VARIABLE, "/slow")
    assert cgroups.find() == Hierarchies(tmp_path / "unified", tmp_path / "cpu" / "slow", tmp_path / "cpu")
