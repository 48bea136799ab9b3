"""Defines a cell of the feature matrix: one fact about a VPN, with its source and its date."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Fact:
    """One cell of the feature matrix: the fact, the source or the observation that shows it, and its date."""

    value: str
    source: str
    date: str  # ISO 8601
