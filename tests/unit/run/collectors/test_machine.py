"""How full the machine was: cores less what they rested and what was stolen, and memory that programs cannot get."""

from __future__ import annotations

from pathlib import Path

import pytest

from tunnelmark.run.collectors.machine import cores_used, memory_used


def test_memory_is_what_programs_cannot_get() -> None:
    text = "MemTotal:        8000 kB\nMemFree:          100 kB\nMemAvailable:    6000 kB\n"
    assert memory_used(text) == pytest.approx(25)
    assert 0 < memory_used(Path("/proc/meminfo").read_text()) < 100


def test_cores_are_used_where_they_did_not_rest() -> None:
    first = {0: (10.0, 0.0), 1: (20.0, 0.0)}
    assert cores_used(first, {0: (12.0, 0.0), 1: (20.0, 0.0)}, 2.0) == pytest.approx(50)
    assert cores_used(first, first, 2.0) == 100


def test_what_the_hypervisor_took_is_nobodys_time() -> None:
    assert cores_used({0: (0.0, 0.0)}, {0: (1.0, 1.0)}, 2.0) == pytest.approx(0)
