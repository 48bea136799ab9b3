"""The catalogue: which VPNs and workloads exist, and which options each takes, handed to the plan as data.

Plan is the first stage and may import neither drivers nor workloads, so whoever loads a study passes
this in.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import BaseModel


@dataclass(frozen=True, slots=True)
class Catalogue:
    """The options model of every VPN and of every workload, by name."""

    vpns: Mapping[str, type[BaseModel]]
    workloads: Mapping[str, type[BaseModel]]
