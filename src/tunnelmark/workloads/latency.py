"""The workload `latency`: one-way delays in both directions, on the idle path and under shares of its capacity as load.

Probes leave on a fixed schedule, whether or not earlier ones have arrived (open loop). A delay counts from the time at
which its probe should have left. All delays are kept, so the percentiles are exact. The nodes of a lab on one kernel
share one clock, CLOCK_MONOTONIC; if they do not, `tunnelmark-probe` refuses to measure.
"""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from tunnelmark.errors import OutputUnreadable, WorkloadFailed
from tunnelmark.model.metrics import Feels, Metric, Sample
from tunnelmark.model.options import Options
from tunnelmark.plan.fields import DurationText, OfPath, ShareText
from tunnelmark.units import Duration, Share
from tunnelmark.workloads import _probe
from tunnelmark.workloads._printed import ProgramOutput
from tunnelmark.workloads.base import Endpoints, Reading, Traffic, Workload

_Way = Literal["forward", "back"]
_WAYS: tuple[_Way, ...] = ("forward", "back")
_PERCENTILES = {"p50": 500, "p90": 900, "p99": 990, "p99_9": 999, "max": 1000}  # in thousandths
_WORDS = {
    "p50": "median",
    "p90": "90th percentile",
    "p99": "99th percentile",
    "p99_9": "99.9th percentile",
    "max": "longest",
}
_FEELS: dict[str, Feels] = {"p50": "delay", "p90": "delay", "p99": "tail", "p99_9": "tail", "max": "longest"}
"""The 90th percentile is far from the hundredth that a machine makes late: it goes with the middle."""
_FEWEST = 1000  # answers that a 99.9th percentile needs: of fewer it would be the longest
_OFFERED = 0.95  # of the load: below that the trial says nothing of the path under that load

_LATE_MS = 50.0  # of one probe of a hundred: beyond, its sender had no core for whole time slices

_SEARCH_S = 10.0  # that finding the capacity takes, as a rule
_SETTLE_S = 0.3  # of load before the first probe
_LEVEL_S = 1.0  # that agreeing on a start and waiting for stragglers take, at each load
_GRACE_S = 90.0  # for a search on a bad path, and queues that drain


class LatencyOptions(Options):
    """Probes are sent in both directions at each load, every `interval` for `duration`.

    `sizes`: payloads of the probes in bytes. They take turns on the idle path; under load only the first is used.
    `load`: shares of the arm's own capacity, which is searched first; 0 % is the idle path.
    `load_size`: payload in bytes of the load's datagrams; `full`: the largest that fits one packet.
    By default there are a third more probes of each size than a 99.9th percentile needs, as some may be lost.
    """

    sizes: Annotated[tuple[_probe.ProbeSize, ...], Field(min_length=1, strict=False), _probe.EachOnce] = (
        100,
        500,
        1000,
    )
    load: Annotated[tuple[ShareText, ...], Field(min_length=1, strict=False), _probe.EachOnce] = (
        Share(0),
        Share(0.5),
        Share(0.9),
    )
    load_size: _probe.ProbeSize | Literal["full"] = "full"
    interval: Annotated[DurationText, Field(ge=0.0005)] = Duration(0.001)
    duration: Annotated[DurationText, OfPath("cuts")] = Duration(4)

    @model_validator(mode="after")
    def _probes_are_enough(self) -> LatencyOptions:
        if self.duration / self.interval < 10 * len(self.sizes):
            raise ValueError("should send at least ten probes of a size")
        if self.duration / self.interval > 1_000_000:
            raise ValueError("should send at most a million probes a way")
        return self


class _Delays(ProgramOutput):
    """All probes of one direction at one load (in per cent): delays in nanoseconds, None for a probe that was lost."""

    direction: _Way
    load: float
    sizes: tuple[int, ...]
    late_ns: dict[Literal["p50", "p99", "max"], int]
    delays_ns: tuple[int | None, ...]

    def of_size(self, place: int) -> tuple[NDArray[np.float64], float]:
        """Return the sorted delays in ms of the probes of `sizes[place]`, and the share of lost ones in per cent."""
        probes = self.delays_ns[place :: len(self.sizes)]
        arrived = np.sort(np.array([delay for delay in probes if delay is not None], dtype=np.float64)) / 1e6
        return arrived, 100 * (1 - len(arrived) / len(probes))


class _Capacity(ProgramOutput):
    size: int
    rate: float
    limit: Literal["sender", "receiver"] | None


class _Load(_probe.ProbeTrial):
    load: float
    asked: float


def _metrics(options: LatencyOptions) -> tuple[Metric, ...]:
    """Return the metrics by direction and load. Primary: the idle path's median, the highest load's 99th percentile."""
    highest = max(options.load)
    metrics = []
    for load, size in _probed(options):
        for way in _WAYS:
            words = f"{way}, {_said(load)}, {size} B"
            judged = "p50" if not load else "p99" if load == highest else ""
            metrics += [
                Metric(
                    _name(way, percentile, load, size),
                    "ms",
                    f"{_WORDS[percentile]} of one-way delay {words}",
                    "lower",
                    compare="difference",
                    primary=percentile == judged and way == "forward" and size == options.sizes[0],
                    feels=_FEELS[percentile],
                )
                for percentile in _PERCENTILES
            ]
            loss = Metric(_name(way, "loss", load, size), "%", f"probes lost {words}", "lower", compare="difference")
            metrics.append(loss)
    for load in (load for load in options.load if load > 0):
        at = f"load at {_said(load)}"
        metrics.append(Metric(f"offered_{_label(load)}", "bit/s", f"{at}: UDP payload offered", "higher"))
        metrics.append(Metric(f"lost_{_label(load)}", "%", f"{at}: lost of it", "lower", compare="difference"))
    if highest > 0:
        title = "UDP payload that the path carried: 100 % of load"
        metrics.append(Metric("capacity", "bit/s", title, "higher", limited_by="limited"))
        limited = "searches for it that the sender or the receiver ended and not the path"
        metrics.append(Metric("limited", "searches", limited, "lower", compare="difference"))
    metrics.append(
        Metric("late_p99", "ms", "99th percentile of probes leaving late, as part of the delays", "lower", feels="tail")
    )
    return tuple(metrics)


def _probed(options: LatencyOptions) -> list[tuple[Share, int]]:
    """Return each pair of a load and a size of the probes that are sent at that load."""
    return [(load, size) for load in options.load for size in (options.sizes if not load else options.sizes[:1])]


def _label(load: Share) -> str:
    return "idle" if not load else f"load_{_probe.percent(load)}".replace(".", "_")


def _said(load: Share) -> str:
    return "idle" if not load else f"{load} of capacity"


def _name(way: str, what: str, load: Share, size: int) -> str:
    return f"{way}_{what}_{_label(load)}" + (f"_{size}" if not load else "")


def _traffic(ends: Endpoints, options: LatencyOptions) -> Traffic:
    loaded = sum(load > 0 for load in options.load)
    levels = len(options.load)
    before = (_SEARCH_S if loaded else 0.0) + loaded * _SETTLE_S + levels * _LEVEL_S
    return Traffic(
        servers=(_probe.server(ends),),
        client=_probe.client(
            ends,
            "latency",
            *("--sizes", ",".join(map(str, options.sizes)), "--load", ",".join(map(_probe.percent, options.load))),
            *("--load-size", str(options.load_size), "--settle", f"{_SETTLE_S:g}"),
            *("--interval", f"{1e3 * options.interval:g}", "--duration", f"{float(options.duration):g}"),
        ),
        window=levels * options.duration,
        warmup=before,
        timeout=2 * levels * options.duration + before + _GRACE_S,
    )


def _read(outputs: dict[str, str], options: LatencyOptions) -> Reading:
    said = _probe.until_end(outputs)
    said_by_server = _probe.lines(outputs, _probe.SERVER)
    ways = {
        (one.direction, one.load): one
        for lines in (said, said_by_server)
        for one in _probe.of_kind(lines, "delays", _Delays)
    }
    samples = []
    for load, size in _probed(options):
        for way in _WAYS:
            one = ways.get((way, float(_probe.percent(load))))
            if one is None or size not in one.sizes:
                raise OutputUnreadable(
                    f"no delays {way} were printed, {_said(load)}, {size} B", hint="see the raw output"
                )
            delays, lost = one.of_size(one.sizes.index(size))
            if not len(delays):
                raise WorkloadFailed(
                    f"not one of {len(one.delays_ns)} probes arrived {way}, {_said(load)}", hint="see the VPN's logs"
                )
            # The nearest rank: a delay that a probe really had.
            at = {what: delays[-(-rank * len(delays) // 1000) - 1] for what, rank in _PERCENTILES.items()}
            if len(delays) < _FEWEST:
                del at["p99_9"]
            samples += [Sample(_name(way, what, load, size), float(value)) for what, value in at.items()]
            samples.append(Sample(_name(way, "loss", load, size), lost))
    loads, starved = _of_load(said, options)
    samples += loads
    late = max(one.late_ns["p99"] for one in ways.values()) / 1e6
    if late > _LATE_MS:
        starved.append(f"one probe of a hundred left {late:.0f} ms late or more, which is part of its delay")
    samples.append(Sample("late_p99", late))
    spent = sum(trial.seconds for trial in _probe.of_kind(said, "trial", _probe.ProbeTrial))
    window = len(options.load) * float(options.duration)
    return Reading(samples=tuple(samples), window=window, warmup=spent, starved="; ".join(starved))


def _of_load(said: list[dict[str, object]], options: LatencyOptions) -> tuple[list[Sample], list[str]]:
    """Return the samples on capacity and on each load, and a sentence for each load that was lower than asked for."""
    starved = []
    loads = {one.load: one for one in _probe.of_kind(said, "load", _Load)}
    samples = []
    for share in (share for share in options.load if share > 0):
        load = loads.get(float(_probe.percent(share)))
        if load is None:
            raise OutputUnreadable(f"no load of {_said(share)} was printed", hint="see the raw output")
        if load.offered < _OFFERED * load.asked:
            starved.append(f"the load was only {load.offered:.0f} of {load.asked:.0f} datagrams/s, {_said(share)}")
        samples.append(Sample(f"offered_{_label(share)}", load.offered * load.size * 8))
        samples.append(Sample(f"lost_{_label(share)}", 100 * load.lost / load.sent))
    for one in _probe.of_kind(said, "capacity", _Capacity):
        samples.append(Sample("capacity", one.rate * one.size * 8))
        samples.append(Sample("limited", float(one.limit is not None)))
    return samples, starved


WORKLOAD = Workload(
    name="latency",
    title="One-way delay, idle and under load",
    serves="calls and games",
    metrics=_metrics(LatencyOptions()),
    traffic=_traffic,
    read=_read,
    programs=(_probe.PROGRAM,),
    packages=(),
    options=LatencyOptions,
    metrics_of=_metrics,
    searches=lambda options: any(load > 0 for load in options.load),
)
