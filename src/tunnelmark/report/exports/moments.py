"""Converts times for the tables."""

from __future__ import annotations

from datetime import UTC, datetime


def moment(seconds: float) -> datetime:
    """Convert seconds since the Unix epoch to a UTC time without a time zone in it."""
    return datetime.fromtimestamp(seconds, UTC).replace(tzinfo=None)
