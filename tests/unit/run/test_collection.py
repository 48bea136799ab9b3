"""Collectors are asked in order, cost what they cost, and never make a trial fail."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tunnelmark.errors import LabError
from tunnelmark.model.metrics import Metric, Sample
from tunnelmark.run.collection import COST, FILE, Collection, next_due, shifted
from tunnelmark.run.collectors import collectors, light
from tunnelmark.run.collectors.base import Collected, Collector, CollectorContext, Turn


class Eye:
    """An eye that tells what it was asked, and may refuse."""

    def __init__(self, asked: list[str], refuses: str, seen: Collected) -> None:
        self._asked, self._refuses, self._seen = asked, refuses, seen
        self._note("watch")

    def _note(self, what: str) -> None:
        self._asked.append(what)
        if self._refuses == what:
            raise LabError("not here", hint="elsewhere")

    async def begin(self) -> None:
        self._note("begin")

    async def sample(self) -> None:
        self._note("sample")

    async def end(self) -> Collected:
        self._note("end")
        return self._seen


METRICS = tuple(Metric(name, "s", name, "lower") for name in ("x_source", "x_target", "y_source", "y_target"))


def collector(
    asked: list[str],
    *,
    refuses: str = "",
    seen: Collected | None = None,
    every: float | None = None,
    name: str = "test",
) -> Collector:
    seen = seen or Collected((Sample("x_source", 1.0),))
    return Collector(name, "test", METRICS, lambda _: Eye(asked, refuses, seen), every=every)


def watched(
    folder: Path, *these: Collector, until: Callable[[], bool] = lambda: True
) -> tuple[dict[str, float], dict[str, str]]:
    """The values and notes of a trial that these watch, and that ends as soon as something is true."""
    context = CollectorContext({}, "a", "b", folder)

    async def trial() -> tuple[dict[str, float], dict[str, str]]:
        watching = Collection(context, these)
        await watching.begin()
        while not until():
            await asyncio.sleep(0.001)
        samples = await watching.end()
        return {sample.metric: sample.value for sample in samples}, watching.notes

    return asyncio.run(trial())


def test_it_is_asked_at_rest_before_and_after(tmp_path: Path):
    asked: list[str] = []
    values, notes = watched(tmp_path, collector(asked))
    assert asked == ["watch", "begin", "end"]
    assert values["x_source"] == 1.0
    assert notes == {}


def test_collectors_begin_in_turn_whoever_is_named_first_and_end_in_reverse(tmp_path: Path):
    told: list[str] = []

    class Named(Eye):
        def _note(self, what: str) -> None:
            told.append(f"{self._refuses} {what}")

    def named(name: str) -> Collector:
        return replace(collector([], name=name), watch=lambda _: Named([], name, Collected()))

    slow = [replace(named(turn.name), turn=turn) for turn in (Turn.TIMED_SOCKETS, Turn.PERF, Turn.SOCKETS)]
    watched(tmp_path, named("before"), *slow, named("after"))
    names = ["PERF", "SOCKETS", "TIMED_SOCKETS", "before", "after"]
    assert told[5:] == [*(f"{name} begin" for name in names), *(f"{name} end" for name in reversed(names))]


def test_a_collector_is_sampled_at_its_own_interval(tmp_path: Path):
    asked: list[str] = []
    begun = time.monotonic()
    watched(tmp_path, collector(asked, every=0.02), until=lambda: asked.count("sample") >= 5)
    assert asked.count("sample") <= (time.monotonic() - begun) / 0.02 + 1
    assert asked[-1] == "end"


def test_after_a_late_look_the_next_one_sees_as_long_a_time_as_others():
    assert next_due(10.0, 0.5, 10.01) == 10.5, "a look that is hardly late leaves the grid as it is"
    assert next_due(10.0, 0.5, 10.49) == pytest.approx(10.99)
    assert next_due(10.0, 0.5, 13.0) == 13.5, "missed looks are not made up for"


@pytest.mark.parametrize("moment", ["watch", "begin", "sample", "end"])
def test_what_the_machine_refuses_is_a_note_and_nobody_elses_trouble(tmp_path: Path, moment: str):
    refused: list[str] = []
    asked: list[str] = []
    other = collector(asked, seen=Collected((Sample("y_source", 2.0),)), name="other")
    sampled = (lambda: "sample" in refused) if moment == "sample" else (lambda: True)
    values, notes = watched(tmp_path, collector(refused, refuses=moment, every=0.01), other, until=sampled)
    assert notes == {"test": "not here"}
    assert refused[-1] == moment, "it is not asked again"
    assert "x_source" not in values
    assert values["y_source"] == 2.0


def test_what_it_costs_is_measured_and_told_by_watcher(tmp_path: Path):
    def busy(_: CollectorContext) -> Any:
        end = time.process_time() + 0.05
        while time.process_time() < end:
            pass
        return Eye([], "", Collected(cpu=0.5))

    values, _ = watched(tmp_path, Collector("busy", "", (), busy), collector([], name="lazy"))
    assert values[COST.name] == pytest.approx(0.55, abs=0.03)
    told = json.loads((tmp_path / FILE).read_text())["CPU seconds by collector"]
    assert told["busy"] == pytest.approx(0.55, abs=0.03)
    assert told["lazy"] < 0.02


def test_nobody_watches_at_no_cost(tmp_path: Path):
    assert watched(tmp_path) == ({}, {})
    assert list(tmp_path.iterdir()) == []


def test_a_reason_is_told_once_where_that_says_as_much(tmp_path: Path):
    none = "no daemon"
    _, notes = watched(
        tmp_path, collector([], seen=Collected(notes={"x_source": none, "x_target": none, "y_target": "shared"}))
    )
    assert notes == {"x": none, "y_target": "shared"}


def test_series_begin_where_the_window_does():
    samples = (Sample("x", 1.0, 0.25), Sample("x", 2.0, 0.75), Sample("x", 9.0))
    assert shifted(samples, 0.5) == (Sample("x", 2.0, 0.25), Sample("x", 9.0))


def test_every_watcher_is_whole():
    assert {"cpu", "limits", "memory", "path", "switches", "wire"} == set(light())
    assert {"tcp", "syscalls"} <= set(collectors())
    names = [metric.name for one in collectors().values() for metric in one.metrics]
    assert len(names) == len(set(names)), "two collectors have a metric of one name"
    for one in collectors().values():
        assert not any(metric.primary for metric in one.metrics)
        assert all(metric.title and metric.title[0] not in "ABDEFGHIJKLMNOPQRSUVWXYZ" for metric in one.metrics)
