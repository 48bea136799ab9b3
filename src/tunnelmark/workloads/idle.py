"""The workload `idle`: CPU time of each node, and bytes that the VPN sends by itself, while nothing uses the overlay.

The client only sleeps. All metrics come from the collectors `cpu` and `wire`, which every trial of this workload has.
"""

from __future__ import annotations

from pydantic import Field, field_validator

from tunnelmark.model.metrics import Metric
from tunnelmark.model.options import Options
from tunnelmark.plan.fields import DurationText
from tunnelmark.units import Duration
from tunnelmark.workloads.base import Endpoints, Program, Reading, Traffic, Workload

METRICS = (
    Metric("cpu_source", "ms/s", "CPU of an idle node (first)", "lower", "difference", primary=True, feels="processor"),
    Metric("cpu_target", "ms/s", "CPU of an idle node (last)", "lower", "difference", primary=True, feels="processor"),
    Metric(
        "wire_sent_source",
        "B/s",
        "bytes sent by an idle node (first)",
        "lower",
        "difference",
        primary=True,
        feels="counts",
    ),
    Metric(
        "wire_sent_target",
        "B/s",
        "bytes sent by an idle node (last)",
        "lower",
        "difference",
        primary=True,
        feels="counts",
    ),
)


class IdleOptions(Options):
    """`duration`: how long the nodes are measured, at least 1 s."""

    duration: DurationText = Field(default=Duration(10), description="a duration from '1 s' on, such as '10 s'")

    @field_validator("duration")
    @classmethod
    def _long_enough(cls, duration: Duration) -> Duration:
        if duration < 1:
            raise ValueError("the kernel's own packets would be most of what is seen in less than a second")
        return duration


def traffic(ends: Endpoints, options: IdleOptions) -> Traffic:
    """Return a client that sleeps and sends nothing."""
    seconds = float(options.duration)
    client = Program("client", ends.source, ("sleep", f"{seconds:g}"))
    return Traffic((), client, window=seconds, warmup=0.0, timeout=seconds + 10)


def read(outputs: dict[str, str], options: IdleOptions) -> Reading:
    """Return a reading without samples of its own: the collectors report all metrics."""
    return Reading((), window=float(options.duration), warmup=0.0)


WORKLOAD = Workload(
    name="idle",
    title="a mesh that does nothing",
    metrics=METRICS,
    traffic=traffic,
    read=read,
    programs=("sleep",),
    packages=("coreutils",),
    options=IdleOptions,
    watch=("cpu", "wire"),
)
