"""Writes a router's rules for nft(8): address translation as RFC 4787 classifies it, also of TCP (RFC 5382), and
filters. Pure.

Linux's own translation keeps a port if it can, for all destinations (an endpoint-independent mapping), and lets in only
answers (a filter on address and port). For the other behaviours the router fills two tables as packets leave. The first
table says which node has each outside port, the second to which addresses packets were sent from that port. When a
packet arrives, the router looks it up in these tables and hands it on to the node.
"""

from __future__ import annotations

from collections.abc import Sequence

from tunnelmark.plan.routers import Nat, Router, Service

FORWARDS = {"net.ipv4.ip_forward": "1", "net.ipv6.conf.all.forwarding": "1"}
"""Kernel settings that make a node forward packets that are not for it."""

_KEYS = {
    "endpoint-independent": "ip saddr . th sport",
    "address-dependent": "ip saddr . th sport . ip daddr",
    "address-and-port-dependent": "ip saddr . th sport . ip daddr . th dport",
}
"""The key of a mapping, by type of mapping: packets with the same key leave by the same outside port."""

FIRST_PORT = 49152
"""The first of the dynamic ports, from which systems choose a connection's port (RFC 6335, section 6)."""

PORTS, _APART = 4096, 4  # how many dynamic ports a translation uses, and the distance between two of them

_SPOKEN = {
    "address-dependent": (
        "inet_proto . inet_service . ipv4_addr",
        "meta l4proto . th sport . ip daddr",
        "meta l4proto . th dport . ip saddr",
    ),
    "address-and-port-dependent": (
        "inet_proto . inet_service . ipv4_addr . inet_service",
        "meta l4proto . th sport . ip daddr . th dport",
        "meta l4proto . th dport . ip saddr . th sport",
    ),
}
"""By filter: the types and the fields that it remembers of a packet that leaves, and the fields it compares on
arrival.
"""

_MAPPED = "meta l4proto { tcp, udp }"  # a port of the one has nothing to do with the same number of the other
_MAPPINGS = {
    # What answers a connection that was begun outside is of a node behind the router, too.
    way: f"ct direction {way} update @owner {{ meta l4proto . th sport : ct {way} ip saddr . ct {way} proto-src }}"
    for way in ("original", "reply")
}
_OWNER = "dnat ip to meta l4proto . th dport map @owner"
_HAIRPIN = "0x1"  # marks the first packet from behind the router to behind it
_TCP = "ct state established,related accept"


def outside_port(nat: Nat, seed: int, first: int = FIRST_PORT) -> str:
    """Return nft(8)'s expression for the outside port of a mapping: a hash picks one of `PORTS` ports from `first` on.

    The hash is computed from the addresses and ports of a packet that `nat.mapping` names. `seed`: with another seed,
    mappings get other ports. The expression finds the port in a map from hashes to ports, because the kernel would read
    a hash itself as a port in the wrong byte order.
    """
    ports = ", ".join(f"{drawn} : {first + drawn * _APART}" for drawn in range(PORTS))
    return f"jhash {_KEYS[nat.mapping]} mod {PORTS} seed {seed:#x} map {{ {ports} }}"


def mapping_times(router: Router) -> dict[str, str]:
    """Return the kernel settings for how long a UDP mapping lasts; {} without NAT. They exist once the rules are
    loaded.

    A mapping lasts as long as the kernel tracks the connection that began it.
    """
    if router.nat is None:
        return {}
    seconds = str(max(round(router.nat.timeout), 1))
    return dict.fromkeys(
        ("net.netfilter.nf_conntrack_udp_timeout", "net.netfilter.nf_conntrack_udp_timeout_stream"), seconds
    )


def rules(router: Router, outside: str, address: str) -> str:
    """Return the nft(8) rules of a router whose outside interface has that name and address; "" if it only forwards."""
    tables = [_translation(router.nat, outside, address)] if router.nat is not None else []
    if filters := _filters(router, outside):
        tables.append(filters)
    return "\n".join(tables)


def _translation(nat: Nat, outside: str, address: str) -> str:
    seconds = f"{float(nat.timeout):g}s"
    memory = f"flags dynamic,timeout; timeout {seconds}; size 65535"
    spoken = _SPOKEN.get(nat.filtering)
    kept = nat.mapping == "endpoint-independent" and nat.ports == "preserved"
    lines = [
        "table ip translation {",
        f"  map owner {{ type inet_proto . inet_service : ipv4_addr . inet_service; {memory}; }}",
    ]
    if spoken is not None:
        lines.append(f"  set spoken {{ type {spoken[0]}; {memory}; }}")
    lines += [
        "  chain remember { type filter hook postrouting priority 200;",
        *(f'    oifname "{outside}" {_MAPPED} {update}' for update in _MAPPINGS.values()),
        *([f'    oifname "{outside}" {_MAPPED} update @spoken {{ {spoken[1]} }}'] if spoken else []),
        "  }",
        "  chain out { type nat hook postrouting priority 100;",
    ]
    port = "" if kept else f":{outside_port(nat, 1)}"
    if nat.mapping == "address-and-port-dependent":
        # Each connection has a mapping of its own, so any free port will do. Of hundreds two would draw the same by their hashes.
        lines.append(f'    oifname "{outside}" meta l4proto tcp masquerade fully-random')
    if not kept:
        lines.append(f'    oifname "{outside}" {_MAPPED} snat to {address}{port}')
    if nat.hairpin:  # "external source IP address and port" (RFC 4787, REQ-9; RFC 5382, REQ-8)
        lines.append(f"    meta mark {_HAIRPIN} {_MAPPED} snat to {address}{port}")
    lines += [f'    oifname "{outside}" masquerade', "  }", "  chain in { type nat hook prerouting priority -100;"]
    wanted = f"{spoken[2]} @spoken " if spoken else ""
    lines.append(f'    iifname "{outside}" {_MAPPED} {wanted}{_OWNER}')
    if nat.hairpin:
        marked = f"meta mark set {_HAIRPIN}"
        lines.append(f'    iifname != "{outside}" ip daddr {address} {_MAPPED} {marked} {_OWNER}')
    lines += [
        "  }",
        "  chain through { type filter hook forward priority 0; policy drop;",
        f"    {_TCP}",
        "    ct status dnat accept",
        f'    iifname != "{outside}" accept',
        "  }",
        # What the router itself took or refused would be a connection of its own, and its port not free for a node behind it:
        # two nodes that send to each other would then not meet (RFC 5128, section 3.3). So it vanishes, as home routers have it.
        "  chain to_itself { type filter hook input priority 0;",
        f'    iifname "{outside}" ct state new meta l4proto {{ tcp, udp }} drop',
        "  }",
        "}",
        # IPv6 is not translated, and a home router lets in what was asked for (RFC 6092, section 3).
        "table ip6 firewall {",
        "  chain through { type filter hook forward priority 0; policy drop;",
        f"    {_TCP}",
        f'    iifname != "{outside}" accept',
        "  }",
        "}",
    ]
    return "\n".join(lines) + "\n"


def _filters(router: Router, outside: str) -> str:
    lines = []
    if router.largest is not None:
        lines.append(f"    meta length > {router.largest} drop")
    for service in router.block:
        lines += [f"    {match} drop" for match in _matches(service, both=True)]
    if router.allow:
        lines += [
            f"    {_TCP}",
            *(f'    oifname "{outside}" {match} accept' for one in router.allow for match in _matches(one)),
        ]
        lines.append(f'    oifname "{outside}" drop')
        lines.append(f'    iifname "{outside}" drop')
    if not lines:
        return ""
    return (
        "\n".join(
            ["table inet filters {", "  chain through { type filter hook forward priority -10;", *lines, "  }", "}"]
        )
        + "\n"
    )


def queues(router: Router, interfaces: Sequence[str]) -> list[str]:
    """Return tc(8) commands that limit UDP's rate on each interface, with a queue of 0.1 s; [] without such a limit.

    The commands send UDP through a class of htb, and all other traffic past it. They do not use a limit of nft, which
    would let a whole second's traffic through at once, or a policer of tc, which a kernel may lack.
    """
    if router.udp_rate is None:
        return []
    queue = max(int(router.udp_rate) // 80, 3000)
    lines = []
    for name in interfaces:
        lines += [
            f"qdisc add dev {name} root handle 1: htb",
            f"class add dev {name} parent 1: classid 1:1 htb rate {int(router.udp_rate)}bit burst 3000",
            f"qdisc add dev {name} parent 1:1 bfifo limit {queue}",
            f"filter add dev {name} parent 1: protocol ip prio 1 u32 match ip protocol 17 0xff flowid 1:1",
            f"filter add dev {name} parent 1: protocol ipv6 prio 2 u32 match ip6 protocol 17 0xff flowid 1:1",
        ]
    return lines


def _matches(service: Service, *, both: bool = False) -> list[str]:
    """Return nft(8) expressions that match packets to a service's port and, with `both`, also from it."""
    if service.protocol == "icmp":
        return ["meta l4proto { icmp, icmpv6 }"]
    if service.port is None:
        return [f"meta l4proto {service.protocol}"]
    ways = ("dport", "sport") if both else ("dport",)
    return [f"{service.protocol} {way} {service.port}" for way in ways]
