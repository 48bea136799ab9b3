"""Turns rows into plain values for formats without lists, times or infinite numbers: JSON, CSV, the terminal."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from math import isfinite
from typing import Any

import pyarrow as pa


def records(table: pa.Table) -> list[dict[str, Any]]:
    """Return each row as a mapping that JSON can hold: times in ISO 8601, null for a number that is not finite.

    If two columns have the same name, only the last one remains.
    """
    return [dict(zip(table.column_names, row, strict=True)) for row in rows(table)]


def rows(table: pa.Table) -> list[tuple[Any, ...]]:
    """Return each row's values in a form that JSON can hold, in the order of the columns."""
    maps = [pa.types.is_map(field.type) for field in table.schema]
    columns = [
        [_plain(dict(value) if of_map and value is not None else value) for value in column.to_pylist()]
        for column, of_map in zip(table.columns, maps, strict=True)
    ]
    return list(zip(*columns, strict=True))


def flat(table: pa.Table) -> pa.Table:
    """Return the table with lists, maps and structures as JSON text, for CSV; other columns are unchanged."""
    columns = []
    for field, column in zip(table.schema, table.columns, strict=True):
        if pa.types.is_nested(field.type):
            of_map = pa.types.is_map(field.type)
            values = [_plain(dict(value) if of_map and value is not None else value) for value in column.to_pylist()]
            column = pa.array([None if value is None else _json(value) for value in values], pa.string())
        columns.append(column)
    return pa.table(columns, names=table.column_names)


def shown(value: Any) -> str:
    """Return a plain value as the terminal shows it: a float with at most ten significant digits, "" for null."""
    if value is None:
        return ""
    if isinstance(value, float):
        return format(value, ".10g")
    return value if isinstance(value, str) else _json(value)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return value if isfinite(value) else None
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, (datetime, date, time)):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, Mapping):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(inner) for inner in value]
    return str(value)
