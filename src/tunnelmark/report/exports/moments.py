"""Times as tables have them."""

from __future__ import annotations

from datetime import UTC, datetime


def moment(seconds: float) -> datetime:
    """Seconds since the Unix epoch as a time in UTC, without a zone."""
    return datetime.fromtimestamp(seconds, UTC).replace(tzinfo=None)
