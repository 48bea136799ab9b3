"""Counts the packets that the links of a lab dropped, by the end that sent them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tunnelmark.lab.emulator_config import ALL
from tunnelmark.run.collectors.base import LinkCounters

_OTHER = {"source": "target", "target": "source"}


class LinkDrops:
    """Counts the drops of a trial's links from `begin` on; the links' own counters are not reset."""

    def __init__(
        self, links: LinkCounters, ends: Mapping[str, str], further_ways: Mapping[tuple[str, str], Sequence[str]]
    ) -> None:
        self._links = links
        self._ends = {node: end for end, node in ends.items()}
        self._further_ways = further_ways
        self._before: dict[str, float] = {}

    async def begin(self) -> None:
        """Count from now on."""
        self._before = await self._look()

    async def since(self) -> dict[str, float]:
        """Return how many packets links dropped since `begin`: by a full queue, and by the profile's loss.

        The keys are those of the module `limits`.
        """
        now = await self._look()
        return {name: max(0.0, count - self._before.get(name, 0.0)) for name, count in now.items()}

    async def _look(self) -> dict[str, float]:
        found: dict[str, float] = {}
        for ports in await self._links.link_counters():
            for node, counts in ports.items():
                for end in self._senders(ports, node):
                    _add(found, end, link=counts["dropped"], lossy=counts["lost"])
                for end in self._sent_by(ports, node):
                    _add(found, end, link=counts["sent_dropped"], lossy=counts["sent_lost"])
                    if node in self._ends and counts["sent_dropped"]:
                        _add(found, end, refused=counts["sent_dropped"])
        for report in await self._links.link_reports():
            for way in report["directions"]:
                sender, _, receiver = way["name"].partition(" to ")
                dropped = way["dropped"]
                for end in self._from(sender, receiver):
                    queued = dropped.get("queue", 0) + dropped.get("codel", 0)
                    _add(found, end, link=queued, lossy=dropped.get("loss", 0) + dropped.get("blackout", 0))
        return found

    def _senders(self, ports: Mapping[str, object], receiver: str) -> Sequence[str]:
        """Return the ends whose packets the middle node sends to `receiver`."""
        others = [node for node in ports if node != receiver]
        return self._from(ALL if receiver in self._ends or len(others) != 1 else others[0], receiver)

    def _sent_by(self, ports: Mapping[str, object], sender: str) -> Sequence[str]:
        """Return the ends whose packets `sender` sends onto a link; `ports` has the link's nodes."""
        others = [node for node in ports if node != sender]
        return self._from(sender, others[0]) if len(others) == 1 or sender in self._ends else ()

    def _from(self, sender: str, receiver: str) -> Sequence[str]:
        """Return the ends whose packets go from `sender` to `receiver`; from ALL to an end go those of the other end."""
        if sender == ALL:
            return (_OTHER[self._ends[receiver]],) if receiver in self._ends else ()
        own = self._ends.get(sender)
        return (own,) if own is not None else self._further_ways.get((sender, receiver), ())


def _add(found: dict[str, float], end: str, **packets: float) -> None:
    for place, count in packets.items():
        name = f"drop_{place}_{end}"
        found[name] = found.get(name, 0.0) + count
