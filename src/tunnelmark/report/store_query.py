"""Answers SQL about runs: DuckDB over the tidy tables, in memory, without access to files, network and extensions."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tunnelmark.errors import UsageError
from tunnelmark.report.exports.tidy import StoredRuns
from tunnelmark.report.exports.views import VIEWS

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_CLOSED = {
    "enable_external_access": "false",  # no files, no network, no other database
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
    "python_enable_replacements": "false",  # a name in a query is a view, never a variable of this program
    "lock_configuration": "true",  # the last one: after it, no setting can be changed
}
"""Settings of DuckDB, in their order: https://duckdb.org/docs/stable/operations_manual/securing_duckdb/overview"""

_MAY = ("SELECT", "EXPLAIN", "MULTI")
"""The kinds of statements that only read. MULTI is a PIVOT, which DuckDB carries out in two steps."""

_BY_NAME = {"query", "query_table"}
"""Functions that take the name of a view as a text; the text may be put together from pieces."""

_WORD = re.compile(r"\w+")


def ask(runs: StoredRuns, sql: str) -> pa.Table:
    """Return the answer to one SQL statement that only reads, as an Arrow table.

    Raises UsageError if the statement is wrong, if it would change something, or if there are several statements. If
    DuckDB refuses the statement, the error has DuckDB's message, and its hint helps further: if a view or a column is
    unknown, by the names of those that exist.
    """
    import duckdb

    with duckdb.connect(":memory:") as connection:
        _offer(connection, runs, sql)
        for setting, value in _CLOSED.items():
            connection.execute(f"SET {setting} = {value}")
        try:
            statements = connection.extract_statements(sql)
            if len(statements) != 1:
                raise UsageError(
                    f"the query holds {len(statements)} statements",
                    hint='one is answered at a time, such as "SELECT arm, count(*) FROM trials GROUP BY arm"',
                )
            kind = statements[0].type.name
            if kind not in _MAY:
                raise UsageError(
                    f"a query only asks, and this is {kind}",
                    hint="results are never changed; start with SELECT, WITH, FROM, DESCRIBE, SUMMARIZE or PIVOT",
                )
            return connection.sql(sql).to_arrow_table()
        except duckdb.Error as error:
            raise UsageError(_sentence(str(error)), hint=_hint(error, sql)) from error


def _offer(connection: DuckDBPyConnection, runs: StoredRuns, sql: str) -> None:
    """Register the views; those that the query does not name are empty, because an analysis takes seconds."""
    words = _words(sql)
    all_of_them = bool(words & _BY_NAME)
    for name, view in VIEWS.items():
        needed = name in words or all_of_them
        connection.register(name, runs.table(name) if needed else view.schema.empty_table())


def _words(sql: str) -> set[str]:
    return {word.lower() for word in _WORD.findall(sql)}


def _sentence(text: str) -> str:
    """Return DuckDB's message without the kind of error in front of it, as our own messages are."""
    return re.sub(r"^\w[\w ]* Error: ", "", text).strip()


def _hint(error: Exception, sql: str) -> str:
    """Return the columns of the named views if one is unknown, the views if a view is unknown, else general help."""
    import duckdb

    named = [view for name, view in VIEWS.items() if name in _words(sql)]
    if isinstance(error, duckdb.BinderException) and named:
        return "; ".join(f"columns of {view.name}: {', '.join(view.names)}" for view in named)
    if isinstance(error, duckdb.CatalogException) and "Table" in str(error):
        return f"views: {', '.join(VIEWS)}; `tunnelmark query --schema` shows their columns"
    if isinstance(error, duckdb.PermissionException):
        return (
            "a query sees the views alone: no files, network or extensions; write what it finds with --format and --to"
        )
    return "the language is DuckDB's SQL; `tunnelmark query --schema` shows views and columns"


def schema() -> Iterable[tuple[str, str, list[tuple[str, str, str, str]]]]:
    """Yield each view: its name, what one row is, and its columns (name, type in SQL, unit, meaning)."""
    for view in VIEWS.values():
        rows = [(each.name, _in_sql(each.type), each.unit, each.meaning) for each in view.columns]
        yield view.name, view.row, rows


def _in_sql(kind: pa.DataType) -> str:
    """Return DuckDB's name for an Arrow type. KeyError if no view has such a type."""
    if pa.types.is_map(kind):
        return f"MAP({_in_sql(kind.key_type)}, {_in_sql(kind.item_type)})"
    if pa.types.is_list(kind):
        return f"{_in_sql(kind.value_type)}[]"
    names: dict[Any, str] = {
        pa.string(): "VARCHAR",
        pa.int64(): "BIGINT",
        pa.float64(): "DOUBLE",
        pa.bool_(): "BOOLEAN",
        pa.timestamp("us"): "TIMESTAMP",
    }
    return names[kind]
