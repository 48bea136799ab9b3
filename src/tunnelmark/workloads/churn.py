"""The workload `churn`: many events over a long time. It measures their effects on a stream of probes, and leaks.

The events are drawn from a seed, so that every arm of a study meets the same ones at the same times. Each event leaves
the mesh as it was before. So if the VPN's programs hold more processes, memory or open files after the last event
than before the first, that is a leak.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean, median
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from tunnelmark.errors import OutputUnreadable, TrialVoid
from tunnelmark.model.metrics import Metric, Sample
from tunnelmark.model.options import Options
from tunnelmark.plan.fields import DurationText, MomentText
from tunnelmark.units import Duration
from tunnelmark.workloads import _gaps, _paths, _probe, _schedule, _stream
from tunnelmark.workloads._events import FaultKind
from tunnelmark.workloads._schedule import AT_ONCE, EventTarget, Scheduled
from tunnelmark.workloads._stream import BEFORE
from tunnelmark.workloads.base import (
    ANSWERED,
    EVERY_NODE,
    PATH_LOOKS,
    Endpoints,
    Event,
    EventKind,
    Reading,
    Traffic,
    Workload,
)

_LINGER = 2.0  # seconds for the last count of holdings, and for the last probes to arrive
_GRACE_S = 30.0  # more seconds until the client must have ended: to start, and to print an hour of arrivals
_EARLIER = 0.2  # the holdings are counted this many seconds before an event
_LATE = 0.2  # longest pause of a sender, in seconds: a gap that falls into a pause is not seen
_STEPS = 600  # a series has at most this many values; each covers at least one second
_ROUNDING = 1e-6  # seconds
_COUNT: EventKind = "count-holdings"
_MIB = 1 << 20


class ListedEvent(Options):
    """One event of a `schedule`, `at` seconds after the window begins; its `outage` replaces that of the options."""

    at: MomentText
    event: FaultKind
    node: EventTarget = "target"
    outage: DurationText | None = None

    @model_validator(mode="after")
    def _fits_its_node(self) -> ListedEvent:
        if self.node == "all" and self.event != "reboot":
            raise ValueError("should have the node 'all' with the event 'reboot' only")
        return self


class ChurnOptions(Options):
    """Events are drawn from the kinds in `events`, or listed in `schedule`; the window lasts `duration`.

    `every`: the average time between drawn events.
    `node`: where drawn events happen; `both` draws one of the two ends for each event.
    `outage`: how long a node or its link is down or cut off, or the node has another address. Restarts of daemons and
    `nat-rebinding` are over at once, and ignore this option.
    `recover`: the shortest time without an event after the end of each event.
    `seed`: the same seed draws the same events.
    `rate`: probes a second in each direction.
    """

    duration: DurationText = Duration(300)
    events: Annotated[tuple[FaultKind, ...], Field(min_length=1, strict=False), _probe.EachOnce] = (
        "restart",
        "restart-fresh",
        "reboot",
        "link-flap",
        "partition",
        "udp-cut",
        "change-address",
    )
    node: Literal["source", "target", "both", "relay"] = "both"
    every: DurationText = Duration(30)
    outage: DurationText = Duration(2)
    recover: DurationText = Duration(15)
    seed: Annotated[int, Field(ge=0)] = 1
    schedule: Annotated[tuple[ListedEvent, ...], Field(strict=False)] = ()
    rate: Annotated[int, Field(ge=10, le=1000)] = 125

    @model_validator(mode="after")
    def _leaves_time_to_recover(self) -> ChurnOptions:
        if self.schedule and (said := sorted(self.model_fields_set & {"events", "node", "every", "seed"})):
            raise ValueError(f"should have no `{said[0]}` with a `schedule`: nothing is drawn")
        least = float(self.outage) + float(self.recover)
        if least > self.duration and not self.schedule:
            raise ValueError("should have a `duration` of at least `outage` and `recover` together")
        if least > self.every and not self.schedule:
            raise ValueError("should have an `every` of at least `outage` and `recover` together")
        plan = self.plan
        ends = (*(one.at for one in plan[1:]), float(self.duration))
        if any(
            end - one.at < one.outage + float(self.recover) - _ROUNDING for one, end in zip(plan, ends, strict=True)
        ):
            raise ValueError(
                "should have a `schedule` in the order of its times, with `outage` and `recover` between two and after the last"
            )
        return self

    @property
    def plan(self) -> tuple[Scheduled, ...]:
        """All events in the order in which they happen."""
        if self.schedule:
            return tuple(self._scheduled(one) for one in self.schedule)
        nodes: tuple[EventTarget, ...] = ("source", "target") if self.node == "both" else (self.node,)
        return _schedule.draw(
            self.seed,
            self.events,
            nodes,
            duration=float(self.duration),
            every=float(self.every),
            outage=float(self.outage),
            recover=float(self.recover),
        )

    def _scheduled(self, one: ListedEvent) -> Scheduled:
        usual = 0.0 if one.event in AT_ONCE else float(self.outage)
        outage = usual if one.outage is None else float(one.outage)
        return Scheduled(float(one.at), one.event, one.node, outage)


def _traffic(ends: Endpoints, options: ChurnOptions) -> Traffic:
    seconds = BEFORE + float(options.duration)
    server, client = _stream.programs(ends, options.rate, seconds, _LINGER)
    return Traffic(
        servers=(server,),
        client=client,
        window=float(options.duration),
        warmup=BEFORE,
        timeout=seconds + _LINGER + _GRACE_S,
        events=_events(ends, options),
    )


def _events(ends: Endpoints, options: ChurnOptions) -> tuple[Event, ...]:
    """Return all events with their endings, and a count of holdings before each event and at the end."""
    done: list[Event] = []
    nodes = {"source": ends.source, "target": ends.target, "relay": ends.relay, "all": EVERY_NODE}
    for one in options.plan:
        done.append(Event(BEFORE + one.at - _EARLIER, _COUNT, ""))
        done += one.events(nodes[one.node], BEFORE)
    return (*done, Event(BEFORE + float(options.duration), _COUNT, ""))


def _read(outputs: dict[str, str], options: ChurnOptions) -> Reading:
    (ways, latest), (_, *lines) = _stream.read(outputs), _stream.happened(outputs)
    begun = ways[0].begun + BEFORE
    happened = _gaps.events(line for line in lines if line["kind"] not in (_COUNT, ANSWERED))
    accounts = _gaps.account(ways, happened, float(options.recover))
    gaps = [one.gap for one in happened]
    if latest > max(_LATE, *gaps):
        raise TrialVoid(
            f"a sender of probes paused for {latest:.2f} s, and an outage in that time cannot be seen; the longest outage is {max(gaps):.2f} s",
            hint="its core was taken by other work; try on a quiet machine",
        )
    sent, lost = sum(way.sent for way in ways), sum(way.lost for way in ways)
    samples = [
        Sample("gap", max(gaps)),
        Sample("arrived", 100 * (sent - lost) / sent),
        Sample("gap_median", median(gaps)),
        Sample("gap_total", sum(gaps)),
        Sample("back", max(one.back for one in happened)),
        Sample("events", float(len(happened))),
        Sample("not_back", float(accounts.not_back)),
        Sample("lost_events", float(sum(one.lost for one in happened))),
        Sample("lost_else", float(accounts.lost)),
        Sample("unaccounted", float(len(accounts.unaccounted))),
        Sample("unaccounted_time", sum(accounts.unaccounted)),
    ]
    for one in happened:
        at = round(one.begun - begun, 3)
        values = {"gap": one.gap, "back": one.back, "lost_events": float(one.lost)}
        samples += [Sample(name, value, at) for name, value in values.items()]
    for kind in dict.fromkeys(one.event for one in options.plan):
        seen = [one.gap for one in happened if one.kind == kind]
        samples += [Sample(_of(kind), max(seen))] if seen else []
    step = max(1.0, float(options.duration) / _STEPS)
    samples += [Sample("passing", share, at) for at, share in _stream.passing(ways, begun, step).items()]
    samples += _held([line for line in lines if line["kind"] == _COUNT], begun)
    samples += _path(outputs.get(PATH_LOOKS, ""), happened, begun, begun + float(options.duration))
    return Reading(tuple(samples), window=float(options.duration), warmup=BEFORE)


def _path(text: str, happened: Sequence[_gaps.Happened], begun: float, ended: float) -> list[Sample]:
    """Return the relayed share of bytes before each event and after the last one; [] if the path was not watched.

    Each span begins once the path is back from the event before it.
    """
    quiet = [begun - BEFORE, *(max(one.ended, one.until) for one in happened)]
    next_begun = [*(one.begun for one in happened), ended]
    shares = _paths.relayed(text, list(zip(quiet, next_begun, strict=True)))
    series = [
        Sample("relayed", share, round(at - begun, 3))
        for at, share in zip(next_begun, shares, strict=True)
        if share is not None
    ]
    if not series:
        return []
    mean = fmean(sample.value for sample in series)
    return [Sample("relayed", mean), Sample("path_changes", float(_paths.changes(shares))), *series]


def _held(looks: list[Mapping[str, Any]], begun: float) -> list[Sample]:
    """Return what the VPN's programs held on all nodes together before the first event, and over time.

    `..._more`: how much more it was after the last event than before the first.
    `..._second_half`: how much more it was after the last event than when half of the events had taken place.
    """
    if len(looks) < 2 or any("held" not in look for look in looks):
        raise OutputUnreadable(
            "what the VPN's programs hold was not counted after the last event",
            hint="the events took longer than the trial; the file `events` has their times",
        )
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in _HELD}
    for look in looks:
        for name, unit in _HELD.items():
            total = sum(node[name] for node in look["held"].values()) / unit
            found[name].append((round(look["begun"] - begun, 3), total))
    samples = []
    for name, seen in found.items():
        (_, first), (_, half), (_, last) = seen[0], seen[len(seen) // 2], seen[-1]
        samples += [
            Sample(name, first),
            Sample(f"{name}_more", last - first),
            Sample(f"{name}_second_half", last - half),
        ]
        samples += [Sample(name, value, at) for at, value in seen if at >= 0]
    return samples


_HELD = {"processes": 1, "memory": _MIB, "files": 1}
"""The kinds of holdings that are counted (`run.holdings`), each with the size of the unit in which it is reported."""


def _of(kind: str) -> str:
    return f"gap_{kind.replace('-', '_')}"


def _metrics(options: ChurnOptions) -> tuple[Metric, ...]:
    kinds = dict.fromkeys(one.event for one in options.plan)
    return (
        Metric(
            "gap", "s", "longest time without a packet", "lower", compare="difference", primary=True, feels="longest"
        ),
        Metric("arrived", "%", "probes that arrived", "higher", compare="difference", primary=True),
        Metric("gap_median", "s", "median gap of an event", "lower", compare="difference", feels="longest"),
        Metric("gap_total", "s", "gaps of all events together", "lower", compare="difference"),
        Metric("back", "s", "longest from an event to the first packet after its gap", "lower", "difference"),
        *(Metric(_of(kind), "s", f"longest gap of {kind}", "lower", "difference", feels="longest") for kind in kinds),
        Metric("events", "", "events that were done", "higher", compare="difference", feels="counts"),
        Metric("not_back", "", "events before whose gap's end the next began", "lower", "difference", feels="counts"),
        Metric("lost_events", "packets", "probes lost in gaps of events, both ways", "lower", compare="difference"),
        Metric("lost_else", "packets", "probes lost at other times, both ways", "lower", compare="difference"),
        Metric("unaccounted", "", "gaps that no event explains", "lower", compare="difference", feels="longest"),
        Metric("unaccounted_time", "s", "gaps that no event explains, together", "lower", "difference"),
        Metric("processes", "", "processes of the VPN before the first event", "lower", "difference", feels="counts"),
        Metric("processes_more", "", "more of them after the last event", "lower", "difference", feels="counts"),
        Metric(
            "processes_second_half",
            "",
            "more of them than at half of the events",
            "lower",
            "difference",
            feels="counts",
        ),
        Metric("memory", "MiB", "memory of the VPN (RSS) before the first event", "lower", feels="counts"),
        Metric("memory_more", "MiB", "more of it after the last event", "lower", "difference", feels="counts"),
        Metric(
            "memory_second_half", "MiB", "more of it than at half of the events", "lower", "difference", feels="counts"
        ),
        Metric("files", "", "open files of the VPN before the first event", "lower", "difference", feels="counts"),
        Metric("files_more", "", "more of them after the last event", "lower", "difference", feels="counts"),
        Metric(
            "files_second_half", "", "more of them than at half of the events", "lower", "difference", feels="counts"
        ),
        Metric("relayed", "%", "bytes through a third node, between events", "lower", "difference", feels="counts"),
        Metric(
            "path_changes", "", "events after which traffic went another way", "lower", "difference", feels="counts"
        ),
        Metric("passing", "%", "probes that arrived, by when they were sent", "higher", compare="difference"),
    )


WORKLOAD = Workload(
    name="churn",
    title="Gaps and leaks when one thing after another happens (probes)",
    metrics=_metrics(ChurnOptions()),
    traffic=_traffic,
    read=_read,
    programs=(_stream.PROGRAM,),
    packages=(),
    options=ChurnOptions,
    metrics_of=_metrics,
    one_machine="it counts what the VPN's processes hold on every node",
)
