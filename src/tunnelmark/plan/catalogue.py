"""The catalogue: which VPNs and workloads exist, and which options each takes, handed to the plan as data.

Plan is the first stage and may import neither drivers nor workloads, so the code that loads a
study passes this in.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pydantic import BaseModel


@dataclass(frozen=True, slots=True)
class Catalogue:
    """The options model of every VPN and of every workload, by name.

    `variants` are sets of a VPN's options that have a name of their own: the VPN, and the options.
    """

    vpns: Mapping[str, type[BaseModel]]
    workloads: Mapping[str, type[BaseModel]]
    variants: Mapping[str, tuple[str, Mapping[str, object]]] = field(default_factory=dict)

    ipv6: frozenset[str] = frozenset()  # VPNs that can use an IPv6 underlay

    cascades: frozenset[str] = (
        frozenset()
    )  # VPNs of which a node can have several tunnels, with others' networks behind them

    programs: Mapping[str, frozenset[str]] = field(
        default_factory=dict
    )  # by VPN: the programs of all its builds, which an arm may replace by its own

    collectors: Mapping[str, bool] = field(
        default_factory=dict
    )  # by name: whether a study has it unless it says otherwise

    @property
    def light(self) -> tuple[str, ...]:
        """The collectors of a study that names none."""
        return tuple(name for name, light in self.collectors.items() if light)

    @property
    def arms(self) -> tuple[str, ...]:
        """Everything that can be named as a VPN."""
        return (*self.vpns, *self.variants)
