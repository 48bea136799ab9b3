"""The workload `tcp`: one TCP stream by iperf3, goodput counted where it arrives."""

from __future__ import annotations

from statistics import fmean
from typing import Annotated, cast

from pydantic import BaseModel, Field, model_validator

from tunnelmark.errors import WorkloadFailed
from tunnelmark.plan.fields import DurationText, WholeSeconds
from tunnelmark.units import Duration
from tunnelmark.vpns.base import Options
from tunnelmark.workloads import _iperf3
from tunnelmark.workloads.base import Endpoints, Metric, Reading, Sample, Traffic, Workload


class TcpOptions(Options):
    """`warmup` is the part of `duration` that is not measured: TCP's slow start."""

    duration: WholeSeconds = Duration(2)
    warmup: DurationText = Duration(0.3)
    congestion_control: Annotated[str, Field(pattern=r"^[a-z0-9_]+$")] = "cubic"

    @model_validator(mode="after")
    def _warmup_leaves_a_window(self) -> TcpOptions:
        if self.warmup > self.duration / 2:
            raise ValueError("should have a warmup of at most half its duration")
        return self


class _Received(_iperf3.Span):
    bytes: int


class _Sent(_iperf3.Span):
    retransmits: int
    snd_cwnd: int  # bytes
    rtt: int  # microseconds, the kernel's smoothed estimate


class _ReceiverEnd(BaseModel):
    receiver_tcp_congestion: str


class _SenderEnd(BaseModel):
    sender_tcp_congestion: str


def _traffic(ends: Endpoints, options: Options) -> Traffic:
    chosen = cast(TcpOptions, options)
    return _iperf3.traffic(
        ends,
        ("--congestion", chosen.congestion_control),
        duration=chosen.duration,
        warmup=chosen.warmup,
    )


def _read(outputs: dict[str, str], options: Options) -> Reading:
    chosen = cast(TcpOptions, options)
    _iperf3.raise_if_failed(outputs)
    receiver = _iperf3.read(outputs, _iperf3.SERVER, _iperf3.Report[_Received, _ReceiverEnd])
    sender = _iperf3.read(outputs, _iperf3.CLIENT, _iperf3.Report[_Sent, _SenderEnd])
    received = receiver.spans(chosen.warmup, chosen.duration)
    sent = sender.spans(chosen.warmup, chosen.duration)
    window = _iperf3.window(received)
    goodput = sum(span.bytes for span in received) * 8 / window
    if goodput == 0:
        raise WorkloadFailed(
            f"not a byte arrived in {window:.1f} s", hint="see the VPN's logs: the stream stood still after its start"
        )
    samples = [
        Sample("goodput", goodput),
        Sample("retransmits", float(sum(span.retransmits for span in sent))),
        Sample("cwnd", fmean(span.snd_cwnd for span in sent) / 1024),
        Sample("rtt", fmean(span.rtt for span in sent) / 1e3),
    ]
    for arrived in received:
        time = arrived.start - received[0].start
        samples.append(Sample("goodput", arrived.bytes * 8 / arrived.seconds, time))
    for left in sent:
        time = left.start - sent[0].start
        samples.append(Sample("retransmits", float(left.retransmits), time))
        samples.append(Sample("cwnd", left.snd_cwnd / 1024, time))
        samples.append(Sample("rtt", left.rtt / 1e3, time))
    return Reading(
        samples=tuple(samples),
        window=window,
        warmup=received[0].start,
        congestion_control=(sender.end.sender_tcp_congestion, receiver.end.receiver_tcp_congestion),
    )


WORKLOAD = Workload(
    name="tcp",
    title="One TCP stream (iperf3)",
    metrics=(
        Metric("goodput", "bit/s", "TCP goodput at the receiver", "higher", primary=True),
        Metric("retransmits", "segments", "TCP segments sent again", "lower", compare="difference"),
        Metric("cwnd", "KiB", "mean congestion window of the sender", "higher"),
        Metric("rtt", "ms", "mean round-trip time that the sender's TCP saw, under its own load", "lower"),
    ),
    traffic=_traffic,
    read=_read,
    programs=(_iperf3.PROGRAM,),
    packages=(_iperf3.PACKAGE,),
    options=TcpOptions,
)
