"""What programs hold, read from a node's /proc: a made one, and that of this process."""

import os
from pathlib import Path

from tunnelmark.run.holdings import Holdings, held_by


def process(proc: Path, number: int, group: int, files: int, rss: int | None, name: str = "vpn") -> None:
    """A process as the kernel shows it; without `rss` one that has ended and was not waited for."""
    folder = proc / str(number)
    (folder / "fd").mkdir(parents=True)
    (folder / "stat").write_text(f"{number} ({name}) {'S' if rss else 'Z'} 1 {group} {group} 0 -1\n")
    if rss is not None:
        (folder / "smaps_rollup").write_text(f"0-1 ---p 00000000 00:00 0 [rollup]\nRss: {rss} kB\nPss: 1 kB\n")
    for number in range(files):
        (folder / "fd" / str(number)).touch()


def test_counts_everything_but_the_lab_s_own_and_what_was_started_besides(tmp_path: Path) -> None:
    process(tmp_path, 1, 1, 9, 900, "agent")
    process(tmp_path, 5, 5, 3, 100)
    process(tmp_path, 6, 5, 4, 50, "child (of) it")
    process(tmp_path, 7, 7, 20, 1000, "probe")
    process(tmp_path, 8, 7, 20, 1000, "probe's child")
    (tmp_path / "meminfo").touch()
    assert held_by(tmp_path, [7]) == Holdings(processes=2, memory=150 * 1024, files=7)


def test_counts_a_process_for_whose_end_no_one_waited(tmp_path: Path) -> None:
    process(tmp_path, 5, 5, 3, 100)
    process(tmp_path, 6, 5, 0, None)
    assert held_by(tmp_path, ()) == Holdings(processes=2, memory=100 * 1024, files=3)


def test_a_process_that_ends_meanwhile_holds_nothing(tmp_path: Path) -> None:
    (tmp_path / "5").mkdir()
    assert held_by(tmp_path, ()) == Holdings(0, 0, 0)


def test_reads_what_this_kernel_shows(tmp_path: Path) -> None:
    proc = tmp_path / "proc"
    proc.mkdir()
    (proc / "2").symlink_to(f"/proc/{os.getpid()}")
    before = held_by(proc, ())
    kept = [os.open("/dev/null", os.O_RDONLY) for _ in range(10)]
    try:
        after = held_by(proc, ())
    finally:
        for file in kept:
            os.close(file)
    assert before.processes == 1
    assert before.memory > 1 << 20
    assert after.files == before.files + 10
