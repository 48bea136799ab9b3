"""Separates what a late emulator does to a look from what the link does: lateness is graded with each trial. Pure.

A look before or after the trials says whether the link decides as its profile says. How late packets leave changes from
second to second with the machine. It is counted for every trial and decides the trial's grade (`model.grades`). So these
looks report lateness and do not judge it. Nor do they judge a delay that is too long by no more than the emulator itself says
that packets were late, or a few probes that are later than the profile can make any. `check-link` judges all of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tunnelmark.analyse.link.statistics import PROPERTIES, ProbeRow
from tunnelmark.record.link_check import LinkLine

MOST_LATE = 0.05
"""The share of probes that may be later than the profile can make any; with more a look says too little of the rest."""

_GRADED = "not judged: every trial is graded by its own lateness"


def without_late(row: ProbeRow) -> tuple[float, ProbeRow | None]:
    """The share of probes that came later than any draw of the profile makes them, and the row without them; None: too many.

    Nothing that the profile does can do that, so it was the machine: a prober or the path's kernel had no processor.
    """
    late = row.delay > row.ceiling  # False where the ceiling or the delay is not known
    share = float(late.mean())
    if share > MOST_LATE:
        return share, None
    return share, replace(row, delay=np.where(late, np.nan, row.delay))


def shift(mean: float) -> float:
    """The seconds by which all delays may be longer and still have the distribution that is stated: what the line on the mean
    allows, which judges it. A path whose cores other work takes makes all packets some tenth of a millisecond later.
    """
    allowed = next(each for each in PROPERTIES if each.name == "delay_mean")
    return max(allowed.slack / 1e3, allowed.share * mean)


def mended(lines: Sequence[LinkLine], rest: Sequence[LinkLine], share: float) -> tuple[LinkLine, ...]:
    """The lines; those that are outside only by the probes of `without_late` or by a shift are taken from the rest, with a note."""
    by_name = {line.name: line for line in rest if line.ok is True}
    without = (
        f"without {100 * share:.1f} % of the probes, later than any draw of the profile makes them" if share else ""
    )

    def mend(line: LinkLine) -> LinkLine:
        if line.ok is not False or line.name not in by_name:
            return line
        moved = "except for a shift of all, which the line on the mean judges" if line.name == "distribution" else ""
        return replace(by_name[line.name], note="; ".join(filter(None, (without, moved))))

    return tuple(mend(line) for line in lines)


def told_apart(line: LinkLine, reports: Sequence[Mapping[str, Any]]) -> LinkLine:
    """The line, not judged if it is about lateness or outside by no more than that explains."""
    if line.ok is not False:
        return line
    if line.name == "late":
        return replace(line, ok=None, note=f"{line.note}; {_GRADED}")
    late = _late(line.way, reports)
    if late is None or line.achieved is None or line.high is None:
        return line
    if 0 < line.achieved - line.high <= _adds(line.name, late):
        return replace(
            line, ok=None, note=f"not judged: packets left the emulator late, 1 in 100 by {late['p99'] / 1e3:.2f} ms"
        )
    return line


def _late(way: str, reports: Sequence[Mapping[str, Any]]) -> Mapping[str, float] | None:
    """The lateness in us of the first emulator that carries this way."""
    name = way.replace(">", " to ")
    ways = (each for report in reports for each in report["directions"] if each["name"] == name)
    return next((each["lateness_us"] for each in ways if each["lateness_us"]["count"]), None)


def _adds(name: str, late: Mapping[str, float]) -> float:
    """How much of a line, in its unit (ms), that lateness makes at the most."""
    match name:
        case "delay_p50":
            return late["p50"] / 1e3
        case "delay_mean":  # half are up to the median late, the rest but one in a hundred up to the 99th percentile
            return (0.5 * late["p50"] + 0.49 * late["p99"] + 0.01 * late["max"]) / 1e3
        case "delay_p99":
            return late["p99"] / 1e3
        case _:
            return 0.0
