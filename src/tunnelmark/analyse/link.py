"""Judges a link: what probes met is held against simulated runs of the profile, line by line, with tolerances. Pure.

A line is in tolerance when it lies within what the profile's own chance does to a row of so many packets at these
moments (a Monte Carlo test, Barnard 1963), widened by what the instrument adds (`linkstats.PROPERTIES`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from tunnelmark.analyse import linklate, linktrain, linkwords
from tunnelmark.analyse.linkmodel import Fates, simulate
from tunnelmark.analyse.linkstats import PROPERTIES, Property, Row, distance, statistics
from tunnelmark.lab import lateness
from tunnelmark.plan.impairments import Direction
from tunnelmark.plan.model import Profile
from tunnelmark.record.results import LinkLine, LinkPoint, LinkProof
from tunnelmark.run.probes import HEADERS, PROBES, SIZE
from tunnelmark.run.prove import Flow, Observation

SPREADS = 4.5
"""Standard deviations of simulated runs that a line may be off: of some forty lines in the proofs of a study, less
than one in a thousand studies should be void by chance."""

_RUNS = (40, 300)  # simulated runs, at least and at most
_DRAWS = 600_000  # packets in all runs together
_POINTS = 60  # of a series over time
_OWN = next(each.slack for each in PROPERTIES if each.name == "delay_p99") / 1e3
"""Seconds that the path through the nodes may add to a single delay, as to the largest ones that are judged."""

_FATAL = 207 / (8 * (SIZE + 28))
"""Share of a frame's bits (its Ethernet header apart) that lose a probe when they are inverted: those of the IP header, and
of the UDP header the destination, the checksum, and 15 bits of the length (one only cuts the probe short)."""

_SILENT = 16 / (8 * (SIZE + 28))
"""Share of those that change nothing that a probe can tell: the UDP source."""


def judge(
    profile: Profile, seen: Observation, when: Literal["before", "after", "alone"], raw: tuple[str, ...] = ()
) -> LinkProof:
    """What a look at a link says about it; in a run lateness is left to the trials, which are graded by their own."""
    lines: list[LinkLine] = []
    series: dict[str, tuple[LinkPoint, ...]] = {}
    for flow, direction in ((seen.forward, profile.forward), (seen.back, profile.back)):
        way = f"{flow.source}>{flow.target}"
        if flow.pace is not None:
            row = replace(row_of(flow, seen.zero), floor=_floor(direction))
            lines += _probes(way, profile, direction, row, apart=when != "alone")
            series[way] = _series(row)
        lines += linktrain.judge(way, profile, direction, flow, seen.final)
    lines += emulator_lines(profile, seen.reports)
    if when != "alone":
        lines = [linklate.told_apart(line, seen.reports) for line in lines]
    outside = [line for line in lines if line.ok is False]
    return LinkProof(
        profile=seen.profile,
        topology=seen.topology,
        when=when,
        started=seen.started,
        seconds=seen.seconds,
        verdict="outside" if outside else "proved",
        reason="; ".join(linkwords.outside(line) for line in outside),
        lines=tuple(lines),
        series=series,
        raw=raw,
    )


def row_of(flow: Flow, zero: int) -> Row:
    """The probes of a flow in the order in which they were sent; the first arrival of each counts, the rest are copies."""
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
    # The moment of sending stands in the probe; in a corrupted one it may be what was corrupted.
    delay[numbers[whole]] = (records["received"][first][whole] - zero) / 1e9 - sent[numbers[whole]]
    lost[numbers] = False
    duplicated[numbers] = copies > 1
    corrupted[numbers] = ~whole
    return Row(sent, lost, duplicated, corrupted, delay)


def _floor(direction: Direction) -> float:
    """Half of the delay, where packets may skip it and no jitter reaches so far down: it tells them apart."""
    delay, jitter = float(direction.delay or 0.0), direction.jitter
    reach = 0.0 if jitter is None else jitter.size * (1.0 if jitter.distribution == "uniform" else 4.0)
    return delay / 2 if direction.reordering is not None and reach < delay / 2 else 0.0


def _ceiling(rows: Sequence[Row]) -> float:
    """The largest delay of any simulated run, in seconds, and what the instrument may add to it."""
    largest = max(
        (float(delay.max()) for each in rows if len(delay := each.delay[~np.isnan(each.delay)])), default=np.inf
    )
    return largest + _OWN


def _probes(way: str, profile: Profile, direction: Direction, row: Row, *, apart: bool) -> Sequence[LinkLine]:
    """The lines on probes; `apart`: what is later than the profile can make any packet is told apart (`linklate`)."""
    runs = int(np.clip(_DRAWS // max(len(row.sent), 1), *_RUNS))
    own_rate = direction.rate is not None and not (
        profile.only_shaped or (profile.model == "netem" and direction.queue)
    )
    serial = 8 * (SIZE + HEADERS) / direction.rate if own_rate and direction.rate else 0.0
    fates = simulate(direction, profile.model, row.sent, runs=runs, seed=1, serial=serial)
    rows = [_simulated(fates, run, row) for run in range(runs)]
    _lose_headers(rows)
    row = replace(row, ceiling=_ceiling(rows))
    expected = [statistics(each) for each in rows]
    lines = tuple(_lines(way, direction, row, rows, expected))
    if not apart or all(line.ok is not False for line in lines):
        return lines
    share, rest = linklate.without_late(row)
    if rest is None:
        return lines
    return linklate.mended(lines, tuple(_lines(way, direction, rest, rows, expected, apart=True)), share)


def _lines(
    way: str,
    direction: Direction,
    row: Row,
    rows: list[Row],
    expected: Sequence[Mapping[str, float]],
    *,
    apart: bool = False,
) -> Iterator[LinkLine]:
    found = statistics(row)
    judged = direction.rate_trace is None  # the wait for an opportunity depends on when the trace began
    for each in PROPERTIES:
        values = np.array([run[each.name] for run in expected])
        stated = linkwords.stated(direction, each.name)
        if _worth(each, direction, found[each.name]):
            yield _line(way, each, stated, values, found[each.name], judged, len(row.sent))
    shift = linklate.shift(float(np.nanmean(row.delay))) if apart and not np.isnan(row.delay).all() else 0.0
    yield _shape(way, direction, row, rows, shift)


def _simulated(fates: Fates, run: int, row: Row) -> Row:
    lost = fates.lost[run]
    delay = np.where(lost | fates.corrupted[run], np.nan, fates.delay[run])
    return Row(row.sent, lost, fates.duplicated[run] & ~lost, fates.corrupted[run] & ~lost, delay, row.floor)


def _lose_headers(rows: list[Row]) -> None:
    """A corrupted probe whose bit is in its IP or UDP header hardly ever reaches the prober."""
    random = np.random.default_rng(2)
    for row in rows:
        if row.corrupted.any():
            bit = random.random(len(row.lost))
            gone = row.corrupted & (bit < _FATAL)
            silent = row.corrupted & (bit > 1 - _SILENT)
            row.lost[gone], row.delay[gone] = True, np.nan
            row.corrupted[gone | silent] = False


def _worth(each: Property, direction: Direction, found: float) -> bool:
    """Whether there is something to say: correlated noise of the instrument, or bursts of no losses, say nothing."""
    if each.name == "skipped" and not _floor(direction):
        return False
    return not np.isnan(found) and (each.name != "delay_lag1" or direction.jitter is not None)


def _line(
    way: str, each: Property, stated: str, values: npt.NDArray[np.float64], achieved: float, judged: bool, count: int
) -> LinkLine:
    known = values[~np.isnan(values)]
    if not len(known) or not judged:
        note = "not judged: the profile says nothing of it" if judged else "not judged: it depends on the trace"
        return LinkLine(way, each.name, each.unit, stated, None, None, None, achieved, None, note)
    middle = float(known.mean())
    # Rare events come one by one: two packets more or fewer are always chance, and so is the length of a few bursts.
    grain = {"%": 200.0 / count, "packets": min(600.0 / count, 1.0)}.get(each.unit, 0.0)
    room = SPREADS * float(known.std()) + grain + max(each.slack, each.share * abs(middle))
    low, high = middle - room, middle + room
    if each.unit:
        low = max(low, 0.0)
    else:
        high = min(high, 1.0)
    return LinkLine(way, each.name, each.unit, stated, middle, low, high, achieved, low <= achieved <= high)


def _shape(way: str, direction: Direction, row: Row, rows: list[Row], shift: float) -> LinkLine:
    """The largest difference between the distribution functions of delays, met (all earlier by up to `shift` s) and simulated."""
    name, stated = "distribution", linkwords.stated(direction, "distribution")
    met = row.delay[~np.isnan(row.delay)]
    every = [each.delay[~np.isnan(each.delay)] for each in rows]
    pooled = np.concatenate(every) if every else np.array([])
    if not len(met) or not len(pooled) or pooled.std() < 50e-6:
        note = "not judged: the delay does not vary"
        return LinkLine(way, name, "", stated, None, None, None, None, None, note)
    pooled = np.sort(pooled)[:: max(len(pooled) // 20_000, 1)]
    chance = np.array([distance(each, pooled) for each in every[:60]])
    # What a shift by the instrument's own delay does to a distribution function.
    moved = float(
        (
            np.searchsorted(pooled, pooled + 50e-6, side="right") / len(pooled) - np.arange(len(pooled)) / len(pooled)
        ).max()
    )
    high = float(chance.mean()) + SPREADS * float(chance.std()) + moved
    found = min(distance(met - by, pooled) for by in np.linspace(0, shift, 7 if shift else 1))
    return LinkLine(
        way,
        name,
        "",
        stated,
        float(chance.mean()),
        0.0,
        high,
        found,
        found <= high,
        "largest difference of distribution functions",
    )


def _series(row: Row) -> tuple[LinkPoint, ...]:
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
    """What the emulator says of itself: how late packets left, and what was dropped that no profile asked for."""
    for report in reports:
        for each in report["directions"]:
            late, bound = float(each["lateness_us"]["p99"]), lateness.bound(profile)
            note = f"99 % of departures; at worst {each['lateness_us']['max'] / 1e3:.2f} ms{lateness.whose(each)}"
            way = each["name"].replace(" to ", ">")
            yield LinkLine(way, "late", "us", "", 0.0, 0.0, bound, late, late <= bound, note)
        if lost := lateness.unplanned(report):
            yield LinkLine("all", "unplanned", "packets", "", 0.0, 0.0, 0.0, float(lost), False)
