"""Shows the feature matrix of VPNs: one table for a study, with each cell's source; Markdown tables for all VPNs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tunnelmark.model.features import Fact
from tunnelmark.vpns.feature_matrix import CRITERIA, Criterion, MatrixRow, brief, verdict

UNKNOWN = "not stated"
MARKS = {"yes": "✓", "partly": "~", "no": "✗"}
LEGEND = "✓ yes, ~ partly, ✗ no, ? not stated"
GROUPS = {
    "choosing": "What to choose by",
    "design": "How it is built",
    "measured": "Measured in the lab, on three nodes at rest",
}


@dataclass(frozen=True, slots=True)
class FeatureCell:
    """A VPN's value for one criterion, and the source that states it."""

    value: str
    source: str


@dataclass(frozen=True, slots=True)
class FeatureTable:
    """The feature matrix: `heads` are the VPNs; a line is a criterion's title, its question, and a cell per VPN."""

    heads: tuple[str, ...]
    lines: tuple[tuple[str, str, tuple[FeatureCell, ...]], ...]


def features(record: Mapping[str, Any]) -> FeatureTable | None:
    """Return the table from the content of `environment.json`; None if the results have no feature matrix."""
    rows = [row for row in record.get("matrix") or () if row.get("cells")]
    if not rows:
        return None
    lines = []
    for criterion in CRITERIA:
        cells = [row["cells"].get(criterion.key) for row in rows]
        if any(cells):
            shown = tuple(
                FeatureCell(cell["value"], f"{cell['source']} ({cell['date']})") if cell else FeatureCell("", UNKNOWN)
                for cell in cells
            )
            lines.append((criterion.title, criterion.question, shown))
    return FeatureTable(tuple(str(row["title"]) for row in rows), tuple(lines))


def mark(criterion: Criterion, fact: Fact | None) -> str:
    """Return the text of what is known of a VPN for one criterion; `?` if `fact` is None, because nothing is known.

    In the group `choosing` (what to choose a VPN by), a value that begins with yes, partly or no becomes ✓, ~ or ✗.
    Every other value is shortened.
    """
    if fact is None:
        return "?"
    said = verdict(fact.value)
    return MARKS[said] if said and criterion.group == "choosing" else brief(fact.value)


def markdown(rows: Sequence[MatrixRow], groups: Iterable[str] = GROUPS) -> str:
    """Return a Markdown table for each group of criteria (see `GROUPS`), with a row for each VPN.

    The table of the group `design` has a row for each criterion instead, because its values are long.
    """
    parts = []
    for group in groups:
        criteria = [criterion for criterion in CRITERIA if criterion.group == group]
        if group == "design":
            head = ["", *(row.title for row in rows)]
            lines = [[c.title, *(_value(row.cells.get(c.key)) for row in rows)] for c in criteria]
        else:
            head = ["", *(c.title for c in criteria)]
            lines = [[row.title, *(mark(c, row.cells.get(c.key)) for c in criteria)] for row in rows]
        legend = f"\n\n{LEGEND}" if group == "choosing" else ""
        parts.append(f"### {GROUPS[group]}\n\n{_pipes([head, ['---'] * len(head), *lines])}{legend}")
    return "\n\n".join(parts)


def _value(fact: Fact | None) -> str:
    return fact.value if fact else UNKNOWN


def _pipes(lines: Iterable[Sequence[str]]) -> str:
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)
