"""The workload `tcp`: TCP streams by iperf3. Goodput is counted at the receiver.

Each of several simultaneous flows has its own pair of iperf3 client and server. iperf3's own `--bidir` would print only
one side's view of each direction; separate pairs count every flow at its receiver.
"""

from __future__ import annotations

from dataclasses import replace
from statistics import fmean
from typing import Annotated, Literal, NamedTuple

from pydantic import BaseModel, Field, model_validator

from tunnelmark.errors import WorkloadFailed
from tunnelmark.linux.congestion import CUBIC, FREE_PORTS
from tunnelmark.model.metrics import DRIFT, DRIFTS, Metric, Sample
from tunnelmark.model.options import Options
from tunnelmark.plan.fields import DurationText, OfLink, OfPath, SizeText, WholeSeconds
from tunnelmark.units import Duration, Size
from tunnelmark.workloads import _iperf3
from tunnelmark.workloads._rates import in_bits
from tunnelmark.workloads.base import Endpoints, Reading, Traffic, Workload, check_warmup


class TcpOptions(Options):
    """`warmup` is the part of `duration` that is not measured: TCP's slow start.

    If `duration` or `warmup` is not set, it is as long as the link requires (`plan.lengths`), and at least its default.
    `flows`: `forward` (from the first to the last node), `back` (the other direction), `both` (at the same time), or
    `ring` (every node to the next one and back, all at the same time).
    `streams`: the number of connections of each flow.
    `congestion_control`: the TCP congestion control of these connections; connections of a VPN itself keep CUBIC.
    `rate`: how much each connection sends at most, in bit/s of payload or as a share of the link's rate. None: no limit.
    `length`: how many bytes iperf3 hands to the socket at once; with a rate it pauses between them.
    """

    duration: Annotated[WholeSeconds, OfPath("transfer")] = Duration(2)
    warmup: Annotated[DurationText, OfPath("transfer")] = Duration(0.3)
    flows: Literal["forward", "back", "both", "ring"] = "forward"
    streams: Annotated[int, Field(ge=1, le=128)] = 1
    congestion_control: Annotated[str, Field(pattern=r"^[a-z0-9_]+$")] = CUBIC
    rate: OfLink | None = None
    length: Annotated[SizeText, Field(ge=16, le=1048576)] = Size(128 * 1024)

    @model_validator(mode="after")
    def _warmup_leaves_a_window(self) -> TcpOptions:
        check_warmup(self.warmup, self.duration)
        return self


class _Received(_iperf3.Span):
    bytes: int


class _Sent(_iperf3.Span):
    bytes: int  # that the sender handed to its socket
    retransmits: int
    snd_cwnd: int  # bytes
    rtt: int  # microseconds, the kernel's smoothed estimate
    rttvar: int  # microseconds, the kernel's smoothed mean deviation of it
    pmtu: int = 0  # bytes, as the sender's kernel knows it


class _CpuUse(BaseModel):
    host_total: float  # of this side's own iperf3, in per cent of a core, from its start to its end


class _ReceiverEnd(BaseModel):
    receiver_tcp_congestion: str
    cpu_utilization_percent: _CpuUse


class _SenderEnd(BaseModel):
    sender_tcp_congestion: str
    cpu_utilization_percent: _CpuUse


class _Start(BaseModel):
    tcp_mss_default: int = 0  # bytes of payload in a full segment, from the first connection


class _SenderReport(_iperf3.Report[_Sent, _SenderEnd]):
    start: _Start = _Start()


class _Flow(NamedTuple):
    """The figures of one direction of a flow: bytes that arrived and that were sent, by interval."""

    received: tuple[tuple[_Received, ...], ...]
    sent: tuple[tuple[_Sent, ...], ...]
    mss: int
    algorithms: tuple[str, str]
    cpu: tuple[float, float]  # of the sender's and the receiver's iperf3, in per cent of a core

    def drift(self) -> float:
        """Return how much more goodput the window's second half had than the first, in per cent of their mean."""
        middle = len(self.received) // 2
        first, second = (
            sum(span.bytes for step in steps for span in step) / _iperf3.window(step[0] for step in steps)
            for steps in (self.received[:middle], self.received[middle:])
        )
        return 200 * (second - first) / (second + first)

    def goodput(self) -> float:
        return sum(span.bytes for step in self.received for span in step) * 8 / self.seconds()

    def seconds(self) -> float:
        return _iperf3.window(step[0] for step in self.received)

    def rate_sent(self) -> float:
        return (
            sum(span.bytes for step in self.sent for span in step) * 8 / _iperf3.window(step[0] for step in self.sent)
        )

    def segments(self) -> float:
        """Return how many segments were sent, each counted once, however often it was sent again; 0 if `mss` is 0.

        Every segment counts as full, because iperf3 always has more data to send than the congestion window takes; at a
        fixed rate the last one of each `length` is not full.
        """
        return sum(span.bytes for step in self.sent for span in step) / self.mss if self.mss else 0.0


def _ways(ends: Endpoints, flows: str) -> list[tuple[str, str]]:
    """Return the source and the target of every flow. The first flow gives a link's direction its name."""
    there = (ends.source, ends.target)
    match flows:
        case "forward":
            return [there]
        case "back":
            return [there[::-1]]
        case "both":
            return [there, there[::-1]]
    nodes = list(ends.nodes)
    links = [(one, nodes[(place + 1) % len(nodes)]) for place, one in enumerate(nodes)]
    return list(dict.fromkeys(way for one, other in links for way in ((one, other), (other, one))))


def _suffix(number: int) -> str:
    """Return the suffix of a flow's program names; flows are numbered from 0."""
    return f".{number + 1}" if number else ""


def _traffic(ends: Endpoints, options: TcpOptions) -> Traffic:
    first = _iperf3.PORT if options.congestion_control == CUBIC else FREE_PORTS.start
    words: tuple[str, ...] = ("--congestion", options.congestion_control)
    if options.streams > 1:
        words = ("--parallel", str(options.streams), *words)
    if options.rate is not None:
        words = ("--bitrate", str(in_bits(options.rate, "tcp")), *words)
    if options.length != TcpOptions().length:
        words = ("--length", str(int(options.length)), *words)
    address = {ends.source: ends.source_address, ends.target: ends.target_address} | dict(ends.nodes)
    pairs = [
        _iperf3.pair(source, target, str(address[target]), words, options.duration, port=first + n, suffix=_suffix(n))
        for n, (source, target) in enumerate(_ways(ends, options.flows))
    ]
    return _iperf3.together(pairs, duration=options.duration, warmup=options.warmup)


def _flow(outputs: dict[str, str], number: int, options: TcpOptions) -> _Flow:
    receiver = _iperf3.read(outputs, _iperf3.SERVER + _suffix(number), _iperf3.Report[_Received, _ReceiverEnd])
    sender = _iperf3.read(outputs, _iperf3.CLIENT + _suffix(number), _SenderReport)
    return _Flow(
        receiver.steps(options.warmup, options.duration),
        sender.steps(options.warmup, options.duration),
        sender.start.tcp_mss_default,
        (sender.end.sender_tcp_congestion, receiver.end.receiver_tcp_congestion),
        (sender.end.cpu_utilization_percent.host_total, receiver.end.cpu_utilization_percent.host_total),
    )


def _read(outputs: dict[str, str], options: TcpOptions) -> Reading:
    _iperf3.raise_if_failed(outputs)
    numbers = range(sum(name.startswith(_iperf3.SERVER) for name in outputs) or 1)
    flows = [_flow(outputs, number, options) for number in numbers]
    for flow in flows:
        if flow.goodput() == 0:
            raise WorkloadFailed(
                f"not a byte arrived in {flow.seconds():.1f} s",
                hint="see the VPN's logs: the stream stalled after its start",
            )
    sent = [span for flow in flows for step in flow.sent for span in step]
    goodputs = [flow.goodput() for flow in flows]
    again, segments = sum(span.retransmits for span in sent), sum(flow.segments() for flow in flows)
    samples = [
        Sample("goodput", sum(goodputs)),
        Sample("sent", sum(flow.rate_sent() for flow in flows)),
        Sample("retransmits", float(again)),
        *([Sample("retransmit_share", 100 * again / (segments + again))] if segments else []),
        Sample("cwnd", fmean(span.snd_cwnd for span in sent) / 1024),
        Sample("cwnd_max", max(span.snd_cwnd for span in sent) / 1024),
        Sample("rtt", fmean(span.rtt for span in sent) / 1e3),
        Sample("rtt_min", min(span.rtt for span in sent) / 1e3),
        Sample("rtt_deviation", fmean(span.rttvar for span in sent) / 1e3),
        Sample("sender_cpu", sum(flow.cpu[0] for flow in flows)),
        Sample("receiver_cpu", sum(flow.cpu[1] for flow in flows)),
        Sample("mss", float(flows[0].mss)),
        Sample("pmtu", float(sent[-1].pmtu)),
    ]
    if all(len(flow.received) > 1 for flow in flows):
        samples.append(Sample(DRIFT, fmean(flow.drift() for flow in flows)))
    if len(flows) > 1:
        samples += [Sample("goodput_min", min(goodputs)), Sample("goodput_max", max(goodputs))]
    return Reading(
        samples=(*samples, *_series(flows)),
        window=flows[0].seconds(),
        warmup=flows[0].received[0][0].start,
        congestion_control=tuple(name for flow in flows for name in flow.algorithms),
    )


def _series(flows: list[_Flow]) -> list[Sample]:
    """Return the series: for each interval the sum over all streams (goodput, retransmits) or the mean (all others)."""
    samples = []
    for steps in zip(*(flow.received for flow in flows), strict=False):  # a busy sender may miss its last
        time = steps[0][0].start - flows[0].received[0][0].start
        rate = sum(span.bytes * 8 / span.seconds for step in steps for span in step)
        samples.append(Sample("goodput", rate, time))
    for steps in zip(*(flow.sent for flow in flows), strict=False):
        spans = [span for step in steps for span in step]
        time = spans[0].start - flows[0].sent[0][0].start
        samples.append(Sample("retransmits", float(sum(span.retransmits for span in spans)), time))
        samples.append(Sample("cwnd", fmean(span.snd_cwnd for span in spans) / 1024, time))
        samples.append(Sample("rtt", fmean(span.rtt for span in spans) / 1e3, time))
    return samples


_METRICS = (
    Metric("goodput", "bit/s", "TCP goodput at the receiver", "higher", primary=True),
    Metric("sent", "bit/s", "payload that the sender handed to its socket", "higher"),
    Metric("retransmits", "segments", "TCP segments sent again", "lower", compare="difference"),
    Metric("retransmit_share", "%", "TCP segments sent again, of all that were sent", "lower", compare="difference"),
    Metric("cwnd", "KiB", "mean congestion window of the sender", "higher"),
    Metric("cwnd_max", "KiB", "largest congestion window of the sender", "higher"),
    Metric("rtt", "ms", "mean round-trip time that the sender's TCP saw, under its own load", "lower", feels="delay"),
    Metric("rtt_min", "ms", "least smoothed round-trip time of the sender's TCP", "lower", feels="delay"),
    Metric("rtt_deviation", "ms", "mean deviation of that round-trip time", "lower", feels="tail"),
    Metric("sender_cpu", "%", "CPU of iperf3 at the sender, of a core", "lower", feels="processor"),
    Metric("receiver_cpu", "%", "CPU of iperf3 at the receiver, of a core", "lower", feels="processor"),
    Metric("mss", "B", "payload of a full segment (MSS)", "higher", feels="counts"),
    Metric("pmtu", "B", "path MTU that the sender's TCP knew at the end", "higher", feels="counts"),
    DRIFTS,
)


def _metrics(options: TcpOptions) -> tuple[Metric, ...]:
    """Return the metrics. At a fixed rate, TCP is not expected to fill the link."""
    if options.flows not in ("both", "ring"):
        return _METRICS if options.rate is None else (replace(_METRICS[0], fills=0), *_METRICS[1:])
    total = Metric("goodput", "bit/s", "TCP goodput of all flows together", "higher", primary=True, fills=0)
    least = Metric("goodput_min", "bit/s", "TCP goodput of the slowest flow", "higher")
    most = Metric("goodput_max", "bit/s", "TCP goodput of the fastest flow", "higher")
    return (total, *_METRICS[1:], least, most)


def _offered(options: TcpOptions) -> float | None:
    """Return the payload of all connections in bit/s; None without a rate, or if the topology decides on the flows."""
    if options.rate is None or options.flows == "ring":
        return None
    return float(in_bits(options.rate, "tcp") * options.streams * (2 if options.flows == "both" else 1))


WORKLOAD = Workload(
    name="tcp",
    title="TCP streams (iperf3)",
    serves="downloads and backups",
    metrics=_METRICS,
    traffic=_traffic,
    read=_read,
    programs=(_iperf3.PROGRAM,),
    packages=(_iperf3.PACKAGE,),
    options=TcpOptions,
    metrics_of=_metrics,
    offered=_offered,
)
