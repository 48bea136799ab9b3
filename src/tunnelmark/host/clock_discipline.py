"""Reads which daemon disciplines this machine's clock (chrony, ntpd, PTP), and the clock's error by the kernel's
estimate.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from pathlib import Path

from tunnelmark.errors import LabError

DAEMONS = ("chronyd", "ntpd", "ntpd-rs", "ptp4l", "phc2sys", "systemd-timesyn", "timemaster")
"""The programs that discipline a clock, by their process names, which the kernel cuts to 15 characters."""

_TIME_ERROR = 5  # <linux/timex.h>: the clock is not synchronized


class _Timex(ctypes.Structure):
    """The fields of struct timex (<linux/timex.h>) that are read here, and room for the rest (208 bytes in all)."""

    _fields_ = (
        ("modes", ctypes.c_uint),
        ("offset", ctypes.c_long),
        ("freq", ctypes.c_long),
        ("maxerror", ctypes.c_long),
        ("esterror", ctypes.c_long),
        ("rest", ctypes.c_char * 256),
    )


@dataclass(frozen=True, slots=True)
class ClockDiscipline:
    """Whether this machine's clock is synchronised, which daemons discipline it, and how large its error is.

    `daemons`: which of `DAEMONS` run; () if none does. `max_error_us`: the kernel's bound of the error in microseconds.
    `estimated_error_us`: the kernel's estimate of it. `frequency_ppm`: the correction of the clock's frequency. All but
    `daemons` is from adjtimex(2): the daemon that disciplines the clock gives these figures to the kernel.
    """

    synchronized: bool
    daemons: tuple[str, ...]
    max_error_us: int
    estimated_error_us: int
    frequency_ppm: float


def clock_discipline() -> ClockDiscipline:
    """Return the clock's discipline as it is now; LabError if adjtimex(2) is refused."""
    found = _Timex()
    state = ctypes.CDLL(None, use_errno=True).adjtimex(ctypes.byref(found))  # `modes` 0: only reads
    if state < 0:
        raise LabError(
            "the error of the kernel's clock is not known: adjtimex(2) was refused",
            hint="a sandbox or a seccomp filter may forbid this call",
        )
    return ClockDiscipline(
        state != _TIME_ERROR, _daemons(), found.maxerror, found.esterror, round(found.freq / 65536, 3)
    )


def _daemons(proc: Path = Path("/proc")) -> tuple[str, ...]:
    names = set()
    for file in proc.glob("[0-9]*/comm"):
        try:
            names.add(file.read_text().strip())
        except OSError:  # it has ended
            continue
    return tuple(name for name in DAEMONS if name in names)
