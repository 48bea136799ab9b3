"""The workload `udp-search`: the highest UDP rate from source to target whose loss stays within a bound.

It searches for each datagram size and each bound. RFC 2544's throughput is the highest rate without any loss; RFC 8219
and common practice add bounds such as 0.1 %. `tunnelmark-probe` searches, and reports only rates that a longer test at
the same rate has confirmed.
"""

from __future__ import annotations

from functools import partial
from typing import Annotated, Literal

from pydantic import Field

from tunnelmark.errors import OutputUnreadable
from tunnelmark.model.metrics import Metric, Sample
from tunnelmark.model.options import Options
from tunnelmark.plan.fields import DurationText, ShareText
from tunnelmark.units import Duration, Share
from tunnelmark.workloads import _probe
from tunnelmark.workloads._printed import ProgramOutput
from tunnelmark.workloads.base import Endpoints, Reading, Traffic, Workload

_ASCENT_S = 3.0  # seconds of the ascent, some eight trials of 0.1 s, which finds roughly the rate that the path carries
_TRIALS = 12  # short trials that a search usually takes; each further bound takes about two more
_WAIT_S = 0.15  # average seconds in each trial to wait for late datagrams
_LONGEST_S = 30.0  # more seconds that the search for one bound at one size may take on a bad path
_GRACE_S = 30.0


class UdpSearchOptions(Options):
    """`sizes` are payloads in bytes; `full` is the largest payload that fits one packet.

    `loss`: the bounds on the share of lost datagrams. `trial`: how long the search tests each rate. `confirm`: how long
    the last test takes, which must confirm the rate before it is reported. `resolution`: the search ends when it has
    found a rate that passes and a rate that fails, which is higher by at most this share.
    """

    sizes: Annotated[
        tuple[_probe.ProbeSize | Literal["full"], ...], Field(min_length=1, strict=False), _probe.EachOnce
    ] = (64, 512, 1280, "full")
    loss: Annotated[tuple[ShareText, ...], Field(min_length=1, strict=False), _probe.EachOnce] = (
        Share(0),
        Share(0.001),
    )
    trial: DurationText = Duration(0.3)
    confirm: DurationText = Duration(1)
    resolution: Annotated[ShareText, Field(ge=0.001, le=0.5)] = Share(0.01)


class _Found(ProgramOutput):
    name: str
    size: int
    loss: float  # per cent
    offered_max: float
    split: float | None  # the share of datagrams that left in fragments
    limit: Literal["sender", "receiver"] | None
    failed: float | None
    confirmed: _probe.ProbeTrial | None


def _metrics(options: UdpSearchOptions) -> tuple[Metric, ...]:
    """Return all metrics; primary are bit/s at the largest size, packets/s at the smallest, at the widest bound."""
    by_size = sorted(options.sizes, key=lambda size: (size == "full", size if size != "full" else 0))
    widest = max(options.loss)
    return tuple(
        metric
        for size in options.sizes
        for metric in (
            *(
                metric
                for loss in options.loss
                for metric in _of_bound(
                    size,
                    loss,
                    bits=loss == widest and size == by_size[-1],
                    packets=loss == widest and size == by_size[0] and len(by_size) > 1,
                )
            ),
            Metric(
                _name("offered_max", size),
                "packets/s",
                f"most that the sender offered, {_said(size)}",
                "higher",
                feels="processor",
            ),
            Metric(
                _name("split", size),
                "%",
                f"datagrams split to fit the path's MTU, {_said(size)}",
                "lower",
                compare="difference",
                feels="counts",
            ),
        )
    )


def _of_bound(size: int | str, loss: Share, *, bits: bool, packets: bool) -> tuple[Metric, ...]:
    at = f"with at most {loss} lost, {_said(size)}"
    name = partial(_name, size=size, loss=loss)
    limited = name("limited")
    return (
        Metric(name("bits"), "bit/s", f"highest UDP payload rate {at}", "higher", primary=bits, limited_by=limited),
        Metric(
            name("packets"), "packets/s", f"highest packet rate {at}", "higher", primary=packets, limited_by=limited
        ),
        Metric(name("gap"), "%", f"how far above it the lowest failing rate was, {at}", "lower"),
        Metric(
            limited,
            "searches",
            f"searches that the sender or receiver ended and not the path, {at}",
            "lower",
            "difference",
        ),
    )


def _name(what: str, size: int | str, loss: Share | None = None) -> str:
    bound = "" if loss is None else f"_loss_{_probe.percent(loss)}"
    return f"{what}_{size}{bound}".replace(".", "_")


def _said(size: int | str) -> str:
    return "full size" if size == "full" else f"{size} B"


def _traffic(ends: Endpoints, options: UdpSearchOptions) -> Traffic:
    sizes, bounds = len(options.sizes), len(options.loss)
    confirming = sizes * bounds * options.confirm
    trying = sizes * (_ASCENT_S + (_TRIALS + 2 * bounds) * (options.trial + _WAIT_S))
    return Traffic(
        servers=(_probe.server(ends),),
        client=_probe.client(
            ends,
            "search",
            *("--sizes", ",".join(map(str, options.sizes)), "--loss", ",".join(map(_probe.percent, options.loss))),
            *("--trial", f"{float(options.trial):g}", "--confirm", f"{float(options.confirm):g}"),
            *("--resolution", _probe.percent(options.resolution)),
        ),
        window=confirming,
        warmup=trying,
        timeout=_GRACE_S + sizes * bounds * (_LONGEST_S + 60 * options.trial + 15 * options.confirm),
    )


def _read(outputs: dict[str, str], options: UdpSearchOptions) -> Reading:
    said = _probe.until_end(outputs)
    found = {(one.name, one.loss): one for one in _probe.of_kind(said, "found", _Found)}
    tried = sum(trial.seconds for trial in _probe.of_kind(said, "trial", _probe.ProbeTrial))
    samples, confirming = [], 0.0
    for size in options.sizes:
        searches = [found.get((str(size), float(_probe.percent(loss)))) for loss in options.loss]
        for loss, one in zip(options.loss, searches, strict=True):
            if one is None:
                raise OutputUnreadable(
                    f"no search for {loss} of loss at {_said(size)} was printed", hint="see the raw output"
                )
            samples += _of_search(one, size, loss)
            confirming += one.confirmed.seconds if one.confirmed is not None else 0.0
        done = [one for one in searches if one is not None]
        samples.append(Sample(_name("offered_max", size), max(one.offered_max for one in done)))
        if done[0].split is not None:
            samples.append(Sample(_name("split", size), 100 * done[0].split))
    return Reading(samples=tuple(samples), window=confirming, warmup=tried - confirming)


def _of_search(found: _Found, size: int | str, loss: Share) -> list[Sample]:
    """Return one search's samples. The rate is 0 if even the lowest rate failed, as RFC 2544's throughput is then."""
    rate = 0.0 if found.confirmed is None else found.confirmed.offered
    samples = [
        Sample(_name("packets", size, loss), rate),
        Sample(_name("bits", size, loss), rate * found.size * 8),
        Sample(_name("limited", size, loss), float(found.limit is not None)),
    ]
    if rate and found.failed is not None:
        samples.append(Sample(_name("gap", size, loss), 100 * (found.failed / rate - 1)))
    return samples


WORKLOAD = Workload(
    name="udp-search",
    title="UDP rate search (RFC 2544)",
    metrics=_metrics(UdpSearchOptions()),
    traffic=_traffic,
    read=_read,
    programs=(_probe.PROGRAM,),
    packages=(),
    options=UdpSearchOptions,
    metrics_of=_metrics,
    searches=lambda _: True,
)
