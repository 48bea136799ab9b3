"""Yardsticks are taken on a core apart from its partner, all of them, and what is refused is told."""

from __future__ import annotations

import os

import pytest

from tunnelmark.errors import LabError
from tunnelmark.host import yardsticks
from tunnelmark.host.yardsticks import measure, partners
from tunnelmark.model.yardstick_lengths import TITLES, length


@pytest.mark.parametrize(
    ("cores", "siblings", "chosen"),
    [
        ({0}, (), (0, 0)),
        ({0, 1}, (), (1, 0)),
        ({0, 1}, ({0, 1},), (1, 0)),  # the only two there are
        ({0, 1, 2, 3}, ({0, 2}, {1, 3}), (3, 0)),
        ({0, 1, 2, 3}, ({0, 1}, {2, 3}), (3, 0)),
        ({2, 3, 6, 7}, ({2, 6}, {3, 7}), (7, 2)),
    ],
)
def test_the_other_core_is_no_sibling_where_there_is_another(cores, siblings, chosen):
    assert partners(cores, siblings) == chosen


@pytest.mark.parametrize(
    ("ns", "said"), [(95.4, "95.4 ns"), (1234.0, "1.23 µs"), (52_100.0, "52.1 µs"), (3.4e6, "3.4 ms")]
)
def test_lengths_have_the_unit_that_suits_them(ns, said):
    assert length(ns) == said


def test_all_are_taken_or_told_why_not():
    found = measure(0.01)
    assert found.lengths.keys() | found.absent.keys() == TITLES.keys()
    assert not found.lengths.keys() & found.absent.keys()
    assert {"system call", "copy", "AES-128-GCM", "AES-256-GCM", "ChaCha20-Poly1305"} <= found.lengths.keys()
    assert all(0 < each.low <= each.value <= each.high for name, each in found.lengths.items() if name != "timer")
    if len(os.sched_getaffinity(0)) == 1:
        assert "wake-up, two cores" in found.absent


@pytest.mark.root
def test_with_root_the_network_ones_are_taken_too():
    before = sorted(os.listdir("/sys/class/net"))
    found = measure(0.01)
    assert {"TUN read", "TUN write", "veth"} <= found.lengths.keys(), found.absent
    assert sorted(os.listdir("/sys/class/net")) == before


def test_a_program_that_fails_is_told(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(yardsticks, "find", lambda _: "false")
    with pytest.raises(LabError) as caught:
        measure(0.01)
    assert "--no-measure" in caught.value.hint
