"""What cuts nodes off from each other during a trial: packets of the underlay vanish where they arrive, until the cut is healed.

They are dropped by the nodes that receive them, never by the sender: a host that drops its own packets tells the program that
sent them (EPERM, or a local congestion to TCP, which then tries again twice a second), and no broken path does. Neighbours stay known to each
other: ARP and neighbour discovery pass, because a lost question would cost a second, and a link represents a path of routers.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv6Address

from tunnelmark.errors import LabError, NodeGone
from tunnelmark.lab.labs import Lab
from tunnelmark.run.background import to_its_end

_HINT = "the cut could not be made as asked: nft(8) and nf_tables of the kernel are needed"
_KNOWN = "icmpv6 type { nd-neighbor-solicit, nd-neighbor-advert } accept"
_EARLY = -310  # a chain's priority: before connections are tracked (-200) and addresses translated (-100)


@dataclass(slots=True)
class Cuts:
    """The cuts of one lab. By name: the rules of each place, in the words of nft(8), and where they are in force."""

    lab: Lab
    prepared: dict[str, Mapping[str, str]] = field(default_factory=dict)
    active: dict[str, Sequence[str]] = field(default_factory=dict)

    async def prepare(self, name: str, node: str, *, only: str = "", but: str = "") -> None:
        """Have the rules ready that part a node from all others: of the protocol `only`, and not from the node `but`."""
        spared = [address for address, owner in self.lab.owners.items() if owner == but]
        by_place: dict[str, list[str]] = {}
        for own, others in self.lab.interfaces(node).items():
            mac = (await self.lab.member(node).read(f"/sys/class/net/{own}/address")).strip()
            by_place.setdefault(node, []).append(f'iifname "{own}"')
            for other, theirs in others.items():
                by_place.setdefault(other, []).append(f'iifname "{theirs}" ether saddr {mac}')
        self.prepared[name] = {
            place: rules(_table(name), matches, only, spared, inward=place == node)
            for place, matches in by_place.items()
        }

    async def cut(self, name: str) -> None:
        """From now on these packets vanish."""
        made = self.prepared[name]
        self.active[name] = tuple(made)
        await self._everywhere(made)

    async def heal(self, name: str) -> None:
        """From now on they pass again."""
        places = self.active.get(name, ())
        words = (
            f"table inet {_table(name)}\ndelete table inet {_table(name)}\n"  # the first line: it may not be there yet
        )
        await self._everywhere(dict.fromkeys(places, words))
        self.active.pop(name, None)

    async def heal_all(self) -> None:
        """Undo what is still cut, wherever a node is left to undo it on."""
        for name in tuple(self.active):
            with contextlib.suppress(NodeGone):
                await self.heal(name)

    async def _everywhere(self, words: Mapping[str, str]) -> None:
        """Hand rules to all places at once."""
        await to_its_end(asyncio.gather(*(self._nft(place, text) for place, text in words.items())))

    async def _nft(self, place: str, words: str) -> None:
        done = await self.lab.member(place).run(["nft", "-f", "-"], stdin=words)
        if done.code != 0:
            raise LabError(f"nft on {place}: {done.stderr.strip()}", hint=_HINT)


def rules(
    table: str,
    matches: Sequence[str],
    only: str = "",
    spared: Sequence[IPv4Address | IPv6Address] = (),
    *,
    inward: bool,
) -> str:
    """A table that drops what arrives by one of the matches: of the protocol `only`, and not from `spared` addresses.

    How many it has dropped is in its counters. `inward` says that it is on the node that is cut off; elsewhere, packets to `spared` addresses pass. Pure.
    """
    side = "saddr" if inward else "daddr"
    lines = [
        f"table inet {table} {{",
        f"  chain arriving {{ type filter hook prerouting priority {_EARLY};",
        f"    {_KNOWN}",
    ]
    for address in spared:
        lines.append(f"    {'ip6' if address.version == 6 else 'ip'} {side} {address} accept")
    protocol = f" meta l4proto {only}" if only else ""
    lines += [f"    {match}{protocol} counter drop" for match in matches]
    return "\n".join([*lines, "  }", "}"]) + "\n"


def _table(name: str) -> str:
    return "cut_" + "".join(letter if letter.isalnum() else "_" for letter in name)
