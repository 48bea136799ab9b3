"""Which cores there are, by what the kernel says of them, and that a process kept to some still knows of all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tunnelmark.host import cores, utilisation


@pytest.fixture
def four(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A machine of four cores, of which this process has whatever it was last given."""
    has = {0, 1, 2, 3}

    def give(_: int, wanted) -> None:
        nonlocal has
        has = set(wanted)

    monkeypatch.setattr(os, "sched_getaffinity", lambda _: has)
    monkeypatch.setattr(os, "sched_setaffinity", give)
    yield
    cores.keep_to(())


@pytest.mark.parametrize(
    ("text", "numbers"), [("0\n", {0}), ("0,4\n", {0, 4}), ("0-3,8-9\n", {0, 1, 2, 3, 8, 9}), ("\n", set())]
)
def test_lists_of_the_kernel_are_read(text: str, numbers: set[int]):
    assert cores.listed(text) == numbers


@pytest.mark.usefixtures("four")
def test_threads_of_a_processor_core_are_put_together_as_far_as_they_are_usable(tmp_path: Path):
    for core, siblings in {0: "0,2", 1: "1,9", 2: "0,2"}.items():
        (tmp_path / f"cpu{core}/topology").mkdir(parents=True)
        (tmp_path / f"cpu{core}/topology/thread_siblings_list").write_text(f"{siblings}\n")
    assert cores.wholes(tmp_path) == [(0, 2), (1,), (3,)]  # 9 is not ours, of 3 nothing is told


@pytest.mark.usefixtures("four")
def test_a_process_kept_to_some_cores_still_counts_all():
    cores.keep_to((2, 3))
    assert os.sched_getaffinity(0) == {2, 3}
    assert (cores.usable(), utilisation.cores()) == ({0, 1, 2, 3}, 4)
    cores.keep_to((3,))
    assert cores.usable() == {0, 1, 2, 3}
    cores.keep_to(())
    assert os.sched_getaffinity(0) == {0, 1, 2, 3}


def test_this_machine_is_read():
    assert {core for threads in cores.wholes() for core in threads} == os.sched_getaffinity(0)
