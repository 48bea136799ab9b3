"""Counts the context switches of the VPN's daemons, all threads together: waits, and losses of the core."""

from __future__ import annotations

from tunnelmark.model.metrics import Sample
from tunnelmark.run.collectors import _counts
from tunnelmark.run.collectors.base import Collected, Collector, CollectorContext, Stopwatch, both

METRICS = (
    *both("switches", "1/s", "context switches of the daemons"),
    *both("switches_per_packet", "", "context switches of the daemons per wire packet"),
    *both("switches_forced", "%", "context switches of the daemons that were forced", compare="difference"),
)
NO_DAEMONS = "no daemon runs on the node"
DONE = "done_"  # prefix of keys of `Collected.sums`: the switches of an end


class _Switches:
    def __init__(self, context: CollectorContext) -> None:
        self._context = context
        self._daemons = context.daemons  # now, while nothing else runs on the nodes

    async def begin(self) -> None:
        self._since = Stopwatch()
        self._first = {end: self._look(node) for end, node in self._context.ends.items()}

    async def sample(self) -> None:
        """Do nothing: only the counters at begin and end matter."""

    async def end(self) -> Collected:
        took = self._since()
        samples, notes = list[Sample](), dict[str, str]()
        looks = {end: self._look(node) for end, node in self._context.ends.items()}
        passed = {end: now.since(self._first[end][1]) for end, (_, now) in looks.items()}
        sums = _counts.wire_packets(self._context.card, passed)
        for end, node in self._context.ends.items():
            names = ("switches", "switches_per_packet", "switches_forced")
            if not self._daemons[node]:
                notes |= {f"{name}_{end}": NO_DAEMONS for name in names}
                continue
            before, after = self._first[end][0], looks[end][0]
            voluntary = max(after.voluntary - before.voluntary, 0)
            forced = max(after.involuntary - before.involuntary, 0)
            samples.append(Sample(f"switches_{end}", (voluntary + forced) / took))
            sums[f"{DONE}{end}"] = voluntary + forced
            if voluntary + forced:
                samples.append(Sample(f"switches_forced_{end}", 100 * forced / (voluntary + forced)))
        return Collected(tuple(samples), notes, sums=sums)

    def _look(self, node: str) -> tuple[_counts.Switches, _counts.TrafficCounts]:
        return _counts.switches(self._daemons[node]), _counts.traffic(self._context, node)


def conclude(seen: Collected) -> Collected:
    """Return the context switches per wire packet of each end.

    `seen` has the sums of all hosts: if cards split super-packets, each end's wire packets are counted at both ends. An
    end without daemons has no sample. If a host was lost, the sums are dropped, and this function is not called.
    """
    return _counts.for_each_packet(seen, DONE, "switches_per_packet")


COLLECTOR = Collector("switches", "context switches of the daemons", METRICS, _Switches, light=True, conclude=conclude)
