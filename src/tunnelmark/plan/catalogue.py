"""The catalogue: which VPNs and workloads exist, and which options each takes, as data for the plan.

The plan is the first stage and may import neither drivers nor workloads. So the code that loads a
study hands the catalogue to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pydantic import BaseModel


@dataclass(frozen=True, slots=True)
class Catalogue:
    """The options model of every VPN and of every workload, by name.

    `variants`: sets of options that have a name of their own; each is the VPN's name and its options.
    """

    vpns: Mapping[str, type[BaseModel]]
    workloads: Mapping[str, type[BaseModel]]
    variants: Mapping[str, tuple[str, Mapping[str, object]]] = field(default_factory=dict)

    ipv6: frozenset[str] = frozenset()  # VPNs that can use an IPv6 underlay

    cascades: frozenset[str] = (
        frozenset()
    )  # VPNs that can have several tunnels on one node, with other nodes' networks behind them

    programs: Mapping[str, frozenset[str]] = field(
        default_factory=dict
    )  # by VPN: the programs of all its builds; an arm may run its own in their place

    collectors: Mapping[str, bool] = field(
        default_factory=dict
    )  # by name: whether a study that names no collectors has it

    @property
    def light(self) -> tuple[str, ...]:
        """The names of the collectors that a study has if it names none."""
        return tuple(name for name, light in self.collectors.items() if light)

    @property
    def arms(self) -> tuple[str, ...]:
        """All names that an arm can state as its VPN: VPNs and variants."""
        return (*self.vpns, *self.variants)
