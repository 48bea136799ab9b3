"""Measures the machine for `doctor --measure`, and says in sentences what it can do and what it cannot."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from tunnelmark.doctor import capacity
from tunnelmark.doctor.capacity import CapacityLook, Chosen, Lateness
from tunnelmark.doctor.checks import Check
from tunnelmark.host import utilisation, wakeups, yardsticks
from tunnelmark.host.wakeups import Wakeups
from tunnelmark.host.yardsticks import Yardsticks
from tunnelmark.lab.client import LabClient
from tunnelmark.model import emulator_health
from tunnelmark.model.yardstick_lengths import PACKET
from tunnelmark.plan.impairments import Direction
from tunnelmark.plan.model import Link, Profile, Topology
from tunnelmark.units import Duration, Rate, Size

PAIR = Topology("pair", "Two nodes on one link", ("a", "b"), (Link("link", ("a", "b")),))
_GIGABIT = Direction(rate=Rate(10**9), queue=Size(512 * 1024), overhead=24)
GIGABIT = Profile("gigabit", "1 Gbit/s", "no figures", _GIGABIT, _GIGABIT)
_BUSY = Direction(delay=Duration(0.002), rate=Rate(10**8), queue=Size(128 * 1024), overhead=24)
BUSY = Profile("busy", "2 ms each way at 100 Mbit/s", "no figures", _BUSY, _BUSY)
"""A typical link of a study. TCP fills it: if its emulator is then too late, trials on such links are void."""

_WAKEUPS = 4.0  # seconds on each core, twice
_STANDSTILL = 0.005
"""If pauses take a larger share of the time, a shaped link visibly loses rate (`capacity.FILLS` leaves it 0.7 %)."""


@dataclass(frozen=True, slots=True)
class Crypto:
    """The bit/s that one core encrypts, in packets of PACKET bytes.

    `chacha`: by ChaCha20-Poly1305. `aes`: by AES-128-GCM.
    """

    chacha: float
    aes: float


@dataclass(frozen=True, slots=True)
class Measured:
    """All that was measured of this machine.

    `direct`, `emulator`: one TCP stream over the bare link, and one through the emulator. `direct_small`,
    `emulator_small`: UDP datagrams of 64 bytes, over the same two links. `busy`: a TCP stream over an emulated link
    that is typical of a study; `busy.late` says how late the emulator was. `filled`: the highest rate, up to 1 Gbit/s,
    that one TCP stream fills on a shaped link.
    `asleep`, `awake`: how late programs woke, on cores that may sleep, and on cores that loops keep awake. `steal`: the
    share (0 to 1) of all cores that the host of this virtual machine took during the measurements.
    """

    direct: CapacityLook
    direct_small: CapacityLook
    emulator: CapacityLook
    emulator_small: CapacityLook
    busy: CapacityLook
    filled: Chosen
    yardsticks: Yardsticks
    asleep: Wakeups
    awake: Wakeups
    steal: float

    @property
    def crypto(self) -> Crypto:
        """How many bit/s one core encrypts, from the yardsticks."""
        chacha, aes = (self.yardsticks.lengths[name].value for name in ("ChaCha20-Poly1305", "AES-128-GCM"))
        return Crypto(8e9 * PACKET / chacha, 8e9 * PACKET / aes)


async def measure(say: Callable[[str], None]) -> Measured:
    """Measure for half a minute; `say` gets the name of each part as it begins. LabError if the lab cannot be made."""
    before, began = utilisation.stolen(), time.monotonic()
    say("wake-ups of each core")
    asleep = wakeups.measure(_WAKEUPS, awake=False)
    say("wake-ups of each core, kept awake")
    awake = wakeups.measure(_WAKEUPS, awake=True)
    say("yardsticks")
    sticks = await asyncio.to_thread(yardsticks.measure)
    async with LabClient() as labs:
        say("the bare link, by one TCP stream and by small packets")
        direct = await _best(lambda: capacity.bulk(labs, PAIR, capacity.BARE))
        direct_small = await _best(lambda: capacity.datagrams(labs, PAIR, capacity.BARE))
        say("the emulator, by one TCP stream and by small packets")
        emulator = await _best(lambda: capacity.bulk(labs, PAIR, capacity.HELD))
        emulator_small = await _best(lambda: capacity.datagrams(labs, PAIR, capacity.HELD))
        say("the emulator under the load of a study")
        busy = await capacity.bulk(labs, PAIR, BUSY, 4)
        say("the highest rate that the bare link fills")
        filled = await capacity.choose(labs, PAIR, GIGABIT)
    steal = (utilisation.stolen() - before) / (time.monotonic() - began) / (os.cpu_count() or 1)
    return Measured(
        direct, direct_small, emulator, emulator_small, busy, filled, sticks, asleep, awake, max(steal, 0.0)
    )


async def _best(look: Callable[[], Awaitable[CapacityLook]]) -> CapacityLook:
    """Return the better of two looks: what the machine can carry, and not what other work left it for a second."""
    return max([await look(), await look()], key=lambda found: found.packets)


def judge(found: Measured) -> tuple[Check, ...]:
    """Return the measurements as checks, which `doctor` lists with its other checks. Pure."""
    busy, filled = found.busy.late, found.filled
    bound = capacity.allowed(BUSY)
    return (
        _told("bare link", f"{Rate(capacity.rounded(found.direct.goodput))} by TCP, {_per_second(found.direct_small)} packets of 64 bytes"),
        _told("emulator", f"{Rate(capacity.rounded(found.emulator.goodput))} by TCP, {_per_second(found.emulator_small)} packets of 64 bytes"),
        _advised("lateness", capacity.holds(BUSY, found.busy), f"{_late(busy)} at {BUSY.rate}, {bound:g} ms allowed",
                 "keep the machine quiet; or --backend vm, whose counted clock no pause disturbs"),
        _advised("link filled", filled.holds, f"up to {filled.rate}" if filled.holds else "at no rate, most of the time",
                 "other work, or this machine's host, is in the way: look again when it is quiet"),
        _told("ciphers", f"one core: ChaCha20-Poly1305 {Rate(capacity.rounded(found.crypto.chacha))}, AES-128-GCM {Rate(capacity.rounded(found.crypto.aes))}"),
        _told("one core", yardsticks.told(found.yardsticks)),
        _advised("wake-ups", found.asleep.pause_share < _STANDSTILL, _woken(found.asleep),
                 "the machine pauses now and then, because of other work or of its host"),
        _advised("kept awake", found.awake.pause_share < _STANDSTILL, _woken(found.awake),
                 "pauses that remain when no core sleeps are the host's"),
        _advised("steal", found.steal < 0.02, f"{100 * found.steal:.1f} % of all cores",
                 "the host of this VM takes CPU away: expect wide intervals, or use another machine"),
    )  # fmt: skip


def verdicts(found: Measured) -> tuple[str, ...]:
    """Return what this machine can do and what it cannot, as sentences. Pure."""
    said = []
    if found.filled.holds:
        end = " (as fast as is asked of any)" if found.filled.rate == GIGABIT.rate else ""
        said.append(f"links with a rate alone: good up to {found.filled.rate}{end}; profile `auto` takes what fits")
    else:
        said.append(
            f"links with a rate alone: not filled at any rate now; profile `auto` would take {found.filled.rate}"
        )
    late = found.busy.late
    if late is None or "dropped" in (found.busy.trouble or ""):
        said.append(f"links with a delay: {found.busy.trouble or 'not seen'}")
    elif capacity.holds(BUSY, found.busy):
        said.append(
            f"links with a delay: good down to {least_delay(late)}, below that late packets are a larger share of it"
        )
    else:
        said.append(
            f"links with a delay: below {least_delay(late)} late packets would disturb trials now; --backend vm carries them"
        )
    limit = Rate(capacity.rounded(min(found.crypto.chacha, found.direct.goodput)))
    said.append(f"no VPN with ChaCha20 in one thread can pass {limit} here")
    return tuple(said)


def least_delay(late: Lateness) -> Duration:
    """Return the shortest delay of a link of which this lateness is a small share.

    The 99th percentile of the lateness must be at most `emulator_health.LATE_SHARE` of the delay. The delay is 1, 2 or
    5 times a power of ten, and at least 0.1 ms.
    """
    wanted, step = late.p99 / emulator_health.LATE_SHARE, 0.0001
    while True:
        for factor in (1, 2, 5):
            if factor * step >= wanted:
                return Duration(round(factor * step, 6))
        step *= 10


def _per_second(look: CapacityLook) -> str:
    return f"{capacity.rounded(look.packets):,} a second".replace(",", " ")


def _late(late: Lateness | None) -> str:
    if late is None:
        return "no packet was held"
    return f"p50 {1e3 * late.p50:.2f}, p99 {1e3 * late.p99:.2f}, longest {1e3 * late.longest:.1f} ms late"


def _woken(woken: Wakeups) -> str:
    times = f"p50 {1e6 * woken.p50:.0f} us, p99 {1e3 * woken.p99:.2f} ms, longest {1e3 * woken.longest:.1f} ms late"
    return f"{times}; {100 * woken.pause_share:.1f} % of the time in pauses"


def _told(name: str, value: str) -> Check:
    return Check("measured", name, "ok", value)


def _advised(name: str, good: bool, value: str, hint: str) -> Check:
    return Check("measured", name, "ok" if good else "warn", value, "" if good else hint)
