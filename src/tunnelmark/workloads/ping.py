"""The workload `ping`: round-trip times of ICMP echo, measured by iputils' ping.

It relies on these facts about iputils 20221126. If the interval between probes is below 10 ms, ping spins on one core,
which the VPN needs; so such an interval requires `spin`. From 10 ms on ping sleeps, and the kernel's tick makes 10 ms
into 12 to 16 ms. Its option -w takes whole seconds. It prints times with three digits: below 1 ms, to 1 us.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import replace
from typing import Annotated

import numpy as np
from pydantic import Field, model_validator

from tunnelmark.errors import OutputUnreadable, WorkloadFailed
from tunnelmark.model.metrics import Metric, Sample
from tunnelmark.model.options import Options
from tunnelmark.plan.fields import DurationText, OfPath, WholeSeconds
from tunnelmark.units import Duration
from tunnelmark.workloads import _ping
from tunnelmark.workloads.base import Endpoints, Program, Reading, Traffic, Workload

_CLIENT = "client"
_GRACE_S = 5.0

_HEADER = re.compile(r"^PING .*\) (\d+)(?:\(\d+\) bytes of data\.| data bytes)$", re.MULTILINE)
_ERROR = re.compile(r"^(?:\[\S+\] )?From \S+ icmp_seq=\d+ (.+)$", re.MULTILINE)
_SHOWN = 2000
"""About so many probes of each size are kept as a series. Percentiles count all probes; the raw output has them all."""


class PingOptions(Options):
    """`sizes` are payloads in bytes, probed one after the other, each for `duration` with a probe every `interval`.

    `spin` allows intervals below 10 ms, as published studies used them; ping then keeps one core busy.
    """

    sizes: Annotated[
        tuple[Annotated[int, Field(ge=16, le=65507)], ...],  # 16 bytes hold the time that ping reads back
        Field(min_length=1, strict=False),
    ] = (56,)
    interval: DurationText = Duration(0.01)
    spin: bool = False
    duration: Annotated[WholeSeconds, OfPath("cuts")] = Duration(2)

    @model_validator(mode="after")
    def _probes_can_be_told_apart(self) -> PingOptions:
        if self.interval < 0.001 or (self.interval < 0.01 and not self.spin):
            raise ValueError(
                "should have an interval of '10 ms' or more: below that ping keeps a core busy that the VPN needs "
                "(with `spin = true` that is allowed, down to '1 ms')"
            )
        if len(set(self.sizes)) < len(self.sizes):
            raise ValueError("should name each of its sizes once")
        if self.duration / self.interval >= _ping.SEQUENCE_NUMBERS:
            raise ValueError(f"should send fewer than {_ping.SEQUENCE_NUMBERS} probes of a size")
        return self


_METRICS = (
    Metric("rtt_median", "ms", "median round-trip time", "lower", "difference", primary=True, feels="delay"),
    Metric("rtt_mean", "ms", "mean round-trip time", "lower", "difference", feels="delay"),
    Metric("rtt_min", "ms", "least round-trip time", "lower", "difference", feels="delay"),
    Metric("rtt_deviation", "ms", "standard deviation of round-trip time", "lower", "difference", feels="tail"),
    Metric("rtt_p90", "ms", "90th percentile of round-trip time", "lower", "difference", feels="delay"),
    Metric("rtt_p99", "ms", "99th percentile of round-trip time", "lower", "difference", feels="tail"),
    Metric("rtt_max", "ms", "longest round-trip time", "lower", "difference", feels="longest"),
    Metric("loss", "%", "probes without an answer", "lower", compare="difference"),
    Metric("rtt", "ms", "round-trip time of each probe", "lower", feels="tail"),  # a series only
)


def _metrics(options: PingOptions) -> tuple[Metric, ...]:
    """Return the plain metrics for one size; for several sizes each metric once a size, such as `rtt_median_56`."""
    sizes = options.sizes
    if len(sizes) == 1:
        return _METRICS
    return tuple(
        replace(metric, name=f"{metric.name}_{size}", title=f"{metric.title}, {size} bytes")
        for size in sizes
        for metric in _METRICS
    )


def _traffic(ends: Endpoints, options: PingOptions) -> Traffic:
    pings = [
        shlex.join(
            (
                *("ping", "-n", "-D", "-i", f"{float(options.interval):g}", "-w", f"{options.duration:.0f}"),
                *("-s", str(size), str(ends.target_address)),
            )
        )
        for size in options.sizes
    ]
    seconds = options.duration * len(pings)
    client = Program(_CLIENT, ends.source, ("sh", "-c", "; ".join(pings)))
    return Traffic(servers=(), client=client, window=seconds, warmup=0.0, timeout=seconds + _GRACE_S)


def _read(outputs: dict[str, str], options: PingOptions) -> Reading:
    text = outputs.get(_CLIENT, "")
    headers = list(_HEADER.finditer(text))
    if tuple(int(header[1]) for header in headers) != options.sizes:
        raise OutputUnreadable(
            f"ping's output begins {len(headers)} runs, {len(options.sizes)} were asked for",
            hint="this reader knows iputils' ping; compare `ping -V` and the raw output",
        )
    ends = [header.start() for header in headers[1:]] + [len(text)]
    samples: list[Sample] = []
    window = 0.0
    for size, header, end in zip(options.sizes, headers, ends, strict=True):
        probes = _probes(text[header.start() : end], options.duration, size)
        suffix = "" if len(options.sizes) == 1 else f"_{size}"
        samples += _samples(probes, suffix, window)
        window += min(float(options.duration), probes.sent_for + probes.spacing)
    return Reading(samples=tuple(samples), window=window, warmup=0.0)


def _probes(text: str, duration: Duration, size: int) -> _ping.Probes:
    """Read one ping's output. Raises WorkloadFailed if no probe was answered, or if an ICMP error ended ping early."""
    probes = _ping.read(text, duration)
    # With a deadline iputils' ping ends at the first error. A complete run may end up to two spacings early.
    short = probes.sent_for < duration - 2 * probes.spacing
    if short and (error := _ERROR.search(text)):
        raise WorkloadFailed(
            f"ping ended after {probes.sent_for:.1f} of {duration:g} s, because an error came back: {error[1]}",
            hint="a path that takes smaller packets than the interface says, or a route that was gone for a moment; see the raw output",
        )
    if not probes.answers:
        raise WorkloadFailed(
            f"ping got no answer at all with {size} bytes", hint="see the VPN's logs: it had answered before the trial"
        )
    return probes


def _samples(probes: _ping.Probes, suffix: str, begin: float) -> list[Sample]:
    """Return the samples of one size; `begin` is when its probes began, in seconds after the window's begin."""
    times = np.array([milliseconds for _, milliseconds in probes.answers])
    whole = {
        "rtt_median": np.median(times),
        "rtt_mean": np.mean(times),
        "rtt_min": np.min(times),
        "rtt_deviation": np.std(times),  # of these probes, as ping's own mdev: not an estimate of others
        "rtt_p90": np.percentile(times, 90),
        "rtt_p99": np.percentile(times, 99),
        "rtt_max": np.max(times),
        "loss": probes.loss,
    }
    return [
        *(Sample(name + suffix, float(value)) for name, value in whole.items()),
        *(
            Sample("rtt" + suffix, milliseconds, begin + time)
            for time, milliseconds in probes.answers[:: -(-len(times) // _SHOWN)]
        ),
    ]


WORKLOAD = Workload(
    name="ping",
    title="Round-trip time (ping)",
    serves="calls, games and remote shells",
    metrics=_METRICS,
    traffic=_traffic,
    read=_read,
    programs=("ping",),
    packages=("iputils-ping",),
    options=PingOptions,
    metrics_of=_metrics,
)
