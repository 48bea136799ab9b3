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
"""The newest version of the format that is known here."""

_RATES = {"bits/s": 1.0, "kbits/s": 1e3, "mbits/s": 1e6, "gbits/s": 1e9}
_OPENERS: Mapping[str, Callable[[bytes], bytes]] = {".gz": gzip.decompress, ".bz2": bz2.decompress}


@dataclass(frozen=True, slots=True)
class FlentSeries:
    """One series: its unit (rates in bit/s, as everywhere here), and pairs of seconds since the test began and value."""

    name: str
    unit: str
    points: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class FlentFile:
    """One file: the name of flent's test, the title that its user gave it (""), when it began (seconds since 1970), its planned length in s."""

    path: Path
    test: str
    title: str
    started: float | None
    length: float | None
    series: tuple[FlentSeries, ...]


def is_flent(path: Path) -> bool:
    """Whether a path is named as flent names its data files."""
    return path.name.endswith(SUFFIXES)


def read(path: Path) -> FlentFile:
    """The content of a data file of flent. StoreError where it cannot be read, is damaged, or is of a version that is not known."""
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
    """Raw values carry seconds since 1970; nothing where it is not known when the test began."""
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
    """A series' unit; older files have it only in the series' name."""
    if meta.get("UNITS"):
        return str(meta["UNITS"])
    if "(ms)" in name:
        return "ms"
    return "Mbits/s" if name.startswith(("TCP", "UDP", "BE", "EF")) else ""


def _moment(text: object) -> float | None:
    """Flent writes ISO 8601 in UTC, with a Z or, in older files, without."""
    if not isinstance(text, str):
        return None
    moment = datetime.fromisoformat(text)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
