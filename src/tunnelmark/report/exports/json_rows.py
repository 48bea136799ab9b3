"""Writes tables as JSON: a list with an object for each row."""

from __future__ import annotations

import json
from typing import BinaryIO

import pyarrow as pa

from tunnelmark.report.exports.plain_rows import records

SUFFIX = ".json"


def write(table: pa.Table, file: BinaryIO) -> None:
    """Write a table as indented JSON with a newline at its end. A number that is not finite is written as null."""
    file.write((json.dumps(records(table), indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode())
