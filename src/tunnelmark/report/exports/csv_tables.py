"""Writes tables as CSV (RFC 4180): a line of names, text in quotes, numbers with all digits, lists and maps as JSON."""

from __future__ import annotations

from typing import BinaryIO

import pyarrow as pa
from pyarrow import csv

from tunnelmark.report.exports.plain_rows import flat

SUFFIX = ".csv"


def write(table: pa.Table, file: BinaryIO) -> None:
    """Write a table; a null is an empty field, an empty text is two quotes."""
    csv.write_csv(flat(table), file)
