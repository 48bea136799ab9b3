"""Reads and writes quantities with their units as text: bit rates, sizes in bytes, durations and shares.

Rates are in bit/s with decimal prefixes (as RFC 2544 and iproute2's `mbit` have them), sizes in
bytes with decimal (kB) or binary (KiB) prefixes, durations in seconds, shares from 0 to 1 written in per cent.
"""

from __future__ import annotations

import re
from math import isfinite

_NUMBER = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([A-Za-zµ/%]*)\s*")

_RATES = {"bit/s": 1, "kbit/s": 10**3, "Mbit/s": 10**6, "Gbit/s": 10**9}
_SIZES = {"B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
_SHARES = {"%": 0.01}
_DURATIONS = {"us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0}


class Rate(int):
    """A bit rate in bit/s."""

    @classmethod
    def parse(cls, text: object) -> Rate:
        """Read a rate such as `"1 Gbit/s"`.

        Raises ValueError, and says what would be right, unless `text` is a string with a number above zero and a unit.
        """
        return cls(_whole(text, _RATES, "a rate above zero such as '100 Mbit/s'"))

    def __str__(self) -> str:
        return _written(int(self), _RATES)


class Size(int):
    """A size in bytes."""

    @classmethod
    def parse(cls, text: object) -> Size:
        """Read a size such as `"512 KiB"`.

        Raises ValueError, and says what would be right, unless `text` is a string with a number above zero and a unit.
        """
        return cls(_whole(text, _SIZES, "a size above zero such as '512 KiB'"))

    def __str__(self) -> str:
        if int(self) >= 1024 and int(self) % 1024 == 0:
            return _written(int(self), {k: v for k, v in _SIZES.items() if "i" in k})
        return _written(int(self), {k: v for k, v in _SIZES.items() if "i" not in k})


class Duration(float):
    """A duration in seconds."""

    @classmethod
    def parse(cls, text: object) -> Duration:
        """Read a duration such as `"10 ms"`.

        Raises ValueError, and says what would be right, unless `text` is a string with a number above zero and a unit.
        """
        return cls(_quantity(text, _DURATIONS, "a duration above zero such as '10 ms' or '2 s'"))

    @classmethod
    def parse_moment(cls, text: object) -> Duration:
        """Read a point in time as the seconds since a beginning, such as `"0 s"`.

        Raises ValueError, and says what would be right, unless `text` is a string with a number from 0 on and a unit.
        """
        return cls(_quantity(text, _DURATIONS, "a time from '0 s' on, such as '10 ms' or '2 s'", zero=True))

    def __str__(self) -> str:
        return clock(self) if self >= 60 else _written(float(self), {"us": 1e-6, "ms": 1e-3, "s": 1.0})


class Share(float):
    """A share, probability or correlation from 0 to 1."""

    @classmethod
    def parse(cls, text: object) -> Share:
        """Read a share such as `"0.5 %"`.

        Raises ValueError, and says what would be right, unless `text` is a string with a share from 0 % to 100 %. A
        number without a unit is refused, because 1 could mean 1 % or 100 %.
        """
        share = _quantity(text, _SHARES, "a share from '0 %' to '100 %', such as '0.5 %'", zero=True)
        if share > 1:
            raise ValueError("is more than all: it should be a share from '0 %' to '100 %'")
        return cls(share)

    def __str__(self) -> str:
        return f"{100 * float(self):.6g} %"


def clock(seconds: float) -> str:
    """Return a duration, given in seconds, as text for people: `42 s`, `4 min 05 s`, `1 h 02 min`."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


def _whole(text: object, units: dict[str, int], right: str) -> int:
    """Read a quantity as a whole number of bit/s or bytes. ValueError if it is wrong, or would be rounded to 0."""
    if not (value := round(_quantity(text, units, right))):
        raise ValueError(f"should be {right}")
    return value


def _quantity(text: object, units: dict[str, int] | dict[str, float], right: str, *, zero: bool = False) -> float:
    match = _NUMBER.fullmatch(text) if isinstance(text, str) else None
    if match is None or (float(match[1]) <= 0 and not zero):
        raise ValueError(f"should be {right}")
    by_fold = {unit.lower(): factor for unit, factor in units.items()}
    factor = units.get(match[2]) or by_fold.get(match[2].lower())
    if factor is None:
        raise ValueError(f"has the unit {match[2]!r}; known units are " + ", ".join(units))
    if not isfinite(value := float(match[1]) * factor):
        raise ValueError(f"should be {right}")
    return value


def _written(value: float, units: dict[str, int] | dict[str, float]) -> str:
    unit, factor = min(units.items(), key=lambda item: item[1])
    for name, size in sorted(units.items(), key=lambda item: item[1]):
        if value >= size:
            unit, factor = name, size
    return f"{value / factor:.6g} {unit}"
