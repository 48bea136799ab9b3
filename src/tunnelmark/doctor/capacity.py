"""Measures how much traffic this machine carries over a link without a VPN, and how late its emulator sends packets.

Each measurement (`CapacityLook`) is one short load, by a TCP stream or by UDP, through a fresh lab from a topology's
first node to its last.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Any

from tunnelmark.errors import LabError
from tunnelmark.lab.labs import Lab, Labs
from tunnelmark.model import emulator_health
from tunnelmark.plan import auto
from tunnelmark.plan.impairments import Direction
from tunnelmark.plan.model import Profile, Topology
from tunnelmark.units import Duration, Rate

FILLS = 0.95
"""The share of `Profile.carried` that one TCP stream must reach on a shaped link; a study's gate asks the same.

See `model.metrics.Metric.fills` for that gate.
"""

BARE = Profile("bare", "Unshaped: as fast as this machine forwards", "no figures")
"""A link without rate or delay: it shows how fast two nodes can send and receive on this machine at all."""

HELD = Profile(
    "held", "A delay of 2 ms each way", "no figures", Direction(delay=Duration(0.002)), Direction(delay=Duration(0.002))
)
"""A link that shows how much the emulator carries: it delays each packet and loses none on purpose."""

TIMES = 3
"""A rate is measured up to so many times, and the majority decides.

A single measurement may meet the machine's best moment, or its worst.
"""

LOWEST = Rate(50_000_000)
"""The lowest rate in bit/s that `auto` becomes, unless its bound is lower: a slower link hides what VPNs differ in."""

_ALIKE, _ALIKE_LATE = 0.005, 0.25
"""Differences of `margin` that a noisy machine makes by itself: in share of the rate, and of the bound on lateness."""

_SPARE, _SPARE_LATE = 0.002, 0.25
"""The least `margin` of a chosen rate (shaped, emulated): a study lasts longer than one load, and meets worse moments.

One TCP stream cannot reach more than 0.957 of a rate, so a shaped link has 0.7 points to spare at most.
"""

_PORT = 5201
_WARMUP = 0.2  # seconds at the start that do not count: TCP finds its window
_PATIENCE = 10.0  # seconds beyond the load until both ends must have ended
_SMALL = 64  # bytes of UDP payload
_HINT = "the lab's own measurement failed; --no-measure leaves it out, `tunnelmark doctor` may say why"


@dataclass(frozen=True, slots=True)
class Lateness:
    """The lateness of packets from the emulator, in seconds, in the direction with the higher p99; `count`: packets."""

    count: int
    p50: float
    p99: float
    longest: float


@dataclass(frozen=True, slots=True)
class CapacityLook:
    """The result of one measurement: `goodput` in bit/s of payload, and `packets` per second.

    `late`: how late the emulator was; None if the emulator held no packet. `trouble`: a sentence that counts the
    packets that the emulator dropped and the profile did not ask for; None if there are none. `whole`: a TCP stream's
    goodput including the first 0.2 s, which `goodput` leaves out; 0 for UDP. Only `whole` is never above the link's
    rate.
    """

    goodput: float
    packets: float
    late: Lateness | None = None
    trouble: str | None = None
    whole: float = 0.0

    def plain(self) -> dict[str, Any]:
        """Return the measurement as data for the record, with lateness in seconds, without `whole`."""
        late = self.late
        times = {"late_p50": late.p50, "late_p99": late.p99, "late_longest": late.longest} if late else {}
        return {"goodput": round(self.goodput), "packets": round(self.packets), **times, "trouble": self.trouble}


@dataclass(frozen=True, slots=True)
class Chosen:
    """The rate that a link should have on this machine, and why; rates are in bit/s.

    `ceiling`: the goodput over a link without a rate. `holds`: whether most measurements at `rate` left enough
    `margin`. `tried`: the measurements at each rate that was tried.
    """

    rate: Rate
    ceiling: float
    holds: bool
    tried: Mapping[Rate, Sequence[CapacityLook]] = field(default_factory=dict)


async def bulk(labs: Labs, topology: Topology, profile: Profile, seconds: int = 1) -> CapacityLook:
    """Send one TCP stream for some seconds, and return the measurement; `packets` are full segments per second."""
    async with labs.lab(topology.open, profile) as lab:
        said = await _iperf3(lab, ["--time", str(seconds)], seconds)
        steps = [step["sum"] for step in said["server_output_json"]["intervals"]]
        goodput = _rate([step for step in steps if step["start"] >= _WARMUP])
        segment = 8 * int(said["start"].get("tcp_mss_default") or 1448)
        found = _look(profile, goodput, goodput / segment, await lab.link_reports())
        return replace(found, whole=_rate(steps))


def _rate(steps: Sequence[Mapping[str, Any]]) -> float:
    """Return the mean rate in bit/s over some of iperf3's intervals; 0 if there are none."""
    wall = sum(step["seconds"] for step in steps)
    return 8 * sum(step["bytes"] for step in steps) / wall if wall else 0.0


async def datagrams(
    labs: Labs, topology: Topology, profile: Profile, seconds: int = 1, *, size: int = _SMALL, rate: int = 0
) -> CapacityLook:
    """Send UDP datagrams for some seconds, and return the measurement, which counts the datagrams that arrived.

    `size`: payload of a datagram in bytes. `rate`: payload in bit/s; 0 means as fast as the sender can.
    """
    async with labs.lab(topology.open, profile) as lab:
        # As a plain number: a Rate would be written with its unit, and iperf3 takes what follows a "/" for a burst.
        words = ["--udp", "--bitrate", str(int(rate)), "--length", str(size), "--time", str(seconds)]
        said = await _iperf3(lab, words, seconds)
        total = said["server_output_json"]["end"]["sum"]
        arrived = (total["packets"] - total["lost_packets"]) / seconds
        return _look(profile, 8 * size * arrived, arrived, await lab.link_reports())


async def _iperf3(lab: Lab, words: Sequence[str], seconds: int) -> dict[str, Any]:
    source, target = lab.topology.nodes[0], lab.topology.nodes[-1]
    with tempfile.TemporaryFile() as nothing:
        server = await lab.nodes[target].spawn(["iperf3", "-s", "-1", "-J", "-i", "0.1"], stdout=nothing)
        await lab.nodes[target].until({"kind": "tcp-port", "port": _PORT}, _PATIENCE)
        ends = ["-c", str(lab.address(target)), "-J", "-i", "0.1", "--get-server-output"]
        done = await lab.nodes[source].run(["iperf3", *ends, *words], timeout=seconds + _PATIENCE)
        await server.stop()
    try:
        said: dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        said = {"error": done.stderr.strip()[-200:] or "it printed nothing"}
    if "error" in said or "server_output_json" not in said:
        raise LabError(f"iperf3 could not load the bare link: {said.get('error', 'its server is silent')}", hint=_HINT)
    return said


def _look(profile: Profile, goodput: float, packets: float, reports: Sequence[Mapping[str, Any]]) -> CapacityLook:
    found = [each["lateness_us"] for report in reports for each in report["directions"] if each["lateness_us"]["count"]]
    late = None
    if found:
        worst = max(found, key=lambda each: float(each["p99"]))
        late = Lateness(worst["count"], *(worst[key] / 1e6 for key in ("p50", "p99", "max")))
    return CapacityLook(goodput, packets, late, emulator_health.trouble(reports))


def margin(profile: Profile, look: CapacityLook) -> float:
    """Return how much better than required a link did in a measurement by TCP; below 0 if it broke its profile.

    For a link that is only shaped, it is the goodput as a share of `Profile.carried`, minus the required share `FILLS`;
    0 for a link without a rate. For an emulated link, it is the unused share of the lateness that the profile allows
    (`allowed`): 0.25 if the 99th percentile is three quarters of it. If the emulator lost packets, it is below 0.
    """
    if profile.only_shaped:
        return look.goodput / profile.carried - FILLS if profile.carried else 0.0
    if look.trouble is None:
        return 1.0 if look.late is None else 1.0 - 1e6 * look.late.p99 / emulator_health.bound(profile)
    return min(-0.01, 1.0 - 1e6 * look.late.p99 / emulator_health.bound(profile)) if look.late else -1.0


def holds(profile: Profile, look: CapacityLook) -> bool:
    """Return whether the link kept to its profile in a measurement by TCP (see `margin`).

    A shaped link must carry at least the share `FILLS` of its rate. An emulator may be as late as the profile allows
    (`allowed`), and must lose no packet.
    """
    return margin(profile, look) >= 0


async def choose(labs: Labs, topology: Topology, profile: Profile) -> Chosen:
    """Measure which rate a profile should have on this machine: the highest that the link keeps to most of the time.

    Rates are tried downwards (`auto.steps`): from the profile's rate or its bound, or from `auto.SHARE` of the ceiling
    if that is lower. If the link keeps to none of these rates, other work or the machine's host disturbs it, whatever
    the rate. Then `least_bad` chooses the rate, and `holds` is False in the result.
    """
    free = BARE if profile.only_shaped else HELD
    ceiling = max([(await bulk(labs, topology, free)).goodput for _ in range(2)])
    bound = profile.auto or auto.MOST
    most = min(profile.rate or bound, bound, auto.SHARE * ceiling)
    lowest = LOWEST if bound >= LOWEST else next(auto.steps(bound, 0))
    spare = _SPARE if profile.only_shaped else _SPARE_LATE
    tried: dict[Rate, list[CapacityLook]] = {}
    for rate in auto.steps(max(most, lowest), lowest):
        slower = auto.at(profile, rate)
        looks = tried.setdefault(rate, [])
        while not (verdict := decided([margin(slower, look) >= spare for look in looks])):
            looks.append(await bulk(labs, topology, slower))
        if verdict == "holds":
            return Chosen(rate, ceiling, True, tried)
    return Chosen(least_bad(profile, tried), ceiling, False, tried)


def decided(held: Sequence[bool]) -> str:
    """Return what most of TIMES measurements found, "holds" or "fails"; "" while there are too few of them to decide.

    `held`: of each measurement up to now, whether the link kept to the rate.
    """
    most = TIMES // 2 + 1
    return "holds" if sum(held) >= most else "fails" if len(held) - sum(held) >= most else ""


def least_bad(profile: Profile, tried: Mapping[Rate, Sequence[CapacityLook]]) -> Rate:
    """Return the highest of the tried rates that is about as good as the best one.

    Its median margin is at most `_ALIKE` (on an emulated link `_ALIKE_LATE`) below the best one.
    """
    scores = {rate: median(margin(auto.at(profile, rate), look) for look in looks) for rate, looks in tried.items()}
    near = _ALIKE if profile.only_shaped else _ALIKE_LATE
    return max(rate for rate, score in scores.items() if score >= max(scores.values()) - near)


def reason(chosen: Chosen, profile: Profile, whose: str = "this machine") -> str:
    """Return in one sentence why this rate was chosen, for the record and for people.

    `whose`: the machine whose link it is, in words.
    """
    said = f"the bare link of {whose} carried {Rate(rounded(chosen.ceiling))} without it"
    verb = "filled" if profile.only_shaped else "kept in time"
    shown = [f"{rate} ({_short(auto.at(profile, rate), looks)})" for rate, looks in chosen.tried.items()]
    steps = f"of the steps 1, 2, 5, 10 up to {100 * auto.SHARE:g} % of that"
    if chosen.holds:
        missed = f", unlike {', '.join(shown[:-1])}" if shown[1:] else ""
        return f"{said}; {steps} it is the highest that was {verb}: {shown[-1].partition(' (')[2][:-1]}{missed}"
    return f"{said}; {steps} none was {verb} ({', '.join(shown)}), so other work or its host is in the way, and not the rate"


def _short(profile: Profile, looks: Sequence[CapacityLook]) -> str:
    if profile.only_shaped and profile.carried:
        return f"{100 * median(look.goodput for look in looks) / profile.carried:.1f} %"
    late = median(look.late.p99 if look.late else 0.0 for look in looks)
    return f"one packet in a hundred {1e3 * late:.2f} ms late"


def rounded(rate: float) -> int:
    """Cut to three significant figures: further ones would differ the next time."""
    return int(float(f"{rate:.3g}"))


def allowed(profile: Profile) -> float:
    """Return the highest 99th percentile of lateness, in milliseconds, that this profile allows."""
    return emulator_health.bound(profile) / 1e3
