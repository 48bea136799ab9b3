"""Routers as frozen data: how they translate addresses, and what they let through; the words are those of RFC 4787."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from tunnelmark.units import Duration, Rate

Dependence = Literal["endpoint-independent", "address-dependent", "address-and-port-dependent"]
"""What a mapping or filter depends on at the far end: nothing, its address, or also its port (RFC 4787, 4.1 and 5)."""


MAPPED = Duration(120)
"""How long an unused UDP mapping must last at least (RFC 4787, REQ-5), in seconds."""


@dataclass(frozen=True, slots=True)
class Nat:
    """How a router translates addresses of packets that leave by its outside link: UDP, and likewise TCP (RFC 5382).

    `mapping`: which packets of a node get the same outside port. `filtering`: whose packets to that port are let in.
    `ports`: the outside port is the node's own port if that is free (`preserved`), or any port.
    `hairpin`: whether a node behind the router reaches another node behind it at that node's outside port.
    `timeout`: seconds after which an unused mapping ends. The mapping of a TCP connection does not end before it.
    """

    mapping: Dependence = "endpoint-independent"
    filtering: Dependence = "address-and-port-dependent"
    ports: Literal["preserved", "random"] = "preserved"
    hairpin: bool = False
    timeout: Duration = MAPPED

    def __str__(self) -> str:
        """Return its kind by RFC 3489's name, or else mapping and filtering; then what differs from the defaults."""
        kind = next(
            (n for n, one in KINDS.items() if (one.mapping, one.filtering) == (self.mapping, self.filtering)), ""
        )
        words = f"{kind} NAT" if kind else f"NAT, mapping {self.mapping}, filtering {self.filtering}"
        return (
            words
            + (", hairpin" if self.hairpin else "")
            + (f", mappings of {self.timeout}" if self.timeout != MAPPED else "")
        )


KINDS: Mapping[str, Nat] = {
    "full-cone": Nat("endpoint-independent", "endpoint-independent"),
    "address-restricted": Nat("endpoint-independent", "address-dependent"),
    "port-restricted": Nat("endpoint-independent", "address-and-port-dependent"),
    "symmetric": Nat("address-and-port-dependent", "address-and-port-dependent", "random"),
}
"""The kinds of NAT by their names in RFC 3489, section 5, which are in common use."""


@dataclass(frozen=True, slots=True)
class Service:
    """A kind of traffic: a protocol, with or without the port at its far end."""

    protocol: Literal["udp", "tcp", "icmp"]
    port: int | None = None

    @classmethod
    def parse(cls, text: object) -> Service:
        """Read `"udp"` or `"tcp/443"`; ValueError says what would be right."""
        protocol, slash, port = text.partition("/") if isinstance(text, str) else ("", "", "")
        known = protocol in ("udp", "tcp") or (protocol == "icmp" and not slash)
        if not known or (slash and not (port.isdigit() and 0 < int(port) < 65536)):
            raise ValueError("should be 'udp', 'tcp' or 'icmp', or a port such as 'tcp/443'")
        return cls(protocol, int(port) if slash else None)  # type: ignore[arg-type]  # one of the three

    def __str__(self) -> str:
        return self.protocol if self.port is None else f"{self.protocol}/{self.port}"


FILTERS: Mapping[str, Mapping[str, object]] = {
    "udp-blocked": {"block": (Service("udp"),)},
    "tcp-443-only": {"allow": (Service("tcp", 443),)},
    "dns-and-https-only": {"allow": (Service("udp", 53), Service("tcp", 53), Service("tcp", 443))},
    "udp-throttled": {"udp_rate": Rate(1_000_000)},
}
"""The filters of networks that restrict their users, by name: the fields of `Router` that each one sets."""


@dataclass(frozen=True, slots=True)
class Router:
    """A node that only forwards.

    `outside`: the link on the side of the Internet, for `nat` and `allow`. `block`: the traffic that is dropped in both
    directions. `allow`: the only traffic that is let out; only answers to it are let in. Empty: everything may pass.
    `largest`: the size of the largest IP packets that pass, in bytes; larger packets are dropped silently (an MTU black
    hole, RFC 2923). None: packets of any size pass.
    `udp_rate`: the highest rate of UDP in bit/s, in each direction; None: no limit.
    """

    name: str
    outside: str | None = None
    nat: Nat | None = None
    block: tuple[Service, ...] = ()
    allow: tuple[Service, ...] = ()
    largest: int | None = None
    udp_rate: Rate | None = None

    def of_kind(self, kind: str) -> Router:
        """Return the router with another NAT (one of `KINDS`, or `no-nat`), or with a filter (of `FILTERS`) added."""
        if kind in FILTERS:
            return replace(self, **FILTERS[kind])  # type: ignore[arg-type]  # fields by name
        return replace(self, nat=KINDS.get(kind))

    def __str__(self) -> str:
        """Return what it does beyond forwarding, in words; "" if nothing."""
        parts = [] if self.nat is None else [str(self.nat)]
        parts += [f"lets out only {', '.join(map(str, self.allow))}"] if self.allow else []
        parts += [f"blocks {', '.join(map(str, self.block))}"] if self.block else []
        parts += [f"swallows packets above {self.largest} B"] if self.largest is not None else []
        parts += [f"UDP at most {self.udp_rate}"] if self.udp_rate is not None else []
        return "; ".join(parts)


NO_NAT = "no-nat"
ALL_KINDS = (NO_NAT, *KINDS, *FILTERS)
"""The kinds of routers that `+` may join to a topology's name, to change what its routers do."""
