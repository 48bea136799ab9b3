"""How long the rest of a test run will take: what is known of a test, of its file, of its folder; and how many are done."""

from __future__ import annotations

import pytest

from support.time_left import TimeLeft, left


def test_a_test_counts_as_it_took_last_time_and_a_new_one_as_its_neighbours():
    before = {"tests/lab/test_a.py::one": 7.0}
    now = {"tests/lab/test_a.py::two": 2.0, "tests/lab/test_b.py::three": 4.0}
    assert left(["tests/lab/test_a.py::one"], before, now) == 7.0
    assert left(["tests/lab/test_a.py::four"], before, now) == 2.0
    assert left(["tests/lab/test_c.py::five"], before, now) == 3.0
    assert left(["tests/unit/test_d.py::six"] * 100, before, now) == pytest.approx(2)
    assert left(["tests/e2e/test_e.py::seven"], before, now) == 1.0


def test_a_test_that_another_worker_is_in_is_counted_once(pytestconfig: pytest.Config):
    plugin = TimeLeft(pytestconfig)
    plugin._wait_for(["one", "two", "three"])
    for name in ("one", "two"):  # the other worker reports the beginning of "two" before "one" has ended
        plugin.pytest_runtest_logreport(pytest.TestReport(name, ("", None, ""), {}, "passed", None, "setup"))
    plugin.pytest_runtest_logfinish("one")
    assert plugin.counted() == "1 of 3"
