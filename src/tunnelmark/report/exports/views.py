"""Defines the tidy tables of exports, queries and the Python API: what a row is, columns, types and units."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

_TEXT, _WHOLE, _REAL, _BOOL = pa.string(), pa.int64(), pa.float64(), pa.bool_()
_TIMES = pa.map_(_TEXT, _REAL)


@dataclass(frozen=True, slots=True)
class ViewColumn:
    """A column. `unit` is "" if it has none, and `as given` if the row's own column `unit` names it."""

    name: str
    type: pa.DataType
    meaning: str
    unit: str = ""


@dataclass(frozen=True, slots=True)
class View:
    """A table: its name, what one row of it is (in words), and its columns."""

    name: str
    row: str
    columns: tuple[ViewColumn, ...]

    @property
    def schema(self) -> pa.Schema:
        """The table's Arrow schema; each field's metadata has the unit and the meaning."""
        return pa.schema(
            pa.field(each.name, each.type, metadata={"unit": each.unit, "meaning": each.meaning})
            for each in self.columns
        )

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(each.name for each in self.columns)


_RUN = (
    ViewColumn("run", _TEXT, "the run's folder; with its parents where two are alike"),
    ViewColumn("study", _TEXT, "the study that was run"),
)
_SCENARIO = (
    ViewColumn("profile", _TEXT, "what the links do to packets"),
    ViewColumn("topology", _TEXT, "the nodes and links"),
    ViewColumn("workload", _TEXT, "the traffic, by the name that the study gives it"),
)
_ATTEMPT = (
    ViewColumn("block", _WHOLE, "the pass over all cells, from 1"),
    ViewColumn("arm", _TEXT, "what was compared: direct, or a VPN with options"),
    *_SCENARIO,
    ViewColumn("link", _TEXT, "the direction of the traffic, `a>b`"),
)
_STATE = (
    ViewColumn("trial", _TEXT, "the trial's id"),
    ViewColumn("attempt", _WHOLE, "the try at the trial, from 1"),
    ViewColumn("outcome", _TEXT, "ok, failed or void; void also where the trial's link was not what it says"),
)
_METRIC = (
    ViewColumn("metric", _TEXT, "the metric's name"),
    ViewColumn("unit", _TEXT, "the unit of the metric"),
)
_VALUE = (
    *_METRIC,
    ViewColumn("value", _REAL, "the value", "as given"),
)
_GRADE = (
    ViewColumn(
        "grade", _TEXT, "what the value is worth by this metric: good, disturbed or void; null without a result"
    ),
    ViewColumn(
        "used",
        _BOOL,
        "whether the analysis uses the value: of the attempt that counts, over the whole window, not void",
    ),
)
_PRIMARY = (
    ViewColumn("better", _TEXT, "whether higher or lower is better"),
    ViewColumn("is_primary", _BOOL, "whether the metric is ranked and judged; others explain"),
)

_ALL = (
    View(
        "runs",
        "one run",
        (
            *_RUN,
            ViewColumn("title", _TEXT, "the study's title"),
            ViewColumn("folder", _TEXT, "from where it was read"),
            ViewColumn("started", pa.timestamp("us"), "when its first session began, UTC"),
            ViewColumn("finished", _BOOL, "whether each planned trial has an attempt"),
            ViewColumn("blocks", _WHOLE, "the planned blocks"),
            ViewColumn("seed", _WHOLE, "the seed of order and links"),
            ViewColumn("smoke", _BOOL, "whether it was the study's short length"),
            ViewColumn("machine", _TEXT, "a letter: the same for runs between whose machines nothing differs"),
            ViewColumn("described", _TEXT, "the machine in words"),
            ViewColumn("tunnelmark", _TEXT, "the version of tunnelmark that measured"),
        ),
    ),
    View(
        "trials",
        "one attempt at a trial",
        (
            *_RUN,
            *_ATTEMPT,
            *_STATE,
            ViewColumn("grade", _TEXT, "what the result is worth: good, disturbed or void; null without a result"),
            ViewColumn("counts", _BOOL, "whether this is the attempt of its trial that the analysis uses"),
            ViewColumn("causes", pa.list_(_TEXT), "why the result is not good"),
            ViewColumn("reason", _TEXT, "the kind of the failure"),
            ViewColumn("message", _TEXT, "what went wrong"),
            ViewColumn("position", _WHOLE, "its place in the order of the run"),
            ViewColumn("started", pa.timestamp("us"), "when it began, UTC"),
            ViewColumn("phases", _TIMES, "how long each phase took", "s"),
            ViewColumn("first_packet", _TIMES, "until a first packet had arrived, by direction", "s"),
            ViewColumn(
                "host",
                _TIMES,
                "what other work took of the machine, in cores; pause_share as a share of the time, pause_longest in seconds, pauses as a number",
            ),
            ViewColumn("limits", _TIMES, "what held the traffic back (docs/watch.md)"),
            ViewColumn("raw", pa.list_(_TEXT), "kept files, below the run's folder"),
        ),
    ),
    View(
        "samples",
        "one value: of a whole window, or of a moment in it",
        (
            *_RUN,
            *_ATTEMPT,
            *_VALUE,
            ViewColumn("time", _REAL, "since the window began; null: the whole window", "s"),
            *_STATE,
            *_GRADE,
        ),
    ),
    View("metrics", "one value of a whole window", (*_RUN, *_ATTEMPT, *_VALUE, *_STATE, *_GRADE)),
    View(
        "effects",
        "one arm compared with another by one metric, over blocks that hold both",
        (
            *_RUN,
            *_SCENARIO,
            *_METRIC,
            ViewColumn("arm", _TEXT, "what was compared"),
            ViewColumn("against", _TEXT, "with what"),
            ViewColumn("effect", _TEXT, "ratio (a pure number), or difference (in `unit`)"),
            ViewColumn(
                "estimate", _REAL, "mean of the blocks (geometric for ratios); the median where there is a `doubt`"
            ),
            ViewColumn("low", _REAL, "lower end of the 95 % interval"),
            ViewColumn("high", _REAL, "upper end of the 95 % interval"),
            ViewColumn("method", _TEXT, "how the interval was made: bootstrap, student or sign"),
            ViewColumn("blocks", _WHOLE, "blocks that hold both arms"),
            ViewColumn("p", _REAL, "the chance of such an effect where there is none"),
            ViewColumn("q", _REAL, "p corrected over all comparisons of the family (Holm)"),
            ViewColumn("differs", _BOOL, "shown to be different: q below 5 %, and more than negligible"),
            ViewColumn("equal", _BOOL, "shown to be equal within the margin"),
            ViewColumn("detectable", _REAL, "the effect that a study of this size finds in 80 % of cases"),
            ViewColumn("doubt", _TEXT, "why the median is given: zeros, mostly zero, far off"),
            *_PRIMARY,
        ),
    ),
    View(
        "verdicts",
        "one arm in one scenario by one metric: what it reached, and how it compares with direct",
        (
            *_RUN,
            *_SCENARIO,
            *_METRIC,
            ViewColumn("arm", _TEXT, "what was compared"),
            ViewColumn(
                "verdict", _TEXT, "reference, better, worse, equal, undecided, too few blocks, failed, void, not run"
            ),
            ViewColumn("median", _REAL, "the median of the blocks", "as given"),
            ViewColumn("least", _REAL, "the smallest block", "as given"),
            ViewColumn("most", _REAL, "the largest block", "as given"),
            ViewColumn("blocks", _WHOLE, "blocks with a value"),
            ViewColumn("succeeded", _WHOLE, "trials that succeeded"),
            ViewColumn("tried", _WHOLE, "trials that say something of the arm"),
            ViewColumn("void", _WHOLE, "trials that the laboratory has spoilt"),
            ViewColumn("unreliable", _BOOL, "whether fewer than nine in ten succeeded"),
            ViewColumn("ceiling", _TEXT, "what held it down other than the arm: link, near the link, load, lab"),
            ViewColumn("bound", _TEXT, "what bound it, where that was watched"),
            ViewColumn("rank_first", _WHOLE, "the best rank that it may have"),
            ViewColumn("rank_last", _WHOLE, "the worst rank that it may have"),
            *_PRIMARY,
        ),
    ),
    View(
        "environment",
        "one recorded fact of the machine and its programs",
        (
            *_RUN,
            ViewColumn("key", _TEXT, "its place in environment.json, with dots: `vpns.tinc.version`"),
            ViewColumn("value", _TEXT, "as text; lists as JSON"),
        ),
    ),
)

VIEWS = {view.name: view for view in _ALL}
"""All tables by name, in the order in which they are shown."""
