"""What one direction of a link does to packets, as frozen data; the shapes are those of the emulator (docs/emulator.md).

Times are in seconds, shares, probabilities and correlations from 0 to 1, sizes in bytes, rates in bit/s.
Everything here is checked when it is made from a file (see `profiles`), so later stages trust it.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Literal

from tunnelmark.units import Duration, Rate, Share, Size

NEVER, ALWAYS = Share(0), Share(1)
FRAME = 1514
"""Bytes of a full Ethernet frame in memory: 1500 of IP packet and the header."""

CODEL_TARGET, CODEL_INTERVAL = Duration(0.005), Duration(0.1)  # RFC 8289

Model = Literal["stated", "netem"]
"""Whose arithmetic a link follows: exactly what is stated, or netem's."""

Distribution = Literal["uniform", "normal", "pareto", "paretonormal"]


@dataclass(frozen=True, slots=True)
class Chance:
    """A stage that strikes packets at random; `correlation` is that with the decision before."""

    probability: Share
    correlation: Share = NEVER


@dataclass(frozen=True, slots=True)
class GilbertElliott:
    """Loss in a good and a bad state (Gilbert 1960, Elliott 1963).

    `p` goes from good to bad, `r` back; `h` is the share delivered in the bad state, `k` in the good one.
    """

    p: Share
    r: Share
    h: Share = NEVER
    k: Share = ALWAYS

    @property
    def lost(self) -> float:
        """The share of packets that are lost in the long run; with no way out of the good state, what that one loses."""
        bad = (
            self.p / (self.p + self.r) if self.p + self.r else 0.0
        )  # the share of packets in the bad state (Gilbert 1960)
        return float(bad * (1 - self.h) + (1 - bad) * (1 - self.k))


@dataclass(frozen=True, slots=True)
class FourState:
    """netem's `loss state`: 1 delivers, 2 delivers inside a burst, 3 loses inside a burst, 4 loses alone."""

    p13: Share
    p31: Share
    p32: Share = NEVER
    p23: Share = ALWAYS
    p14: Share = NEVER


@dataclass(frozen=True, slots=True)
class Pattern:
    """A recorded loss, packet by packet: `0` is delivered, `1` is lost."""

    pattern: str
    repeat: bool = True


@dataclass(frozen=True, slots=True)
class Bursts:
    """Loss in bursts that have a length in time, whatever is sent meanwhile (Gilbert's two states, with exponential times).

    `burst` is their mean length, `every` the mean time from the start of one to the start of the next. `probability` is the
    share of packets lost in a burst, `outside` that between bursts.
    """

    burst: Duration
    every: Duration
    probability: Share = ALWAYS
    outside: Share = NEVER

    @property
    def share(self) -> float:
        """The share of the time in bursts."""
        return float(self.burst / self.every)

    @property
    def lost(self) -> float:
        """The share of packets that are lost in the long run."""
        return float(self.share * self.probability + (1 - self.share) * self.outside)


Loss = Chance | GilbertElliott | FourState | Bursts | Pattern


@dataclass(frozen=True, slots=True)
class Jitter:
    """Variation of the delay: `size` is half the width of `uniform` and the standard deviation of the others.

    With `correlation_time` it is a process in time, the same for all packets of a moment: the normal variable below the
    distribution is correlated by 1/e with what it was so long ago. Without, each packet has its own, and
    `correlation` is that with the packet before. `keep_order`: a packet never leaves before the one offered before it.
    netem's jitter cannot keep the order.
    """

    size: Duration
    distribution: Distribution = "uniform"
    correlation: Share = NEVER
    keep_order: bool = True
    correlation_time: Duration | None = None


@dataclass(frozen=True, slots=True)
class Reordering:
    """Packets that skip the delay and so overtake; `gap` - 1 packets after each are safe from it (netem)."""

    probability: Share
    correlation: Share = NEVER
    gap: int = 1


@dataclass(frozen=True, slots=True)
class Codel:
    """CoDel (RFC 8289): drops before the queue is full."""

    target: Duration = CODEL_TARGET
    interval: Duration = CODEL_INTERVAL


@dataclass(frozen=True, slots=True)
class Trace:
    """A rate that was recorded as Mahimahi does: a millisecond for each opportunity to send `bytes`, begun again."""

    at_ms: tuple[int, ...]
    bytes: int = 1514


@dataclass(frozen=True, slots=True)
class Blackout:
    """A window in which everything that enters is lost; `every` None: once. Times from the link's zero.

    `start` None: what comes `every` so often begins anywhere in its period, drawn for each block.
    """

    start: Duration | None
    length: Duration
    every: Duration | None = None


@dataclass(frozen=True, slots=True)
class ScheduleStep:
    """A change at a time of the schedule: stages set, stages taken out, the link cut (`down`) or as before (None)."""

    at: Duration
    set: Direction
    clear: tuple[str, ...] = ()
    down: bool | None = None


@dataclass(frozen=True, slots=True)
class Schedule:
    """Changes with time; with `repeat` they begin again with the direction's own stages."""

    steps: tuple[ScheduleStep, ...]
    repeat: Duration | None = None


@dataclass(frozen=True, slots=True)
class Direction:
    """What happens to packets that go one way; what is None does not happen.

    `queue` (bytes) and `queue_packets` bound what waits in front of the rate; `limit` is netem's, in packets
    that may be delayed; `overhead` is added to each packet's length before the rate counts it.
    """

    delay: Duration | None = None
    jitter: Jitter | None = None
    loss: Loss | None = None
    duplication: Chance | None = None
    corruption: Chance | None = None
    reordering: Reordering | None = None
    rate: Rate | None = None
    rate_trace: Trace | None = None
    queue: Size | None = None
    queue_packets: int | None = None
    codel: Codel | None = None
    overhead: int = 0
    limit: int | None = None
    blackouts: tuple[Blackout, ...] = ()
    schedule: Schedule | None = None

    @property
    def only_shaped(self) -> bool:
        """Whether there is nothing but a rate and a queue in bytes (with an overhead), or nothing at all: what a kernel shaper can do."""
        shaped = Direction(rate=self.rate, queue=self.queue, overhead=self.overhead)
        return self == shaped

    @property
    def carried(self) -> Rate | None:
        """The bit/s of full frames, as they are in memory, that remain of the rate after the `overhead` of each."""
        return None if self.rate is None else Rate(round(self.rate * FRAME / (FRAME + self.overhead)))

    def stages(self) -> dict[str, Any]:
        """What is stated, by name."""
        named = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in named.items() if value != getattr(NOTHING, name)}


NOTHING = Direction()
"""As fast as the machine, with nothing done to packets."""
