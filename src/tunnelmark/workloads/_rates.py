"""Turns the rate that a workload's option states into bit/s."""

from __future__ import annotations

from tunnelmark.errors import UsageError
from tunnelmark.units import Rate, Share


def in_bits(rate: Rate | Share, workload: str) -> int:
    """Return the rate in bit/s. Raises UsageError if it is still a share of a link's rate that is not known."""
    if isinstance(rate, Share):
        raise UsageError(
            f"the rate of {workload} is a share of a link's rate ({rate}), and that rate is not known here",
            hint="state a rate in bit/s, such as '100 Mbit/s'",
        )
    return int(rate)
