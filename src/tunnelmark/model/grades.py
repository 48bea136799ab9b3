"""Grades an attempt that has a result: good, disturbed or void, by what the machine did meanwhile and what each metric feels of it. Pure.

What a packet's lateness, a pause of the machine, or other work does to a result depends on what is measured: a
transfer of seconds does not feel a millisecond, but a 99th percentile of delay is made of nothing else. So each metric says
what it feels (`workloads.base.Feels`), and the bounds follow from that and from the profile. They are set so that what is
*good* moves a value by no more than some per cent, and what is *void* could move it by a fifth or more; between them an
attempt is *disturbed*. docs/method.md ("Three grades") has the measurements (`bench/lateness_effect.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from tunnelmark.model.metrics import Feels, Metric
from tunnelmark.plan.impairments import Direction
from tunnelmark.plan.model import Profile

Grade = Literal["good", "disturbed", "void"]

ORDER: tuple[Grade, ...] = ("good", "disturbed", "void")
"""From the best to the worst."""

QUIET = 0.25
"""Cores that other work, or the hypervisor as steal, may take during an attempt before it counts as disturbed.

They are not the lab's cores, and each node has a core or less. Blocks still pair, so it is not a reason for void.
"""

_TAILS = {"uniform": 0.98, "normal": 2.33, "pareto": 4.3, "paretonormal": 3.6}
"""The 99th percentile of a jitter, in multiples of its size beyond the mean (`analyse.link.jitter_distributions.quantile`)."""


@dataclass(frozen=True, slots=True)
class Met:
    """What an attempt met. Seconds; of lateness the worst of all directions, None where no emulator carried the link.

    `own_p99` is the part of `late_p99` that the emulator caused and not a pause of the machine (None: not known);
    `pause_share` (0 to 1) and `pause_longest` are the machine's pauses, `others` cores taken by others.
    `priority` says why the emulator had no real-time priority, where the kernel refused it.
    """

    late_p50: float | None = None
    late_p99: float | None = None
    late_max: float | None = None
    own_p99: float | None = None
    pause_share: float = 0.0
    pause_longest: float = 0.0
    others: float = 0.0
    priority: str = ""


@dataclass(frozen=True, slots=True)
class GradeBound:
    """Up to `good` a figure leaves a metric good, beyond `void` it makes it void; infinity: never."""

    good: float
    void: float


@dataclass(frozen=True, slots=True)
class Graded:
    """The grade of an attempt, why it is not good, and by what metrics feel (`Feels`) the grades that are not good.

    `wanting`: a primary metric is void, though others may be used.
    """

    grade: Grade
    causes: tuple[str, ...] = ()
    grades: Mapping[str, Grade] = field(default_factory=dict)
    wanting: bool = False


def met(reports: Sequence[Mapping[str, Any]], host: Mapping[str, float]) -> Met:
    """What the emulators' latest reports and the look at the host say together."""
    ways = [way for report in reports for way in report["directions"] if way["lateness_us"]["count"]]

    schedulers = [str(report.get("scheduler", "fifo")) for report in reports]

    def worst(of: str, which: str) -> float | None:
        return max((float(way[of][which]) / 1e6 for way in ways if of in way), default=None)

    return Met(
        late_p50=worst("lateness_us", "p50"),
        late_p99=worst("lateness_us", "p99"),
        late_max=worst("lateness_us", "max"),
        own_p99=worst("own_lateness_us", "p99"),
        pause_share=host.get("pause_share", 0.0),
        pause_longest=host.get("pause_longest", 0.0),
        others=others(host),
        priority=next((said for said in schedulers if not said.startswith("fifo")), ""),
    )


def others(host: Mapping[str, float]) -> float:
    """Cores that other work and the hypervisor took."""
    return host.get("other_cpu", 0.0) + host.get("steal", 0.0)


def bounds(feels: Feels, profile: Profile) -> Mapping[str, GradeBound]:
    """What of an attempt (fields of `Met`) a metric that feels so is held against, with its bounds on this profile."""
    never = float("inf")
    if feels == "counts":
        return {}
    ways = (profile.forward, profile.back)
    found = {"others": GradeBound(QUIET, never)}
    match feels:
        case "transfer":
            # The sender feels lateness as a longer round trip. One packet in a hundred late by half a round trip left
            # 96 to 98 % of the goodput at 3 ms and all of it at 16 ms; by three round trips 91 %; a link that a rate bounds
            # feels less (99 % by two). A pause of the whole machine costs no more than its share of the time.
            trip = sum(float(way.delay or 0.0) for way in ways)
            found["late_p50"] = GradeBound(max(2e-4, 0.05 * trip), max(2e-3, 0.5 * trip))
            found["late_p99"] = GradeBound(max(1e-3, 0.5 * trip), max(1e-2, 5.0 * trip))
            found["pause_share"] = GradeBound(0.05, 0.2)
        case "delay":
            # Half of the packets are that late or more, so all of it is part of the median.
            middle = min(float(way.delay or 0.0) for way in ways)
            found["late_p50"] = GradeBound(max(5e-5, 0.02 * middle), max(5e-4, 0.2 * middle))
            found["pause_share"] = GradeBound(0.05, 0.2)
        case "tail":
            # One in a hundred is that late: it moves the 99th percentile by that much at the worst, and by less where jitter
            # makes that percentile. A pause that takes half of a hundredth of the time is half of that percentile.
            high = min(_p99(way) for way in ways)
            found["late_p99"] = GradeBound(max(1e-4, 0.05 * high), max(1e-3, 0.2 * high))
            found["pause_share"] = GradeBound(0.005, 0.05)
        case "longest":
            # A single packet decides. What is looked for here is tenths of seconds to seconds (an outage, a stall).
            found["late_max"] = found["pause_longest"] = GradeBound(0.02, 0.25)
        case "processor":
            found["pause_share"] = GradeBound(0.05, never)
    return found


def grade_of(feels: Feels, profile: Profile, seen: Met) -> tuple[Grade, tuple[str, ...]]:
    """The grade of a metric that feels so, and why it is not good."""
    grade, causes = 0, []
    for what, bound in bounds(feels, profile).items():
        value = getattr(seen, what)
        if value is None or value <= bound.good:
            continue
        grade = max(grade, 2 if value > bound.void else 1)
        causes.append(_cause(what, seen, bound))
    return ORDER[grade], tuple(causes)


def graded(metrics: Iterable[Metric], profile: Profile, seen: Met) -> Graded:
    """The grade of an attempt with these metrics: void where no primary one can be used, good where all are."""
    metrics = tuple(metrics)
    primary = {metric.feels for metric in metrics if metric.primary} or {metric.feels for metric in metrics}
    grades: dict[str, Grade] = {}
    causes: dict[str, None] = {}
    for feels in dict.fromkeys(metric.feels for metric in metrics):
        grade, why = grade_of(feels, profile, seen)
        if grade != "good":
            grades[feels] = grade
        if feels in primary:
            causes |= dict.fromkeys(why)
    of_primary = [grades.get(feels, "good") for feels in primary]
    void = of_primary.count("void")
    whole: Grade = "void" if of_primary and void == len(of_primary) else "disturbed" if causes else "good"
    return Graded(whole, tuple(causes), grades, wanting=void > 0)


def spoilt(profile: Profile, host: Mapping[str, float]) -> str:
    """Why a deployment that failed says nothing of its VPN, by what the machine did meanwhile; "" if it does.

    A deployment is given so many seconds to come up. Those in which the machine did not run are missing to it, as they are to a transfer:
    `pause_share` is their share of what it is given, and not of the shorter time after which it may have failed.
    """
    grade, causes = grade_of("transfer", profile, met((), host))
    return "; ".join(causes) if grade == "void" else ""


def outside(found: Graded, *, bare: bool) -> str:
    """What outside of an attempt's nodes explains that a sender did not keep to what was asked of it; "" if nothing does.

    What disturbed the attempt does. On the `bare` link there is no VPN next to the generator that could have taken its
    core, so it is the laboratory's own limit in any case. Otherwise it is what the VPN did to its sender, which is a result: to
    void it would spare the VPN its worst trials.
    """
    said = list(found.causes)
    return "; ".join([*said, "without a VPN as well, so the generator or the machine is the limit"] if bare else said)


def _p99(way: Direction) -> float:
    """The 99th percentile of a direction's delay, in seconds."""
    delay = float(way.delay or 0.0)
    return delay if way.jitter is None else delay + _TAILS[way.jitter.distribution] * float(way.jitter.size)


def _cause(what: str, seen: Met, bound: GradeBound) -> str:
    value = getattr(seen, what)
    limits = f"good up to {_ms(bound.good)}" + (f", void beyond {_ms(bound.void)}" if value > bound.void else "")
    match what:
        case "late_p50":
            return f"half of the packets left the emulator {_ms(value)} late or more ({limits})"
        case "late_p99":
            return f"one in a hundred packets left the emulator {_ms(value)} late or more ({limits}){_whose(seen)}"
        case "late_max":
            return f"a packet left the emulator {_ms(value)} late ({limits})"
        case "pause_longest":
            return f"the machine paused for {_ms(value)} ({limits})"
        case "pause_share":
            return f"the machine paused for {100 * value:.1f} % of the time (good up to {100 * bound.good:g} %)"
        case _:
            return f"other work took {value:.2f} cores (good up to {bound.good:g})"


def _whose(seen: Met) -> str:
    """By whose doing packets were late, where the emulator could tell."""
    own = "" if seen.own_p99 is None else f"; without the machine's pauses {_ms(seen.own_p99)}"
    return own + (f"; it ran without real-time priority: {seen.priority}" if seen.priority else "")


def _ms(seconds: float) -> str:
    return f"{1e3 * seconds:.2f} ms"
