"""What the accuracy of links is measured on: settings in pairs, one each way of a lab, and the probes through them.

A setting with jitter is without it for the last tenth of a second of every two: what packets take there beyond the delay
is the path (stamps, veth pairs, wake-ups, lateness), measured in the same run.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from support.labs import PAIR
from tunnelmark.analyse.link.judge import row_of
from tunnelmark.analyse.link.statistics import Flags, Floats, ProbeRow
from tunnelmark.lab.client import LabClient
from tunnelmark.lab.labs import Lab
from tunnelmark.model import emulator_health
from tunnelmark.model.probe_plan import Pace
from tunnelmark.plan.impairments import Chance, Direction, GilbertElliott, Jitter, Reordering, Schedule, ScheduleStep
from tunnelmark.plan.model import Profile
from tunnelmark.run.interference import between, glance
from tunnelmark.run.link_observation import observe
from tunnelmark.units import Duration, Share

PERIOD = 2.0
"""Seconds of a stretch, whose end has no jitter."""

_EDGE = (
    0.01  # seconds around a change that are left out: the command `zero` and the probes' zero are not the same moment
)


@dataclass(frozen=True, slots=True)
class Setting:
    """What one direction does, in words and as data; for `still` seconds at the end of every stretch without its jitter."""

    title: str
    way: Direction
    still: float = 0.0


@dataclass(frozen=True, slots=True)
class Look:
    """A setting and what probes met there: the row of them, which met the setting as stated and which its still part.

    `said` is the emulator's report on this direction; `unplanned` packets were dropped that no setting asked for.
    """

    setting: Setting
    row: ProbeRow
    stated: Flags
    still: Flags
    said: Mapping[str, Any]
    unplanned: int
    late: float
    sent: int

    @property
    def path(self) -> Floats:
        """Seconds that packets took beyond the delay, where nothing varied it; sorted."""
        delay = self.row.delay[self.still]
        return np.sort(delay[delay >= self.row.floor]) - float(self.setting.way.delay or 0.0)


@dataclass(frozen=True, slots=True)
class Found:
    """Both looks of a pair of settings, what carried the packets (the emulator's `ready`), and cores stolen meanwhile."""

    looks: tuple[Look, Look]
    ready: Mapping[str, Any]
    cpu: float
    stolen: float
    load: float
    seconds: float


def _ms(value: float) -> Duration:
    return Duration(value / 1000)


def _jitter(delay: float, size: float, kind: Any, correlation: float = 0.0, **more: Any) -> Direction:
    jitter = Jitter(_ms(size), kind, Share(correlation), more.pop("keep_order", False))
    return Direction(delay=_ms(delay), jitter=jitter, **more)


def _varied(title: str, way: Direction, still: float = 0.1) -> Setting:
    pauses = Schedule((ScheduleStep(Duration(PERIOD - still), Direction(), ("jitter",)),), Duration(PERIOD))
    return Setting(title, replace(way, schedule=pauses), still)


DENSE: tuple[tuple[Setting, Setting], ...] = (
    (
        Setting("5 ms, loss 1 %", Direction(delay=_ms(5), loss=Chance(Share(0.01)))),
        Setting("20 ms, copies 1 %", Direction(delay=_ms(20), duplication=Chance(Share(0.01)))),
    ),
    (
        _varied("uniform", _jitter(20, 10, "uniform", loss=GilbertElliott(Share(0.005), Share(0.25)))),
        _varied("normal", _jitter(40, 5, "normal", loss=Chance(Share(0.01), Share(0.25)))),
    ),
    (
        _varied("pareto", _jitter(60, 20, "pareto")),
        _varied("paretonormal", _jitter(60, 20, "paretonormal", corruption=Chance(Share(0.01)))),
    ),
    (
        _varied("uniform, correlated 25 %", _jitter(20, 10, "uniform", 0.25)),
        _varied("normal, correlated 50 %", _jitter(40, 5, "normal", 0.5)),
    ),
    (
        Setting("10 ms, reordering 1 %", Direction(delay=_ms(10), reordering=Reordering(Share(0.01)))),
        Setting(
            "10 ms, reordering 5 %, correlated 50 %",
            Direction(delay=_ms(10), reordering=Reordering(Share(0.05), Share(0.5))),
        ),
    ),
    (
        _varied("uniform, order kept, close together", _jitter(20, 10, "uniform", keep_order=True)),
        _varied(
            "all at once",
            _jitter(
                10,
                4,
                "uniform",
                0.25,
                loss=GilbertElliott(Share(0.003), Share(0.3)),
                duplication=Chance(Share(0.005)),
                corruption=Chance(Share(0.002)),
                reordering=Reordering(Share(0.025), Share(0.5)),
            ),
        ),
    ),
)
"""Pairs of settings for probes close together: forward and back."""

SPARSE = (
    _varied("uniform, order kept, 4 ms apart", _jitter(10.3, 1.9, "uniform", keep_order=True), 0.5),
    _varied("normal, order kept, 4 ms apart", _jitter(10.7, 0.45, "normal", keep_order=True), 0.5),
)
"""Order kept and the stated distribution, which is had when probes are further apart than the jitter reaches.

The delays are no multiple of the spacing: without jitter, packets would leave just when others come, and the path measured
there would be another one. Jitter of 0.1 ms with probes 1 ms apart was tried: the path's own variation, some 6 us other without
the jitter than with it, is then too large a part of what is judged.
"""


async def look(labs: LabClient, pair: tuple[Setting, Setting], pace: Pace, seed: int) -> Found:
    """Send probes both ways through a fresh lab."""
    made = Profile("accuracy", " | ".join(each.title for each in pair), "benchmark", pair[0].way, pair[1].way)
    before = glance(None)
    with tempfile.TemporaryDirectory(prefix="tunnelmark-accuracy-") as folder:
        seen = await observe(labs, PAIR, made, pace, Path(folder), seed=seed)
        ready = ready_line(Path(folder))
    (report,) = seen.reports
    said = {each["name"].replace(" to ", ">"): each for each in report["directions"]}
    looks = []
    for setting, flow in zip(pair, (seen.forward, seen.back), strict=True):
        row = row_of(flow, seen.zero)
        if setting.way.reordering is not None:
            row = replace(row, floor=float(setting.way.delay or 0.0) / 2)
        stated, still = _parts(setting, row.sent)
        way = said[f"{flow.source}>{flow.target}"]
        looks.append(
            Look(
                setting,
                row,
                stated,
                still,
                way,
                emulator_health.unplanned(report),
                flow.late,
                flow.pace.count if flow.pace else 0,
            )
        )
    stolen = between(before, glance(None)).get("steal", 0.0)
    cpu = report["cpu_us"] / max(report["elapsed_us"], 1)
    return Found((looks[0], looks[1]), ready, cpu, stolen, os.getloadavg()[0], seen.seconds)


def _parts(setting: Setting, sent: Floats) -> tuple[Flags, Flags]:
    """Which probes met the whole setting, and which met it without the jitter."""
    if setting.way.jitter is None:
        return np.ones(len(sent), dtype=bool), np.ones(len(sent), dtype=bool)
    phase = sent % PERIOD
    stated = (phase > _EDGE) & (phase < PERIOD - setting.still - _EDGE)
    # What was held to keep the order may reach into the still part.
    edge = 2 * setting.way.jitter.size + _EDGE if setting.way.jitter.keep_order else _EDGE
    return stated, (phase > PERIOD - setting.still + edge) & (phase < PERIOD - _EDGE)


def ready_line(folder: Path) -> Mapping[str, Any]:
    """What the emulator said when it began to carry packets."""
    first: dict[str, Any] = json.loads((folder / "emulator.middle.out").read_text().split("\n", 1)[0])
    found: dict[str, Any] = first["ready"]
    return found


@dataclass(frozen=True, slots=True)
class Loaded:
    """How late packets left under load: Mbit/s of UDP payload that were sent, and the emulator's report on them."""

    offered: float
    seconds: float
    late: Mapping[str, float]
    ready: Mapping[str, Any]
    cpu: float
    unplanned: int
    stolen: float


async def loaded(labs: LabClient, rate: float, seconds: int, seed: int) -> Loaded:
    """Send UDP at a rate (bit/s of payload, 1400 bytes each) through a link of 5 ms."""
    way = Direction(delay=_ms(5))
    made = Profile("loaded", "5 ms", "benchmark", way, way)
    before = glance(None)
    with tempfile.TemporaryDirectory(prefix="tunnelmark-accuracy-") as folder:
        async with labs.lab(PAIR, made, seed=seed, raw=Path(folder)) as lab:
            offered = await _flood(lab, rate, seconds)
            (report,) = await lab.link_reports()
        ready = ready_line(Path(folder))
    way_there = next(each for each in report["directions"] if each["name"] == "a to b")
    stolen = between(before, glance(None)).get("steal", 0.0)
    cpu = report["cpu_us"] / max(report["elapsed_us"], 1)
    return Loaded(offered, seconds, way_there["lateness_us"], ready, cpu, emulator_health.unplanned(report), stolen)


async def _flood(lab: Lab, rate: float, seconds: int) -> float:
    """Mbit/s of payload that iperf3 sent."""
    server = await lab.nodes["b"].spawn(["iperf3", "-s", "-1"])
    await lab.nodes["b"].until({"kind": "tcp-port", "port": 5201}, 5)
    plan = [f"-b{rate:.0f}", f"-t{seconds}", "-l1400", "-c", str(lab.address("b"))]
    done = await lab.nodes["a"].run(["iperf3", "-J", "-u", *plan], timeout=seconds + 20)
    await server.wait()
    end = json.loads(done.stdout)["end"]
    return 8e-6 * float(end["sum"]["bytes"]) / float(end["sum"]["seconds"])
