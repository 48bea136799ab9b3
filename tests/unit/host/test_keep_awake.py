"""Where cores are not kept awake, and why; and that the loops' time is taken off what others are said to use."""

from pathlib import Path

import pytest

from tunnelmark.host import keep_awake
from tunnelmark.linux import cgroups
from tunnelmark.run import interference


@pytest.mark.parametrize(
    ("file", "text", "limited"),
    [
        ("cpu.max", "max 100000\n", False),
        ("cpu.max", "150000 100000\n", True),
        ("cpu.cfs_quota_us", "-1\n", False),
        ("cpu.cfs_quota_us", "50000\n", True),
        ("cpu.stat", "", False),
    ],
)
def test_loops_would_use_up_a_quota(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str, text: str, limited: bool
):
    (tmp_path / file).write_text(text)
    monkeypatch.delenv(keep_awake.VARIABLE, raising=False)
    monkeypatch.setattr(keep_awake, "find", lambda: cgroups.Hierarchies(tmp_path, tmp_path))
    monkeypatch.setattr(keep_awake, "find_program", lambda program: tmp_path / program)
    assert (keep_awake.unwanted() is not None) is limited


def test_without_cgroup_v2_the_loops_could_not_be_told_from_other_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """They were taken for it: the command waited for them to end, and trials were bound by a core that was always busy."""
    monkeypatch.delenv(keep_awake.VARIABLE, raising=False)
    monkeypatch.setattr(keep_awake, "find", lambda: cgroups.Hierarchies(None, tmp_path))
    monkeypatch.setattr(keep_awake, "find_program", lambda program: tmp_path / program)
    assert "without cgroup v2" in (keep_awake.unwanted() or "")


def test_without_the_program_the_reason_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.delenv(keep_awake.VARIABLE, raising=False)
    monkeypatch.setattr("tunnelmark.host.programs.BUILT", tmp_path)
    assert keep_awake.unwanted() == "the program tunnelmark-cores is not installed"


def test_each_core_has_a_group_beside_the_labs_own(tmp_path: Path):
    cpu = tmp_path / "cpu"
    cpu.mkdir()
    place = keep_awake.LoopGroups(cgroups.Hierarchies(None, cpu), "tunnelmark-1-a", [1, 0])
    assert place.folders == (cpu / "tunnelmark-1-a-awake-0", cpu / "tunnelmark-1-a-awake-1")
    assert place.unified == ()


def test_the_loops_are_no_other_work(monkeypatch: pytest.MonkeyPatch):
    """Ten seconds of two cores, all of it the loops' but for one second of another program."""
    monkeypatch.setattr("tunnelmark.run.interference.softirq.total", lambda: 0.0)
    monkeypatch.setattr(keep_awake, "own_seconds", iter([5.0, 24.0]).__next__)
    monkeypatch.setattr(keep_awake, "process_seconds", lambda: 0.0)
    monkeypatch.setattr("tunnelmark.run.interference.time.monotonic", iter([100.0, 110.0]).__next__)
    texts = iter(["cpu  0 0 0 0 0 0 0 0 0 0\n", "cpu  0 2000 0 0 0 0 0 0 0 0\n"])
    monkeypatch.setattr(interference, "_STAT", type("Stat", (), {"read_text": lambda self: next(texts)})())
    monkeypatch.setattr("tunnelmark.run.interference.os.sysconf", lambda name: 100)
    assert interference.between(interference.glance(0.0), interference.glance(0.0))["other_cpu"] == pytest.approx(0.1)


def test_loops_of_another_command_that_ends_take_nothing_back(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setattr(keep_awake, "find", lambda: cgroups.Hierarchies(tmp_path, None))
    monkeypatch.setattr(keep_awake, "_OTHERS", {})
    monkeypatch.setattr(keep_awake, "STANDING", [])
    group = tmp_path / f"tunnelmark-1-ab{keep_awake.SUFFIX}0"
    group.mkdir()
    (group / "cpu.stat").write_text("usage_usec 5000000\nuser_usec 4000000\nsystem_usec 1000000\n")
    assert keep_awake.own_seconds() == 5.0
    (group / "cpu.stat").unlink()
    assert keep_awake.own_seconds() == 5.0


def test_a_group_of_idle_class_is_put_first_before_its_end(tmp_path: Path):
    place = keep_awake.LoopGroups(cgroups.Hierarchies(None, tmp_path), "tunnelmark-1-a", [0])
    (folder,) = place.folders
    folder.mkdir()
    for name, value in (("cpu.idle", "1"), ("cpu.shares", "3")):
        (folder / name).write_text(value)
    place.hurry()
    assert [(folder / name).read_text() for name in ("cpu.idle", "cpu.shares")] == ["0", "262144"]
    assert not (folder / "cpu.weight").exists()
