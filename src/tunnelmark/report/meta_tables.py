"""Several runs as tables and sentences: the same for the terminal, Markdown and HTML; and as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from math import expm1

from tunnelmark.analyse.meta_analysis import Merged, MergedRow
from tunnelmark.analyse.model import Comparison, Interval
from tunnelmark.analyse.pairing import effect
from tunnelmark.record.results import MetricInfo
from tunnelmark.report import formatting

SCHEMA = 1


@dataclass(frozen=True, slots=True)
class MetaTable:
    """A table as text, the first column naming the rows."""

    heading: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def title(merged: Merged) -> str:
    """The study's title, and how many runs there are."""
    return f"{merged.title}: {len(merged.sessions)} sessions"


def outcome(merged: Merged) -> tuple[MetaTable, ...]:
    """What the arms do against direct: a table for each primary metric in each setting."""
    return _tables(merged, [row for row in merged.rows if row.metric.primary], "arm")


def pairs(merged: Merged) -> tuple[MetaTable, ...]:
    """The same for every two arms other than direct: what limits both alike cancels."""
    tables = _tables(merged, merged.pairs, "arms")
    return tuple(replace(table, heading=f"{table.heading}, arms against each other") for table in tables)


def others(merged: Merged) -> tuple[MetaTable, ...]:
    """The same against direct by metrics that explain."""
    return _tables(merged, [row for row in merged.rows if not row.metric.primary], "arm")


def sessions(merged: Merged) -> MetaTable:
    """The runs that were joined."""
    rows = []
    for each in merged.sessions:
        when = datetime.fromtimestamp(each.started, UTC).strftime("%Y-%m-%d %H:%M UTC") if each.started else ""
        gates = "passed" if not each.failed_gates else f"not: {', '.join(each.failed_gates)}"
        rows.append((each.name, each.machine, each.boot[:8], when, str(each.blocks), str(each.seed), each.plan, gates))
    return MetaTable(
        "Sessions", ("session", "machine", "boot", "begun", "blocks", "seed", "plan", "gates"), tuple(rows)
    )


def machines(merged: Merged) -> tuple[str, ...]:
    """Each machine in a sentence."""
    found = dict.fromkeys((each.machine, each.described) for each in merged.sessions)
    return tuple(f"{letter}: {described}" for letter, described in found)


def legend(merged: Merged) -> str:
    """How to read the tables."""
    unit = merged.rows[0].combined.unit if merged.rows else "session"
    reference = merged.reference or "direct"
    text = (
        f"Mean: over {unit}s, of the effects against {reference} (or the second arm) inside of blocks; in brackets its 95 % interval. "
        f"It covers {merged.covers}. One more {unit}: what a run of this length there would print in 95 of 100 cases. "
        "Sessions: how many, the least and the largest of what they say. Standard deviations (sd): between machines, between sessions of "
        "one machine, and between blocks of a session, of which each has one deployment and one trial."
    )
    return (
        text
        if any(row.combined.low is not None for row in merged.rows)
        else f"{text} Fewer than three give no interval."
    )


def render_json(merged: Merged) -> str:
    """One JSON document; effects are ratios or differences in the metric's unit, deviations are additive (of logarithms)."""
    document = {
        "schema": SCHEMA,
        "study": merged.study,
        "title": merged.title,
        "reference": merged.reference,
        "covers": merged.covers,
        "cautions": merged.cautions,
        "not_joined": merged.not_joined,
        "sessions": [asdict(each) for each in merged.sessions],
        "rows": [_plain(row) for row in merged.rows],
        "pairs": [_plain(row) for row in merged.pairs],
    }
    return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _plain(row: MergedRow) -> dict[str, object]:
    found, metric = row.combined, row.metric
    ends = ("low", "high", "next_low", "next_high")
    terms = {key: None if (end := getattr(found, key)) is None else effect(metric, end) for key in ends}
    return {
        "arm": row.arm,
        "against": row.against,
        **asdict(row.setting),
        "metric": metric.name,
        "metric_unit": metric.unit,
        "compare": metric.compare,
        "primary": metric.primary,
        **asdict(found),
        "mean": effect(metric, found.mean),
        **terms,
        "success": asdict(row.success),
        "each": [{**asdict(each), "estimate": effect(metric, each.estimate)} for each in row.effects],
        "left_out": dict(row.left_out),
    }


def _tables(merged: Merged, rows: Sequence[MergedRow], first: str) -> tuple[MetaTable, ...]:
    groups: dict[tuple[str, ...], list[MergedRow]] = {}
    several = (
        len({row.setting.profile for row in merged.rows}) > 1 or len({row.setting.topology for row in merged.rows}) > 1
    )
    for row in rows:
        where = f", {row.setting.profile}, {row.setting.topology}" if several else ""
        groups.setdefault((f"{row.metric.title}{where}",), []).append(row)
    made = []
    for (heading,), members in groups.items():
        unit = members[0].combined.unit
        columns = [
            first,
            "ok",
            "mean [95 %]",
            f"one more {unit}",
            "sessions",
            "sd machines",
            "sd sessions",
            "sd blocks",
        ]
        shown = [_row(row, first) for row in members]
        kept = [place for place, _ in enumerate(columns) if place < 3 or any(row[place] for row in shown)]
        made.append(
            MetaTable(heading, tuple(columns[p] for p in kept), tuple(tuple(row[p] for p in kept) for row in shown))
        )
    return tuple(made)


def _row(row: MergedRow, first: str) -> tuple[str, ...]:
    found, metric = row.combined, row.metric
    estimates = [each.estimate for each in row.effects]
    spread = _told(row, min(estimates)), _told(row, max(estimates))
    return (
        row.arm if first == "arm" else f"{row.arm} / {row.against}",
        formatting.share(row.success),
        _told(row, found.mean, found.low, found.high),
        _ends(row, found.next_low, found.next_high),
        f"{len(estimates)}: {' to '.join(dict.fromkeys(spread))}",
        *(_deviation(metric, each) for each in (found.sd_machines, found.sd_sessions, found.sd_blocks)),
    )


def _comparison(row: MergedRow, mean: float, low: float | None = None, high: float | None = None) -> Comparison:
    """Additive figures as the comparison of a single run, which has words already."""
    metric, interval = row.metric, None
    if low is not None and high is not None:
        interval = Interval(effect(metric, low), effect(metric, high), "student")
    estimate = effect(metric, mean)
    return Comparison(
        row.arm, row.against, row.setting, metric.name, (), (), estimate, interval, None, None, 0.0, False
    )


def _told(row: MergedRow, mean: float, low: float | None = None, high: float | None = None) -> str:
    return formatting.effect(row.metric, _comparison(row, mean, low, high))


def _ends(row: MergedRow, low: float | None, high: float | None) -> str:
    if low is None or high is None:
        return ""
    return formatting.ends(row.metric, _comparison(row, (low + high) / 2, low, high))


def _deviation(metric: MetricInfo, value: float | None) -> str:
    """A standard deviation of logarithms as per cent up, or of differences in their unit."""
    if value is None:
        return ""
    if metric.compare == "ratio":
        return formatting.with_unit(formatting.number(100 * expm1(value), 2), "%")
    if metric.unit == "%":
        return formatting.with_unit(formatting.number(value, 2), "points")
    scale = formatting.scale(metric.unit, [value])
    return scale.value(float(f"{value:.2g}"))
