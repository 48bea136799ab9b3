"""What one direction of a link does to packets, as frozen data in the shapes of the emulator (docs/emulator.md).

Times are in seconds, shares, probabilities and correlations from 0 to 1, sizes in bytes, rates in bit/s.
Everything here is checked when it is made from a file (see `profiles`), so later stages trust it.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Literal

from tunnelmark.units import Duration, Rate, Share, Size

NEVER, ALWAYS = Share(0), Share(1)
FRAME = 1514
"""Bytes of a full Ethernet frame in memory: an IP packet of 1500 bytes, and the header of 14."""

CODEL_TARGET, CODEL_INTERVAL = Duration(0.005), Duration(0.1)  # RFC 8289

LinkModel = Literal["stated", "netem"]
"""How a link applies its figures: exactly as they are stated, or with netem's arithmetic."""

Distribution = Literal["uniform", "normal", "pareto", "paretonormal"]


@dataclass(frozen=True, slots=True)
class Chance:
    """A stage that happens to each packet with a `probability`: loss, duplication or corruption.

    `correlation`: of the decision on a packet with the decision on the packet before it; 0: each is independent.
    """

    probability: Share
    correlation: Share = NEVER


@dataclass(frozen=True, slots=True)
class GilbertElliott:
    """Loss in a good and a bad state (Gilbert 1960, Elliott 1963).

    `p`: the chance, at each packet, to go from the good to the bad state; `r`: the chance to go back.
    `h`: the share of packets that the bad state delivers; `k`: the share that the good state delivers.
    """

    p: Share
    r: Share
    h: Share = NEVER
    k: Share = ALWAYS

    @property
    def lost(self) -> float:
        """The share of packets that are lost in the long run. If `p` is 0, it is the loss of the good state."""
        bad = (
            self.p / (self.p + self.r) if self.p + self.r else 0.0
        )  # the share of packets in the bad state (Gilbert 1960)
        return float(bad * (1 - self.h) + (1 - bad) * (1 - self.k))


@dataclass(frozen=True, slots=True)
class FourState:
    """netem's `loss state`: state 1 delivers, 2 delivers inside a burst, 3 loses inside a burst, 4 loses one packet.

    `p13`: the chance to go from state 1 to state 3, and so on.
    """

    p13: Share
    p31: Share
    p32: Share = NEVER
    p23: Share = ALWAYS
    p14: Share = NEVER


@dataclass(frozen=True, slots=True)
class Pattern:
    """Recorded losses, a character for each packet: `0` is delivered, `1` is lost. `repeat`: begin again at the end."""

    pattern: str
    repeat: bool = True


@dataclass(frozen=True, slots=True)
class Bursts:
    """Loss in bursts whose length is a time, however many packets are sent meanwhile.

    The model is Gilbert's two states, with exponentially distributed times in each.
    `burst`: the mean length of a burst. `every`: the mean time from the start of one to the start of the next.
    `probability`: the share of packets that are lost in a burst. `outside`: the share between bursts that is lost.
    """

    burst: Duration
    every: Duration
    probability: Share = ALWAYS
    outside: Share = NEVER

    @property
    def share(self) -> float:
        """The share of time that is inside bursts."""
        return float(self.burst / self.every)

    @property
    def lost(self) -> float:
        """The share of packets that are lost in the long run."""
        return float(self.share * self.probability + (1 - self.share) * self.outside)


Loss = Chance | GilbertElliott | FourState | Bursts | Pattern


@dataclass(frozen=True, slots=True)
class Jitter:
    """Variation of the delay. `size`: half the width of a `uniform` distribution, the standard deviation of others.

    With `correlation_time` the jitter is a process in time: all packets of one moment have the same jitter. It follows
    a normal variable whose correlation with itself falls to 1/e after that time. Without `correlation_time`, each
    packet has a jitter of its own, and `correlation` is its correlation with the jitter of the packet before.
    `keep_order`: a packet never leaves before one that entered earlier. netem's jitter cannot keep the order.
    """

    size: Duration
    distribution: Distribution = "uniform"
    correlation: Share = NEVER
    keep_order: bool = True
    correlation_time: Duration | None = None

    @property
    def reach(self) -> float:
        """The seconds that a delay is hardly ever further from its mean: half the width, or four standard deviations."""
        return float(self.size) if self.distribution == "uniform" else 4.0 * float(self.size)


@dataclass(frozen=True, slots=True)
class Reordering:
    """Packets that skip the delay, and so overtake. The `gap` - 1 packets after each of them cannot skip it (netem)."""

    probability: Share
    correlation: Share = NEVER
    gap: int = 1


@dataclass(frozen=True, slots=True)
class Codel:
    """CoDel (RFC 8289): it drops packets before the queue is full."""

    target: Duration = CODEL_TARGET
    interval: Duration = CODEL_INTERVAL


@dataclass(frozen=True, slots=True)
class Trace:
    """A rate recorded as by Mahimahi: `at_ms` is the time of each chance to send `bytes`. It repeats at its end."""

    at_ms: tuple[int, ...]
    bytes: int = 1514


@dataclass(frozen=True, slots=True)
class Blackout:
    """A time of `length` seconds in which every packet that enters the link is lost.

    `every`: the time from the start of one blackout to the start of the next; None: there is only one blackout.
    `start`: when the first blackout begins, in seconds since the link's zero (the last call of `Lab.zero`: in a trial,
    just before the traffic starts); None: a start within the period `every` is drawn for each block.
    """

    start: Duration | None
    length: Duration
    every: Duration | None = None


@dataclass(frozen=True, slots=True)
class ScheduleStep:
    """A change at one time of a schedule: the stages in `set` are replaced, those in `clear` removed.

    `down`: True cuts the link, False ends the cut, None leaves it as it is.
    """

    at: Duration
    set: Direction
    clear: tuple[str, ...] = ()
    down: bool | None = None


@dataclass(frozen=True, slots=True)
class Schedule:
    """Changes of a direction's stages with time, which counts from the link's zero as in `Blackout`.

    After `repeat` seconds the direction has its own stages again, and the steps begin again; None: they come once.
    """

    steps: tuple[ScheduleStep, ...]
    repeat: Duration | None = None


@dataclass(frozen=True, slots=True)
class Direction:
    """What happens to packets in one direction of a link. A stage that is None does not happen.

    `queue` (bytes) and `queue_packets` limit what waits in front of the rate. `limit` is netem's: the packets that it
    may hold at a time. `overhead`: bytes that are added to each packet's length before the rate counts it.
    `propagation`: what every packet takes in addition, whatever jitter and reordering do: the distance of the ends.
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
    propagation: Duration | None = None
    blackouts: tuple[Blackout, ...] = ()
    schedule: Schedule | None = None

    @property
    def transit(self) -> float:
        """The seconds on the way in the mean, without the wait in a queue and for serialisation: delay and propagation."""
        return float(self.delay or 0.0) + float(self.propagation or 0.0)

    @property
    def only_shaped(self) -> bool:
        """Whether a kernel shaper can carry the direction: it has at most a rate, a queue in bytes and an overhead."""
        shaped = Direction(rate=self.rate, queue=self.queue, overhead=self.overhead)
        return self == shaped

    @property
    def carried(self) -> Rate | None:
        """The bit/s of full frames that the rate lets pass; None without a rate.

        A full frame counts as `FRAME` bytes here, without the `overhead` that the rate also has to carry for it.
        """
        return None if self.rate is None else Rate(round(self.rate * FRAME / (FRAME + self.overhead)))

    def stages(self) -> dict[str, Any]:
        """Return what is stated, by name: every field that differs from `NOTHING`."""
        named = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in named.items() if value != getattr(NOTHING, name)}


NOTHING = Direction()
"""A direction that does nothing to packets, and is as fast as the machine."""
