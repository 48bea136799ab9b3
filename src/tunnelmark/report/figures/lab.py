"""Draws the lab itself: the link between the nodes, the order of the trials, and where the time went."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from markupsafe import Markup

from tunnelmark.analyse.model import Analysis
from tunnelmark.analyse.wall_time import WallTime
from tunnelmark.record.results import ProfileInfo, TopologyInfo
from tunnelmark.report import formatting, overview
from tunnelmark.report.figures import svg
from tunnelmark.units import Rate, Size, clock

_LEAST = 1.0
"""The least width of a trial's mark in pixels; narrower marks would run into each other."""


def link(topology: TopologyInfo, profile: ProfileInfo) -> Markup:
    """Draw the two nodes of a link, the middle node that shapes it, and the tunnel that the arms build over it."""
    nodes = next(iter(topology.links.values()), topology.nodes)
    left, right = (nodes[0], nodes[-1]) if nodes else ("a", "b")
    rate = str(Rate(profile.rate)) if profile.rate else "no rate set"
    queue = f"queue {Size(profile.queue)} each way" if profile.queue else "no queue set"
    parts = [
        svg.path([(96.0, 62.0), (96.0, 30.0), (664.0, 30.0), (664.0, 62.0)], "tunnel"),
        svg.text(380, 20, "the tunnel of the arm (direct has none)", "note", "middle"),
        svg.line(176, 92, 290, 92, "wire"),
        svg.line(470, 92, 584, 92, "wire"),
        *_box(96, 92, 160, f"node {left}", "VPN daemon, workload"),
        *_box(380, 92, 180, rate, queue),
        *_box(664, 92, 160, f"node {right}", "VPN daemon, workload"),
        svg.text(380, 142, "middle node: all shaping happens here", "note", "middle"),
    ]
    return svg.picture(152, f"Node {left} and node {right} are joined through a middle node: {rate}, {queue}", parts)


def order(analysis: Analysis) -> Markup:
    """Draw when each trial ran: a row per arm, a mark per trial from left to right; failed and void ones have a cross.

    If there are too many trials to tell them apart, there is one mark per arm and block. Empty without trials.
    """
    plan, trials = analysis.results.plan, analysis.results.trials
    if not trials:
        return Markup("")
    last = max(trial.position + 1 for trial in trials)  # with replacement blocks, which come last
    starts: dict[int, int] = {}
    for trial in trials:
        starts[trial.block] = min(trial.position, starts.get(trial.block, trial.position))
    row, top, right = 20.0, 22.0, svg.WIDTH - 8.0
    left = svg.names_width((arm.name for arm in plan.arms), letter=7.2, least=128.0)
    places = {arm.name: top + row * (index + 0.5) for index, arm in enumerate(plan.arms)}
    bottom = top + row * len(places)
    step = (right - left) / max(len(plan.trials), last, 1)
    frame = _Frame(places, left, step, starts, max(len(plan.trials), last))
    parts: list[str] = [svg.text(left - 12, y + 4, arm, "arm small", "end") for arm, y in places.items()]
    parts += [svg.line(left, y, right, y, "guide") for y in places.values()]
    parts += _each_trial(analysis, frame) if step >= _LEAST else _each_block(analysis, frame)
    labels_until = 0.0
    for block, position in sorted(starts.items()):
        x = left + position * step
        parts.append(svg.line(x, top - 6, x, bottom, "tick"))
        if x >= labels_until:
            parts.append(svg.text(x + 4, top - 8, label := f"block {block}", "note"))
            labels_until = x + 6.6 * len(label) + 8
    title = f"Order of the trials: {overview.ran(analysis)}, in {len(starts)} randomised blocks"
    return svg.picture(bottom + 6, title, parts)


@dataclass(frozen=True, slots=True)
class _Frame:
    """The positions of the marks of trials, in pixels.

    `rows`: the middle of each arm's row, from the top. `left`: the left edge. `step`: the width of one trial. `starts`:
    the first position of each block. `end`: the number of positions.
    """

    rows: Mapping[str, float]
    left: float
    step: float
    starts: Mapping[int, int]
    end: int


def _each_trial(analysis: Analysis, frame: _Frame) -> Iterator[str]:
    size = min(frame.step * 0.76, 11.0)
    disturbed = {found.trial for found in analysis.disturbed}
    shades = {use.name: index % 3 for index, use in enumerate(analysis.results.plan.workloads)}
    # Crosses come last, so that no other attempt at the same trial covers them.
    for trial in sorted(analysis.results.trials, key=lambda trial: trial.outcome != "ok"):
        x, y = frame.left + (trial.position + 0.5) * frame.step, frame.rows[trial.arm]
        again = f" (attempt {trial.attempt})" if trial.attempt > 1 else ""
        told = svg.element("title", f"{trial.position + 1}: {trial.trial}{again}, {trial.outcome}")
        shade = f"mark w{shades[trial.workload]}" + (" disturbed" if trial.trial in disturbed else "")
        if trial.outcome == "ok":
            corner = {"x": x - size / 2, "y": y - 5.5, "width": size, "height": 11.0}
            yield svg.element("rect", told, class_=shade, **corner)
        else:
            yield _cross(x, y, told)


def _each_block(analysis: Analysis, frame: _Frame) -> Iterator[str]:
    disturbed = {found.trial for found in analysis.disturbed}
    ends = dict(zip(sorted(frame.starts.values()), [*sorted(frame.starts.values())[1:], frame.end], strict=True))
    counts: dict[tuple[str, int], Counter[str]] = {}
    for trial in analysis.results.trials:
        how = trial.outcome if trial.outcome != "ok" else "disturbed" if trial.trial in disturbed else "good"
        counts.setdefault((trial.arm, trial.block), Counter())[how] += 1
    for (arm, block), found in counts.items():
        begin, y = frame.starts[block], frame.rows[arm]
        x, width = frame.left + begin * frame.step, (ends[begin] - begin) * frame.step
        said = ", ".join(f"{found[how]} {how}" for how in ("good", "disturbed", "void", "failed") if found[how])
        told = svg.element("title", f"{arm}, block {block}: {said}")
        shade = "mark w0" + (" disturbed" if found["disturbed"] else "")
        gap = min(2.0, width * 0.2)
        yield svg.element("rect", told, class_=shade, x=x + gap / 2, y=y - 5.5, width=width - gap, height=11.0)
        if found["failed"] or found["void"]:
            yield _cross(x + width / 2, y, told)


def _cross(x: float, y: float, told: Markup) -> Markup:
    return svg.element("path", told, d=f"M{x - 4:.1f} {y - 4:.1f}l8 8m0 -8l-8 8", class_="cross")


def time(wall: WallTime) -> Markup:
    """Draw the wall time as one bar with a part for each phase; empty if no phase took any time.

    A part is as wide as its share of the sum of all parts, which is more than the wall time if trials overlap.
    """
    parts_of = [(name, seconds) for name, seconds in wall.phases.items() if seconds > 0]
    if wall.outside > 0:
        parts_of.append(("outside of trials", wall.outside))
    total = sum(seconds for _, seconds in parts_of)
    if total <= 0:
        return Markup("")
    parts: list[str] = []
    x, labels_until = 8.0, 0.0
    for name, seconds in parts_of:
        width = (svg.WIDTH - 16.0) * seconds / total
        told = svg.element("title", f"{name}: {clock(seconds)}")
        kind = "part measure" if name == "measure" else "part"
        parts.append(svg.element("rect", told, x=x, y=6.0, width=width, height=26.0, class_=kind))
        label = f"{name} {formatting.percent(seconds / wall.wall)}" if wall.wall > 0 else name
        if width > 6.6 * len(label) and x >= labels_until:
            parts.append(svg.text(x + 1, 50, label, "note"))
            labels_until = x + 6.6 * len(label)
        x += width
    return svg.picture(58, f"Wall time by phase; {formatting.percent(wall.measuring)} is measuring", parts)


def _box(x: float, y: float, width: float, first: str, second: str) -> list[Markup]:
    return [
        svg.element("rect", x=x - width / 2, y=y - 30.0, width=width, height=60.0, rx=4, class_="box"),
        svg.text(x, y - 3, first, "arm", "middle"),
        svg.text(x, y + 15, second, "note", "middle"),
    ]
