"""Grades an attempt that has a result (good, disturbed or void) by what disturbed it and how its metrics react. Pure.

Late packets, a pause of the machine and other work affect metrics differently: one millisecond does not matter to a
transfer of seconds, but it decides a 99th percentile of delay. So each metric says what it feels (`metrics.Feels`), and
the bounds follow from that and from the profile. In a *good* attempt the disturbance changes a value by no more than
some per cent; in a *void* one it could change it by a fifth or more; in between, the attempt is *disturbed*. The
measurements behind the bounds are in docs/method.md ("Three grades"; `bench/lateness_effect.py`).
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
"""The grades from the best to the worst."""

QUIET = 0.25
"""How many cores other work and the hypervisor (steal) may take together before an attempt counts as disturbed.

They are not the lab's cores, and each node has a core or less. Arms are still compared within a block, so such work
never makes an attempt void.
"""

_TAILS = {"uniform": 0.98, "normal": 2.33, "pareto": 4.3, "paretonormal": 3.6}
"""How far a jitter's 99th percentile lies above its mean, in multiples of its size, by distribution.

See `analyse.link.jitter_distributions.quantile`.
"""


@dataclass(frozen=True, slots=True)
class Met:
    """The disturbances of an attempt. Times are in seconds.

    `late_*`: median, 99th percentile and maximum of lateness in the worst direction; None without an emulator.
    `own_p99`: the 99th percentile of lateness without the machine's pauses; None if it is not known.
    `pause_share`: the share of the time (0 to 1) in which the machine paused. `pause_longest`: its longest pause.
    `others`: cores that other work and the hypervisor took.
    `priority`: the emulator's scheduler report if it had no real-time priority; else "".
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
    """The bounds of one disturbance: up to `good` a metric is good, beyond `void` it is void. Infinity means never."""

    good: float
    void: float


@dataclass(frozen=True, slots=True)
class Graded:
    """The grade of an attempt.

    `causes`: why the grade is not good. `grades`: the grade of the metrics that have the same `Metric.feels`, by that
    name; a good grade is left out. `wanting`: at least one primary metric is void. The attempt itself is void only if
    all primary metrics are.
    """

    grade: Grade
    causes: tuple[str, ...] = ()
    grades: Mapping[str, Grade] = field(default_factory=dict)
    wanting: bool = False


def met(reports: Sequence[Mapping[str, Any]], host: Mapping[str, float]) -> Met:
    """Return what disturbed an attempt, from the emulators' latest reports and from figures of the machine.

    `host`: `other_cpu`, `steal`, `pause_share` and `pause_longest`, as in `Attempt.host`; a missing figure counts as 0.
    """
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
    """Return how many cores other work and the hypervisor took together."""
    return host.get("other_cpu", 0.0) + host.get("steal", 0.0)


def bounds(feels: Feels, profile: Profile) -> Mapping[str, GradeBound]:
    """Return the bounds on this profile for metrics that react as `feels` says, by the field of `Met` they apply to."""
    never = float("inf")
    if feels == "counts":
        return {}
    ways = (profile.forward, profile.back)
    found = {"others": GradeBound(QUIET, never)}
    match feels:
        case "transfer":
            # For the sender, lateness is a longer round trip. Where one packet in a hundred was late by half a round
            # trip, 96 to 98 % of the goodput was left at 3 ms and all of it at 16 ms; late by three round trips, 91 %.
            # A link with a rate limit is affected less (99 % left at two). A pause costs at most its share of the time.
            trip = sum(way.transit for way in ways)
            found["late_p50"] = GradeBound(max(2e-4, 0.05 * trip), max(2e-3, 0.5 * trip))
            found["late_p99"] = GradeBound(max(1e-3, 0.5 * trip), max(1e-2, 5.0 * trip))
            found["pause_share"] = GradeBound(0.05, 0.2)
        case "delay":
            # Half of the packets are that late or later, so the median delay contains all of this lateness.
            middle = min(way.transit for way in ways)
            found["late_p50"] = GradeBound(max(5e-5, 0.02 * middle), max(5e-4, 0.2 * middle))
            found["pause_share"] = GradeBound(0.05, 0.2)
        case "tail":
            # One packet in a hundred is that late: at worst that moves the 99th percentile as far, and less where
            # jitter decides it. Pauses of 0.5 % of the time delay half of the packets that lie beyond this percentile.
            high = min(_p99(way) for way in ways)
            found["late_p99"] = GradeBound(max(1e-4, 0.05 * high), max(1e-3, 0.2 * high))
            found["pause_share"] = GradeBound(0.005, 0.05)
        case "longest":
            # A single packet decides. Such metrics look for tenths of seconds to seconds (an outage, a stall).
            found["late_max"] = found["pause_longest"] = GradeBound(0.02, 0.25)
        case "processor":
            found["pause_share"] = GradeBound(0.05, never)
    return found


def grade_of(feels: Feels, profile: Profile, seen: Met) -> tuple[Grade, tuple[str, ...]]:
    """Return the grade of a metric that reacts as `feels` says, and the reasons why it is not good."""
    grade, causes = 0, []
    for what, bound in bounds(feels, profile).items():
        value = getattr(seen, what)
        if value is None or value <= bound.good:
            continue
        grade = max(grade, 2 if value > bound.void else 1)
        causes.append(_cause(what, seen, bound))
    return ORDER[grade], tuple(causes)


def graded(metrics: Iterable[Metric], profile: Profile, seen: Met) -> Graded:
    """Grade an attempt with these metrics: void if all primary ones are void, good if all are good, else disturbed."""
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


def of_at_least(host: Mapping[str, float], spent: float, planned: float) -> dict[str, float]:
    """Return `host` with `pause_share` as a share of `planned` seconds, or of `spent` seconds if these are more.

    `spent`: the seconds of which the given `pause_share` is a share. An attempt that fails early has spent only a part
    of the planned time, and one pause is a large share of that part. Such a pause does not explain the failure, so the
    pauses are compared with the planned time.
    """
    if "pause_share" not in host:
        return dict(host)
    return {**host, "pause_share": host["pause_share"] * spent / max(spent, planned)}


def spoilt(profile: Profile, host: Mapping[str, float]) -> str:
    """Say why the machine may be to blame for a failed deployment; "" if the machine is not to blame.

    A deployment has a time limit to come up, and loses the seconds in which the machine paused, as a transfer does. So
    the bounds are those of a transfer. `host`: its `pause_share` must be a share of the time limit at least, as
    `of_at_least` returns it.
    """
    grade, causes = grade_of("transfer", profile, met((), host))
    return "; ".join(causes) if grade == "void" else ""


def outside(found: Graded, *, bare: bool) -> str:
    """Say what, outside the nodes, explains that a sender did not reach the rate asked of it; "" if nothing does.

    `found`: the attempt's grade, whose causes are such explanations. `bare`: whether the link has no VPN. Then the
    generator or the machine is the limit in any case, because no VPN can have taken the generator's core. If a VPN is
    there and "" is returned, the VPN slowed its sender down, and that is a result: to make such an attempt void would
    spare the VPN its worst trials.
    """
    said = list(found.causes)
    return "; ".join([*said, "without a VPN as well, so the generator or the machine is the limit"] if bare else said)


def _p99(way: Direction) -> float:
    """Return the 99th percentile of a direction's delay by its profile, in seconds."""
    delay = way.transit
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
    """Say how late packets were without machine pauses, and if the emulator had no real-time priority; else ""."""
    own = "" if seen.own_p99 is None else f"; without the machine's pauses {_ms(seen.own_p99)}"
    return own + (f"; it ran without real-time priority: {seen.priority}" if seen.priority else "")


def _ms(seconds: float) -> str:
    return f"{1e3 * seconds:.2f} ms"
