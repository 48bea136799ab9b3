"""Turns joined runs into the tables and sentences that reports for terminal, Markdown and HTML share, and into JSON."""

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
from tunnelmark.report import formatting, titles

SCHEMA = 1

_LEVELS = (
    "Sessions: how many, the least and the largest of what they say. Standard deviations (sd): between machines, between sessions of "
    "one machine, and between blocks of a session, of which each has one deployment and one trial."
)


@dataclass(frozen=True, slots=True)
class MetaTable:
    """A table as text; the first column names the rows."""

    heading: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def title(merged: Merged) -> str:
    """Return the study's title, and the number of its sessions."""
    return f"{merged.title}: {len(merged.sessions)} sessions"


def outcome(merged: Merged) -> tuple[MetaTable, ...]:
    """Return the effects of the arms against direct: a table for each primary metric in each setting."""
    return _tables(merged, [row for row in merged.rows if row.metric.primary], "arm")


def pairs(merged: Merged) -> tuple[MetaTable, ...]:
    """Return the effects of the arms against each other, without direct: a table for each primary metric and setting.

    What slows both arms of a pair by the same factor does not change their ratio.
    """
    tables = _tables(merged, merged.pairs, "arms")
    return tuple(replace(table, heading=f"{table.heading}, arms against each other") for table in tables)


def others(merged: Merged) -> tuple[MetaTable, ...]:
    """Return the effects of the arms against direct: a table for each metric that is not primary in each setting."""
    return _tables(merged, [row for row in merged.rows if not row.metric.primary], "arm")


def sessions(merged: Merged) -> MetaTable:
    """Return a table of the runs that were joined."""
    rows = []
    for each in merged.sessions:
        when = datetime.fromtimestamp(each.started, UTC).strftime("%Y-%m-%d %H:%M UTC") if each.started else ""
        gates = "passed" if not each.failed_gates else f"not: {', '.join(each.failed_gates)}"
        rows.append((each.name, each.machine, each.boot[:8], when, str(each.blocks), str(each.seed), each.plan, gates))
    return MetaTable(
        "Sessions", ("session", "machine", "boot", "begun", "blocks", "seed", "plan", "gates"), tuple(rows)
    )


def machines(merged: Merged) -> tuple[str, ...]:
    """Return a text for each machine, with its letter and its description."""
    found = dict.fromkeys((each.machine, each.described) for each in merged.sessions)
    return tuple(f"{letter}: {described}" for letter, described in found)


def legend(merged: Merged) -> str:
    """Return sentences that say how to read the tables."""
    unit = merged.rows[0].combined.unit if merged.rows else "session"
    reference = merged.reference or "direct"
    shown = [row.combined for row in merged.rows]
    likely = any(each.low is not None for each in shown)
    text = [
        f"Effects are against {reference} (or the second arm) inside of blocks, with 95 % intervals. {unit.capitalize()}s like these: the mean over "
        f"{unit}s, as far as those measured are like others; it covers {merged.covers}."
        if likely
        else f"Effects are against {reference} (or the second arm) inside of blocks. Fewer than three {unit}s give no interval for others.",
        f"One more {unit}: what a run of this length there would print in 95 of 100 cases." if likely else "",
        f"These {unit}s: the mean of those alone, by their own blocks; it says nothing of another {unit}."
        if any(each.here_low is not None for each in shown)
        else "",
        _LEVELS,
        "No session has two blocks: what blocks and what the level above them do cannot be separated, and is given together."
        if any(each.sd_blocks is None for each in shown)
        else "",
    ]
    return " ".join(filter(None, text))


def same(merged: Merged) -> str:
    """Return in a sentence whether an arm agrees with its own twin (A/A comparison) over machines or sessions.

    The sentence begins with a sign: ✓ they agree, ✗ they differ, ? it was not judged.
    """
    sign = {"agrees": "✓", "differs": "✗", "not judged": "?"}[merged.same.standing]
    return f"{sign} A/A: {merged.same.explanation}."


def render_json(merged: Merged) -> str:
    """Return the joined runs as one JSON document, with a newline at its end.

    Effects are ratios, or differences in the metric's unit. Standard errors, deviations and variances are those of the
    natural logarithms of the ratios, or of the differences.
    """
    document = {
        "schema": SCHEMA,
        "study": merged.study,
        "title": merged.title,
        "reference": merged.reference,
        "covers": merged.covers,
        "same": asdict(merged.same),
        "cautions": merged.cautions,
        "not_joined": merged.not_joined,
        "sessions": [asdict(each) for each in merged.sessions],
        "rows": [_plain(row) for row in merged.rows],
        "pairs": [_plain(row) for row in merged.pairs],
    }
    return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _plain(row: MergedRow) -> dict[str, object]:
    found, metric = row.combined, row.metric
    ends = ("low", "high", "next_low", "next_high", "here_low", "here_high")
    terms = {key: _effect(metric, getattr(found, key)) for key in ends}
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
        "here": effect(metric, found.here),
        **terms,
        "by_unit": [
            {"name": each.name} | {key: _effect(metric, getattr(each, key)) for key in ("estimate", "low", "high")}
            for each in found.by_unit
        ],
        "success": asdict(row.success),
        "each": [
            {
                **asdict(each),
                "estimate": effect(metric, each.estimate),
                "values": [effect(metric, value) for value in each.values],
            }
            for each in row.effects
        ],
        "left_out": dict(row.left_out),
    }


def _effect(metric: MetricInfo, value: float | None) -> float | None:
    return None if value is None else effect(metric, value)


def by_metric(merged: Merged, rows: Sequence[MergedRow]) -> dict[str, list[MergedRow]]:
    """Group the rows by metric and setting; each group's key is its heading."""
    groups: dict[str, list[MergedRow]] = {}
    metrics = {
        (row.setting.workload, row.metric.name): (row.setting.workload, row.metric) for row in merged.rows
    }.values()
    several = (
        len({row.setting.profile for row in merged.rows}) > 1 or len({row.setting.topology for row in merged.rows}) > 1
    )
    for row in rows:
        where = f", {row.setting.profile}, {row.setting.topology}" if several else ""
        named = titles.among(metrics, row.setting.workload, row.metric)
        groups.setdefault(f"{named}{where}", []).append(row)
    return groups


def _tables(merged: Merged, rows: Sequence[MergedRow], first: str) -> tuple[MetaTable, ...]:
    made = []
    for heading, members in by_metric(merged, rows).items():
        columns = _columns(members, first)
        kept = [(name, cells) for name, cells in columns if name in (first, "ok") or any(cells)]
        rows_ = tuple(zip(*(cells for _, cells in kept), strict=True))
        made.append(MetaTable(heading, tuple(name for name, _ in kept), rows_))
    return tuple(made)


def _columns(rows: Sequence[MergedRow], first: str) -> list[tuple[str, list[str]]]:
    """Return each column's heading with its cells. The caller leaves out a column that is empty in all rows."""
    found = [row.combined for row in rows]
    unit, units = found[0].unit, {each.units for each in found}
    these = f"this {unit}" if units == {1} else f"these {f'{max(units)} ' if len(units) == 1 else ''}{unit}s"
    likely = any(each.low is not None for each in found)
    own = any(each.here_low is not None for each in found)
    # A mean without an interval is shown only if the mean of just these units has no interval either.
    means = [told(row, row.combined.mean, row.combined.low, row.combined.high) for row in rows]
    spans = [dict.fromkeys(told(row, end(each.estimate for each in row.effects)) for end in (min, max)) for row in rows]
    return [
        (first, [row.arm if first == "arm" else f"{row.arm} / {row.against}" for row in rows]),
        ("ok", [formatting.share(row.success) for row in rows]),
        (f"{unit}s like these [95 %]" if likely else "mean", means if likely or not own else []),
        (f"one more {unit}", [_ends(row, row.combined.next_low, row.combined.next_high) for row in rows]),
        (f"{these} [95 %]", [_here(row) for row in rows] if own else []),
        ("sessions", [f"{len(row.effects)}: {' to '.join(span)}" for row, span in zip(rows, spans, strict=True)]),
        ("sd machines", [_deviation(row.metric, row.combined.sd_machines) for row in rows]),
        ("sd sessions", [_deviation(row.metric, row.combined.sd_sessions) for row in rows]),
        ("sd blocks", [_deviation(row.metric, row.combined.sd_blocks) for row in rows]),
    ]


def _here(row: MergedRow) -> str:
    return told(row, row.combined.here, row.combined.here_low, row.combined.here_high)


def _comparison(row: MergedRow, mean: float, low: float | None = None, high: float | None = None) -> Comparison:
    """Return additive effects (log ratios or differences) as a comparison of one run, which has words already."""
    metric, interval = row.metric, None
    if low is not None and high is not None:
        interval = Interval(effect(metric, low), effect(metric, high), "student")
    estimate = effect(metric, mean)
    return Comparison(
        row.arm, row.against, row.setting, metric.name, (), (), estimate, interval, None, None, 0.0, False
    )


def told(row: MergedRow, mean: float, low: float | None = None, high: float | None = None) -> str:
    """Return a mean effect and its interval as text, as a ratio or a difference by the row's metric.

    `mean`, `low`, `high`: natural logarithms of ratios, or differences in the metric's unit. If `low` or `high` is
    None, the text has no interval.
    """
    return formatting.effect(row.metric, _comparison(row, mean, low, high))


def _ends(row: MergedRow, low: float | None, high: float | None) -> str:
    if low is None or high is None:
        return ""
    return formatting.ends(row.metric, _comparison(row, (low + high) / 2, low, high))


def _deviation(metric: MetricInfo, value: float | None) -> str:
    """Return a standard deviation in words: of log ratios as per cent upwards, of differences in their unit; or ""."""
    if value is None:
        return ""
    if metric.compare == "ratio":
        return formatting.with_unit(formatting.number(100 * expm1(value), 2), "%")
    if metric.unit == "%":
        return formatting.with_unit(formatting.number(value, 2), "points")
    scale = formatting.scale(metric.unit, [value])
    return scale.value(float(f"{value:.2g}"))
