"""Cuts nodes off from each other during a trial: until a cut is healed, underlay packets are dropped where they arrive.

The receiving nodes drop them, never the sender. A host that drops its own packets reports that to the sending program
(EPERM; or local congestion to TCP, which then tries again twice a second), and a broken path does not. ARP and
neighbour discovery pass, because a lost request would cost a second, and a link represents a path of routers.
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
    """The cuts of one lab, by name.

    `prepared`: for each cut, the nft(8) rules by node. `active`: for each cut in force, the nodes with its rules.
    """

    lab: Lab
    prepared: dict[str, Mapping[str, str]] = field(default_factory=dict)
    active: dict[str, Sequence[str]] = field(default_factory=dict)

    async def prepare(self, name: str, node: str, *, only: str = "", but: str = "") -> None:
        """Prepare the rules that cut a node off from all others.

        `only`: drop only packets of this protocol ("": of all). `but`: the node that can still be reached ("": none).
        """
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
        """Put a prepared cut in force: from now on, the packets that it cuts off are dropped."""
        made = self.prepared[name]
        self.active[name] = tuple(made)
        await self._everywhere(made)

    async def heal(self, name: str) -> None:
        """Remove a cut: its packets pass again. Nothing happens if it is not in force."""
        places = self.active.get(name, ())
        words = (
            f"table inet {_table(name)}\ndelete table inet {_table(name)}\n"  # the first line: it may not be there yet
        )
        await self._everywhere(dict.fromkeys(places, words))
        self.active.pop(name, None)

    async def heal_all(self) -> None:
        """Remove all cuts that are still in force; nodes that have ended are skipped."""
        for name in tuple(self.active):
            with contextlib.suppress(NodeGone):
                await self.heal(name)

    async def _everywhere(self, words: Mapping[str, str]) -> None:
        """Load rules on all nodes at once, even if the caller is cancelled meanwhile."""
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
    """Return an nft(8) table that drops arriving packets that fit one of `matches`, and counts them. Pure.

    `table`: its name. `matches`: conditions in the language of nft, such as `iifname "eth0"`. `only`: the protocol of
    the dropped packets ("": all). `inward`: True for the table of the node that is cut off, False for that of another
    node. `spared`: addresses that can still be reached: packets from them pass if `inward`, else packets to them.
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
