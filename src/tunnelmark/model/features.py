"""What is known of a VPN besides how to start it: a cell of the feature matrix, with its source and its date."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Fact:
    """One cell of the feature matrix: what is known, where it is said or how it was seen, and when."""

    value: str
    source: str
    date: str  # ISO 8601
