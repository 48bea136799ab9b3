"""Reads the data files of flent (https://flent.org), the FLExible Network Tester: `NAME.flent.gz`, one test each, in JSON.

The format is that of flent's own `resultset.py`, versions 1 to 4: metadata, series on a common axis of time, and from version 2 on the raw values
with the time of each. A file is one run of one test: it holds no blocks and no bare link, so nothing in it is paired.
"""

from __future__ import annotations

import bz2
import gzip
import json
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from math import isfinite
from pathlib import Path
from typing import Any

from tunnelmark.errors import StoreError

SUFFIXES = (".flent", ".flent.gz", ".flent.bz2")
NEWEST = 4
"""The newest version of flent's format that can be read."""

_RATES = {"bits/s": 1.0, "kbits/s": 1e3, "mbits/s": 1e6, "gbits/s": 1e9}
_OPENERS: Mapping[str, Callable[[bytes], bytes]] = {".gz": gzip.decompress, ".bz2": bz2.decompress}


@dataclass(frozen=True, slots=True)
class FlentSeries:
    """One series. `points` are pairs: seconds since the test began, and the value in `unit` (rates are in bit/s)."""

    name: str
    unit: str
    points: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class FlentFile:
    """One data file: the name of flent's test, and the title that its user gave it ("" if none).

    `started`: when the test began (seconds since 1970). `length`: its planned length in s. Each is None if not recorded.
    """

    path: Path
    test: str
    title: str
    started: float | None
    length: float | None
    series: tuple[FlentSeries, ...]


def is_flent(path: Path) -> bool:
    """Return whether a path has one of the suffixes of flent's data files."""
    return path.name.endswith(SUFFIXES)


def read(path: Path) -> FlentFile:
    """Read a data file of flent. StoreError if it cannot be read, is damaged, or has a newer version than `NEWEST`."""
    try:
        content = json.loads(_OPENERS.get(path.suffix, bytes)(path.read_bytes()))
        if not isinstance(content, dict):
            raise TypeError("it is not a JSON object")
        version = int(content.get("version", 1))
        if version > NEWEST:
            raise StoreError(
                f"{path} has version {version} of flent's format, and {NEWEST} is the newest that is known",
                hint="update tunnelmark, or write the file with an older flent",
            )
        return _file(path, content)
    except OSError as error:
        raise StoreError(
            f"{path} cannot be read: {error.strerror or error}", hint="is it a data file of flent?"
        ) from error
    except (ValueError, TypeError, KeyError, EOFError, AttributeError, zlib.error) as error:
        raise StoreError(
            f"{path} is not a data file of flent: {error}", hint="they are named NAME.flent.gz and hold JSON"
        ) from None


def _file(path: Path, content: Mapping[str, Any]) -> FlentFile:
    metadata = content["metadata"]
    began = _moment(metadata.get("T0") or metadata.get("TIME"))
    results, raw = content["results"], content.get("raw_values") or {}
    series = []
    for name in dict.fromkeys((*results, *raw)):
        unit = _unit(name, (metadata.get("SERIES_META") or {}).get(name) or {})
        points = _raw(raw.get(name) or (), began) or _common(content["x_values"], results.get(name) or ())
        factor = _RATES.get(unit.casefold(), 1.0)
        known = "bit/s" if unit.casefold() in _RATES else unit
        series.append(FlentSeries(name, known, tuple((time, value * factor) for time, value in points)))
    length = metadata.get("LENGTH")
    return FlentFile(
        path,
        str(metadata["NAME"]),
        str(metadata.get("TITLE") or ""),
        began,
        float(length) if length is not None else None,
        tuple(series),
    )


def _raw(values: Sequence[Mapping[str, Any]], began: float | None) -> list[tuple[float, float]]:
    """Return a series from raw values, whose times are seconds since 1970.

    [] if it is not known when the test began.
    """
    if began is None:
        return []
    return [
        (float(each["t"]) - began, float(each["val"]))
        for each in values
        if "t" in each and isinstance(each.get("val"), int | float) and isfinite(each["val"])
    ]


def _common(times: Sequence[float], values: Sequence[float | None]) -> list[tuple[float, float]]:
    return [(float(time), float(value)) for time, value in zip(times, values, strict=True) if value is not None]


def _unit(name: str, meta: Mapping[str, Any]) -> str:
    """Return the unit of a series; "" if it is not known. In older files only the name of the series shows it."""
    if meta.get("UNITS"):
        return str(meta["UNITS"])
    if "(ms)" in name:
        return "ms"
    return "Mbits/s" if name.startswith(("TCP", "UDP", "BE", "EF")) else ""


def _moment(text: object) -> float | None:
    """Return flent's ISO 8601 text as seconds since 1970.

    None if it is not text. Without a zone (older files) it is UTC.
    """
    if not isinstance(text, str):
        return None
    moment = datetime.fromisoformat(text)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
