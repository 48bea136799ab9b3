"""The workload `connect`: how long a path carries nothing after an event, by a stream of probes in both directions.

`tunnelmark-probe stream` runs on both ends from before the event until long after it. Each end counts which probes are lost
and when the next one arrives. Its clock is CLOCK_MONOTONIC, which the nodes share with the process that makes the event.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from statistics import fmean, median
from typing import Annotated, Literal, cast

from pydantic import Field, model_validator

from tunnelmark.errors import OutputUnreadable, TrialVoid, WorkloadFailed
from tunnelmark.model.metrics import Metric, Sample
from tunnelmark.model.options import Options
from tunnelmark.plan.fields import DurationText
from tunnelmark.units import Duration
from tunnelmark.workloads import _events, _paths, _stream
from tunnelmark.workloads._stream import BEFORE, NEAR, NOTABLE
from tunnelmark.workloads.base import ANSWERED, EVERY_NODE, PATH_LOOKS, Endpoints, Reading, Traffic, Workload

_AFTER_IDLE = 1.0  # seconds of probes after the idle time
_OUTAGE = 1.0  # seconds that a fault lasts unless another time is asked for; a restart is over at once
_LINGER = 1.0  # seconds that probes may be under way
_GRACE_S = 10.0  # beyond all that: starting, and printing what arrived
_LATE = 0.2  # seconds: a gap that falls into a pause of the sender is not seen
_STEP = 0.1  # seconds of a value of the series


class ConnectOptions(Options):
    """The `event`, the `node` to which it happens, and the time for which the path is then watched (`duration`).

    `restart`: the node's daemons are killed and started again.
    `restart-fresh`: the same, but the files that they wrote are gone.
    `restart-control`: the same as `restart`, for the VPN's control service only, wherever it runs.
    `reboot`: the node is switched off, and starts as at boot.
    `link-flap`: its underlay interface is down.
    `partition`: packets between the node and all others are dropped.
    `udp-cut`: UDP packets between the node and all others but the relay are dropped.
    `udp-blocked`: all UDP packets to and from the node are dropped.
    `nat-rebinding`: routers that translate the node's address forget their mappings.
    `change-address`: the node has another address of its network.
    `none`: nothing happens; after the time `idle` without packets the first packet is timed.

    `outage`: how long the event lasts; by default 1 s for events that have an end, and 0 for restarts and all others.
    `rate`: probes a second in each direction.
    """

    event: Literal["none", _events.FaultKind] = "restart"
    node: Literal["source", "target", "relay", "all"] = "target"
    duration: DurationText = Duration(15)
    outage: DurationText | None = None
    idle: DurationText = Duration(2)
    rate: Annotated[int, Field(ge=50, le=2000)] = 200

    @model_validator(mode="after")
    def _fits_its_event(self) -> ConnectOptions:
        said = self.model_fields_set
        if "outage" in said and self.event not in _events.PAIRS:
            raise ValueError(f"should have `outage` with the events {', '.join(_events.PAIRS)} only")
        if "idle" in said and self.event != "none":
            raise ValueError("should have `idle` with the event 'none' only")
        if said & {"duration", "node"} and self.event == "none":
            raise ValueError("should have no `duration` and no `node` with the event 'none': nothing happens")
        if self.node == "all" and self.event != "reboot":
            raise ValueError("should have the node 'all' with the event 'reboot' only")
        return self

    @property
    def away(self) -> float:
        """Seconds that the event lasts."""
        if self.outage is not None:
            return float(self.outage)
        return _OUTAGE if self.event in _events.PAIRS and self.event not in _events.INSTANT else 0.0

    @property
    def may_change_path(self) -> bool:
        """Whether the event may make a VPN change its path, such as to a relay."""
        return self.event in ("partition", "udp-cut", "udp-blocked", "nat-rebinding") or (
            self.event != "none" and self.node == "relay"
        )

    @property
    def watched(self) -> float:
        """Seconds that are measured, from the event's beginning."""
        if self.event == "none":
            return _AFTER_IDLE
        return float(self.duration) + self.away

    @property
    def pause(self) -> float:
        """Seconds without probes, after the first probes and before the measured ones; 0 unless the event is `none`."""
        return float(self.idle) if self.event == "none" else 0.0


def _traffic(ends: Endpoints, options: ConnectOptions) -> Traffic:
    pause = ("--pause-after", f"{BEFORE:g}", "--pause", f"{options.pause:g}") if options.pause else ()
    server, client = _stream.programs(ends, options.rate, BEFORE + options.watched, _LINGER, pause)
    warmup = BEFORE + options.pause
    return Traffic(
        servers=(server,),
        client=client,
        window=options.watched,
        warmup=warmup,
        timeout=warmup + options.watched + _LINGER + _GRACE_S,
        events=_events.schedule(_faults(ends, options)),
    )


def _faults(ends: Endpoints, options: ConnectOptions) -> tuple[_events.Fault, ...]:
    if options.event == "none":
        return ()
    nodes = {"source": ends.source, "target": ends.target, "relay": ends.relay, "all": EVERY_NODE}
    return (_events.Fault(BEFORE, options.event, nodes[options.node], options.away),)


def _read(outputs: dict[str, str], options: ConnectOptions) -> Reading:
    (ways, latest), lines = _stream.read(outputs), _stream.happened(outputs)
    happened = [line for line in lines if line["kind"] != ANSWERED]
    samples = (
        _warm(options, ways[0], happened)
        if options.event == "none"
        else _interrupted(options, ways, happened[1:], latest)
    )
    if options.node == "all":
        samples += _nodes_back(lines[0], happened[1], [line for line in lines if line["kind"] == ANSWERED], options)
    if options.may_change_path:
        begun, ended = cast(float, happened[1]["begun"]), happened[-1]["ended"]
        samples += _paths.read(outputs.get(PATH_LOOKS, ""), begun, ended if isinstance(ended, float) else inf)
    return Reading(tuple(samples), window=options.watched, warmup=BEFORE + options.pause)


def _nodes_back(
    deployed: Mapping[str, object],
    event: Mapping[str, object],
    answered: list[Mapping[str, object]],
    options: ConnectOptions,
) -> list[Sample]:
    """Return when each node carried traffic again after all nodes were rebooted.

    Raises WorkloadFailed if a node carried traffic before the reboot, but not after it.
    """
    ways = cast(Mapping[str, float], deployed.get("first_packet", {}))
    away = {node for way in ways for node in way.split(">")} - {cast(str, line["node"]) for line in answered}
    if away or not answered:
        raise WorkloadFailed(
            f"did not come back within {float(options.duration):g} s: {', '.join(sorted(away)) or 'every node'}",
            hint="that is a result; with a longer `duration` it may come back",
        )
    backs = sorted(cast(float, line["begun"]) - cast(float, event["begun"]) for line in answered)
    values = backs[0], median(backs), backs[-1], fmean(backs)
    return [Sample(name, value) for name, value in zip(_EACH, values, strict=True)]


def _warm(options: ConnectOptions, way: _stream.StreamWay, happened: list[Mapping[str, object]]) -> list[Sample]:
    """Return how long the first packet took after the deployment's start, and after the idle time."""
    first = round(BEFORE * options.rate)  # the number of the first probe after the pause
    later = [one for one in way.arrivals if one[0] >= first]
    if not later:
        raise WorkloadFailed(
            f"no probe arrived in {_AFTER_IDLE:g} s after {options.idle:g} idle seconds", hint="see the VPN's logs"
        )
    number, sent, arrived = later[0]
    if number != first:  # the first was lost: it left when the schedule said
        sent = way.begun + first * way.interval + options.pause
    cold = cast(Mapping[str, float], happened[0].get("first_packet", {}))
    before = [arrived - sent for number, sent, arrived in way.arrivals if number < first]
    return [
        Sample("warm", (arrived - sent) * 1e3),
        *([Sample("usual", median(before) * 1e3)] if before else []),
        *([Sample("cold", max(cold.values()))] if cold else []),
    ]


def _interrupted(
    options: ConnectOptions,
    ways: tuple[_stream.StreamWay, _stream.StreamWay],
    happened: list[Mapping[str, object]],
    latest: float,
) -> list[Sample]:
    """Return how long nothing arrived in each direction after the event began. `latest`: a sender's lateness in s."""
    if not happened:
        raise OutputUnreadable("the event never began", hint="the client may have ended at once; see its stderr")
    begun, ended = cast(float, happened[0]["begun"]), happened[-1]["ended"]
    near = ended + NEAR if isinstance(ended, float) else float("inf")
    gaps, backs, before = [], [], [0.0]
    for way in ways:
        silences = way.silences()
        after = [one for one in silences if one.ended > begun and (one.begun < near or one.missing >= NOTABLE)]
        longest = max(after, default=_stream.Silence(0.0, begun, begun, 0))
        if way.dead(longest.length):
            last = way.arrivals[-1][2] - begun
            raise WorkloadFailed(
                f"did not come back within {float(options.duration):g} s: of the probes from {way.name} the last arrived "
                + (f"{last:.2f} s after the event began" if last > 0 else "before the event"),
                hint="that is a result; with a longer `duration` it may come back",
            )
        gaps.append(max(0.0, longest.length))
        backs.append(longest.ended - begun if longest.length > NOTABLE * way.interval else 0.0)
        before += [one.length for one in silences if one.ended <= begun]
    if latest > max(_LATE, max(gaps) / 2):
        raise TrialVoid(
            f"a sender of probes paused for {latest:.2f} s, and an outage in that time cannot be seen; the longest outage is {max(gaps):.2f} s",
            hint="its core was taken by other work; try on a quiet machine",
        )
    samples = [
        Sample("gap", max(gaps)),
        Sample("gap_to_target", gaps[0]),
        Sample("gap_to_source", gaps[1]),
        Sample("back", max(backs)),
        Sample("lost", float(sum(way.lost for way in ways))),
        Sample("gap_before", max(before)),
    ]
    if isinstance(ended, float):
        samples.append(Sample("event", ended - begun))
    return [
        *samples,
        *(Sample("passing", share, time) for time, share in _stream.passing(ways, begun, _STEP).items()),
    ]


_METRICS = (
    Metric("gap", "s", "longest time without a packet", "lower", compare="difference", primary=True, feels="longest"),
    Metric(
        "back",
        "s",
        "from the event to the first packet after that gap, whenever it began",
        "lower",
        compare="difference",
        feels="longest",
    ),
    Metric("lost", "packets", "probes lost, both ways", "lower", compare="difference"),
    Metric(
        "gap_to_target",
        "s",
        "longest time without a packet, source to target",
        "lower",
        compare="difference",
        feels="longest",
    ),
    Metric(
        "gap_to_source",
        "s",
        "longest time without a packet, target to source",
        "lower",
        compare="difference",
        feels="longest",
    ),
    Metric(
        "gap_before",
        "s",
        "longest time without a packet before the event",
        "lower",
        compare="difference",
        feels="longest",
    ),
    Metric("event", "s", "how long the event itself took", "lower", compare="difference"),
    Metric("passing", "%", "probes that arrived, by when they were sent", "higher", compare="difference"),  # a series
)
_EACH = ("node_back_first", "node_back_median", "node_back_last", "node_back_mean")
_NODES = tuple(
    Metric(name, "s", f"until {which} carried traffic again", "lower", compare="difference", feels="longest")
    for name, which in zip(
        _EACH, ("the first node", "the median node", "the last node", "a node in the mean"), strict=True
    )
)
_FIRST = (
    Metric(
        "cold",
        "s",
        "from the start of daemons to answers everywhere",
        "lower",
        compare="difference",
        primary=True,
        feels="longest",
    ),
    Metric("warm", "ms", "first packet after idle time, one way", "lower", "difference", primary=True, feels="longest"),
    Metric("usual", "ms", "median packet before it, one way", "lower", "difference", feels="delay"),
)


def _metrics(options: ConnectOptions) -> tuple[Metric, ...]:
    if options.event == "none":
        return _FIRST
    return _METRICS + (_NODES if options.node == "all" else ()) + (_paths.METRICS if options.may_change_path else ())


WORKLOAD = Workload(
    name="connect",
    title="Gap when something happens (probes)",
    metrics=_METRICS,
    traffic=_traffic,
    read=_read,
    programs=(_stream.PROGRAM,),
    packages=(),
    options=ConnectOptions,
    metrics_of=_metrics,
)
