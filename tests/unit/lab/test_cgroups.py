"""Control groups give the middle node a budget of real-time scheduling, where the kernel asks for one."""

from __future__ import annotations

from pathlib import Path

from tunnelmark.lab.cgroups import Group, Hierarchies


def test_a_leaf_gets_a_budget_only_if_it_is_asked_for_and_the_kernel_has_budgets(tmp_path: Path, monkeypatch):
    made = Path.mkdir

    def with_budget(folder: Path, *arguments, **keywords) -> None:
        made(folder, *arguments, **keywords)
        if folder.parent.parent == tmp_path / "cpu":
            (folder / "cpu.rt_runtime_us").write_text("0")

    monkeypatch.setattr(Path, "mkdir", with_budget)
    for mount in ("cpu", "unified"):
        made(tmp_path / mount / "mine", parents=True)
    group = Group(Hierarchies(tmp_path / "unified", tmp_path / "cpu"), "mine")
    group.leaf("a")
    group.leaf("middle", realtime=True)
    assert (tmp_path / "cpu/mine/a/cpu.rt_runtime_us").read_text() == "0"
    assert (tmp_path / "cpu/mine/middle/cpu.rt_runtime_us").read_text() == "850000"
    assert not (tmp_path / "unified/mine/middle/cpu.rt_runtime_us").exists()
