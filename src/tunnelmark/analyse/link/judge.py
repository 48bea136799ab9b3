"""Judges a link: compares each statistic of its probes with the range that the profile allows (`expected`). Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tunnelmark.analyse.link import lateness, power, text, train
from tunnelmark.analyse.link.expected import LEVELS, Expected, expect, floor_of, serial_of
from tunnelmark.analyse.link.path import LinkPath
from tunnelmark.analyse.link.processes import in_time
from tunnelmark.analyse.link.statistics import PROPERTIES, ProbeRow, Property, statistics
from tunnelmark.model import emulator_health
from tunnelmark.model.observation import Flow, Observation
from tunnelmark.model.probe_plan import PROBES
from tunnelmark.plan.impairments import Direction
from tunnelmark.plan.model import Profile
from tunnelmark.record.link_check import LinkCheck, LinkLine, LinkPoint, When

_POINTS = 60  # the most points of a series over time


def judge(profile: Profile, seen: Observation, when: When, raw: tuple[str, ...] = ()) -> LinkCheck:
    """Judge one link check (a look) by the link's profile.

    `seen`: what the look measured. `when`: "alone" for `check-link`, else the part of a run in which the look was made.
    In a run, the emulator's lateness is not judged here, because each trial is graded by the lateness during that
    trial. `raw`: the names of the files in which the look's measurements are kept; the result lists them.
    """
    lines: list[LinkLine] = []
    series: dict[str, tuple[LinkPoint, ...]] = {}
    for flow, direction in ((seen.forward, profile.forward), (seen.back, profile.back)):
        way = f"{flow.source}>{flow.target}"
        if flow.pace is not None:
            row = replace(row_of(flow, seen.zero if seen.begun is None else seen.begun), floor=floor_of(direction))
            lines += _probes(
                way,
                profile,
                direction,
                row,
                _path(seen, flow, direction),
                apart=when != "alone",
                clock_error=seen.clock_error,
            )
            series[way] = _series(row)
        lines += train.judge(way, profile, direction, flow, seen.final)
    lines += emulator_lines(profile, seen.reports)
    if when != "alone":
        lines = [lateness.told_apart(line, seen.reports) for line in lines]
    outside = [line for line in lines if line.ok is False]
    parts = [
        part
        for flow, direction in ((seen.forward, profile.forward), (seen.back, profile.back))
        for part in power.parts(
            f"{flow.source}>{flow.target}",
            profile,
            direction,
            flow.pace,
            lines,
            _path(seen, flow, direction),
            seen.clock_error,
        )
    ]
    return LinkCheck(
        profile=seen.profile,
        topology=seen.topology,
        when=when,
        started=seen.started,
        seconds=seen.seconds,
        verdict="outside" if outside else "verified",
        reason="; ".join(text.outside(line) for line in outside),
        lines=tuple(lines),
        parts=tuple(parts),
        series=series,
        raw=raw,
    )


def _path(seen: Observation, flow: Flow, direction: Direction) -> LinkPath | None:
    """Return the random numbers of a direction's processes in time; None if it has none, or their start is unknown."""
    place = seen.place(flow.target)
    return None if seen.begun is None or place is None or not in_time(direction) else LinkPath(seen.seed, 0, place)


def row_of(flow: Flow, zero: int) -> ProbeRow:
    """Return the probes of a flow in the order in which they were sent.

    The first arrival of each probe counts, and its later arrivals are copies. `zero`: the moment from which `sent` is
    counted, in nanoseconds.
    """
    assert flow.pace is not None
    count = flow.pace.count
    records = flow.phase(PROBES)
    records = records[np.argsort(records["received"], kind="stable")]
    numbers, first, copies = np.unique(records["number"], return_index=True, return_counts=True)
    kept = numbers < count  # a number that a corrupted bit has changed belongs to no probe
    numbers, first, copies = numbers[kept], first[kept], copies[kept]
    due = flow.start + np.arange(count) * round(flow.pace.interval * 1e9)
    sent = (due - zero) / 1e9
    delay = np.full(count, np.nan)
    lost = np.ones(count, dtype=bool)
    duplicated, corrupted = np.zeros(count, dtype=bool), np.zeros(count, dtype=bool)
    whole = records["flags"][first] == 0
    sent[numbers[whole]] = (records["sent"][first][whole] - zero) / 1e9
    sent = np.maximum.accumulate(sent)  # a lost probe was not sent before an earlier one, however late that was
    # The moment of sending is in the probe; in a corrupted one it may be what was corrupted.
    delay[numbers[whole]] = (records["received"][first][whole] - zero) / 1e9 - sent[numbers[whole]]
    lost[numbers] = False
    duplicated[numbers] = copies > 1
    corrupted[numbers] = ~whole
    return ProbeRow(sent, lost, duplicated, corrupted, delay)


def _probes(
    way: str,
    profile: Profile,
    direction: Direction,
    row: ProbeRow,
    path: LinkPath | None,
    *,
    apart: bool,
    clock_error: float,
) -> Sequence[LinkLine]:
    """Return the lines on probes; `apart`: probes later than the profile can make any are set aside (`lateness`)."""
    expected = expect(
        profile.model,
        direction,
        row.sent,
        serial=serial_of(profile, direction),
        path=path,
        clock_error=clock_error,
    )
    row = replace(row, ceiling=expected.ceiling)
    lines = tuple(_lines(way, direction, row, expected))
    if not apart or all(line.ok is not False for line in lines):
        return lines
    share, rest = lateness.without_late(row)
    if rest is None:
        return lines
    return lateness.mended(lines, tuple(_lines(way, direction, rest, expected, apart=True)), share)


def _lines(
    way: str, direction: Direction, row: ProbeRow, expected: Expected, *, apart: bool = False
) -> Iterator[LinkLine]:
    figures = statistics(row)
    judged = direction.rate_trace is None  # the wait for an opportunity depends on when the trace began
    for each in PROPERTIES:
        if _worth(each, direction, figures[each.name]):
            yield _line(way, each, text.stated(direction, each.name), expected, figures[each.name], judged)
    shift = lateness.shift(float(np.nanmean(row.delay))) if apart and not np.isnan(row.delay).all() else 0.0
    yield _shape(way, direction, row, expected, shift)
    if (known := expected.misplaced) is not None:
        found = expected.elsewhere(row.lost)
        yield LinkLine(way, "misplaced", "packets", "", known.middle, 0.0, known.high, found, known.holds(found))


def _worth(each: Property, direction: Direction, found: float) -> bool:
    """Return whether the property means something here: without jitter, a correlation is only instrument noise."""
    if each.name == "skipped" and not floor_of(direction):
        return False
    return not np.isnan(found) and (each.name != "delay_lag1" or direction.jitter is not None)


def _line(way: str, each: Property, stated: str, expected: Expected, achieved: float, judged: bool) -> LinkLine:
    known = expected.limits.get(each.name)
    if known is None or not judged:
        note = "not judged: the profile says nothing of it" if judged else "not judged: it depends on the trace"
        return LinkLine(way, each.name, each.unit, stated, None, None, None, achieved, None, note)
    return LinkLine(
        way,
        each.name,
        each.unit,
        stated,
        known.middle,
        known.low,
        known.high,
        achieved,
        known.low <= achieved <= known.high,
        text.clock_error(expected.clock_error) if each.name in LEVELS else "",
    )


def _shape(way: str, direction: Direction, row: ProbeRow, expected: Expected, shift: float) -> LinkLine:
    """Return the line on the largest difference between the distribution functions of measured and simulated delays.

    All measured delays may be taken as up to `shift` seconds shorter.
    """
    name, stated = "distribution", text.stated(direction, "distribution")
    met = row.delay[~np.isnan(row.delay)]
    if not len(met) or expected.shape is None:
        note = "not judged: the delay does not vary"
        return LinkLine(way, name, "", stated, None, None, None, None, None, note)
    known = expected.shape
    found = expected.apart(met, late=shift)
    return LinkLine(
        way,
        name,
        "",
        stated,
        known.middle,
        0.0,
        known.high,
        found,
        found <= known.high,
        "largest difference of distribution functions",
    )


def _series(row: ProbeRow) -> tuple[LinkPoint, ...]:
    begin = float(row.sent[0]) if len(row.sent) else 0.0
    points = []
    for chosen in np.array_split(np.arange(len(row.sent)), min(_POINTS, len(row.sent)) or 1):
        if not len(chosen):
            continue
        delay = 1e3 * row.delay[chosen][~np.isnan(row.delay[chosen])]
        middle, least, largest = np.quantile(delay, (0.5, 0, 1)) if len(delay) else (None, None, None)
        loss = 100 * float(row.lost[chosen].mean())
        points.append(LinkPoint(float(row.sent[chosen[0]]) - begin, middle, least, largest, loss))
    return tuple(points)


def emulator_lines(profile: Profile, reports: Sequence[Mapping[str, Any]]) -> Iterator[LinkLine]:
    """Yield the lines on the emulator's reports: how late packets left, and how many it dropped unasked.

    Dropped packets have a line only if there are any.
    """
    for report in reports:
        for each in report["directions"]:
            late, bound = float(each["lateness_us"]["p99"]), emulator_health.bound(profile)
            note = (
                f"99 % of departures; at worst {each['lateness_us']['max'] / 1e3:.2f} ms{emulator_health.whose(each)}"
            )
            way = each["name"].replace(" to ", ">")
            yield LinkLine(way, "late", "us", "", 0.0, 0.0, bound, late, late <= bound, note)
        if lost := emulator_health.unplanned(report):
            yield LinkLine("all", "unplanned", "packets", "", 0.0, 0.0, 0.0, float(lost), False)
