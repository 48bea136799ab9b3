"""Separates the effects of a late emulator on a look from those of the link itself. Pure.

A look in a run says whether the link does what its profile says. How late packets leave the emulator changes from
second to second with the machine. This lateness is measured in every trial and decides the trial's grade
(`model.grades`). So looks in a run report lateness and do not judge it. They also do not judge a delay if the lateness
that the emulator reports explains why the delay is outside of its limits. And they leave out late probes, up to a share
of `MOST_LATE`, if the profile cannot make any probe so late. `check-link` judges lateness, such delays and such probes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tunnelmark.analyse.link.statistics import PROPERTIES, ProbeRow
from tunnelmark.model import emulator_health
from tunnelmark.record.link_check import LinkLine

MOST_LATE = 0.05
"""The largest share of probes that may be later than the profile can make a probe.

If more are, the other probes say too little."""

_GRADED = "not judged: every trial is graded by its own lateness"


def without_late(row: ProbeRow) -> tuple[float, ProbeRow | None]:
    """Return the share of probes that came later than any draw of the profile makes them, and the row without them.

    The row is None if the share is above `MOST_LATE`. The profile cannot make a probe so late, so the machine did: a
    prober, or the kernel on the path, had to wait for a processor.
    """
    late = row.delay > row.ceiling  # False where the ceiling or the delay is not known
    share = float(late.mean())
    if share > MOST_LATE:
        return share, None
    return share, replace(row, delay=np.where(late, np.nan, row.delay))


def shift(mean: float) -> float:
    """Return by how many seconds all delays may be too long together while their distribution still counts as stated.

    The result is the tolerance of the mean delay: a fixed time, or a share of `mean` (seconds) if the share is longer.
    Whether all delays are shifted too far is judged by the look's line on the mean delay, so the line on their
    distribution allows this shift. Other work on a path's cores can make all packets some 0.1 ms later.
    """
    allowed = next(each for each in PROPERTIES if each.name == "delay_mean")
    return max(allowed.slack / 1e3, allowed.share * mean)


def mended(lines: Sequence[LinkLine], rest: Sequence[LinkLine], share: float) -> tuple[LinkLine, ...]:
    """Return the lines of one direction; lines that are outside only because of late probes or a shift are replaced.

    `rest`: the same lines, computed without the late probes (`without_late`). A line that is outside of tolerance is
    replaced by the line of the same name in `rest` if that line is in tolerance. `share`: the share of late probes,
    from 0 to 1, which the note of the new line states.
    """
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
    """Return the line; if lateness explains why the line is outside of its tolerance, return it as "not judged".

    Lateness explains the line `late` itself, and a delay that is above its upper limit by no more than late packets can
    add. Any other line is returned unchanged. `reports`: the emulators' reports, which say how late packets left them.
    """
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
    """Return the lateness (us) from the first report that has packets of the direction `way`; None if none has any."""
    ways = emulator_health.directions_to(reports, way.partition(">")[2])
    return next((each["lateness_us"] for each in ways if each["lateness_us"]["count"]), None)


def _adds(name: str, late: Mapping[str, float]) -> float:
    """Return by how many ms the lateness `late` (us) can raise the line `name` at most; 0 if it does not move it."""
    match name:
        case "delay_p50":
            return late["p50"] / 1e3
        case "delay_mean":  # half are up to the median late, the rest but one in a hundred up to the 99th percentile
            return (0.5 * late["p50"] + 0.49 * late["p99"] + 0.01 * late["max"]) / 1e3
        case "delay_p99":
            return late["p99"] / 1e3
        case _:
            return 0.0
