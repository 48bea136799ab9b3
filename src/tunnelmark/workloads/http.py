"""The workload `http`: many short requests and a few long ones to nginx at a fixed rate; latency from the intended send time."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Annotated

import numpy as np
from pydantic import Field, model_validator

from tunnelmark.model.metrics import Feels, Metric, Sample
from tunnelmark.model.options import Options
from tunnelmark.model.steps import Command, CopyFile
from tunnelmark.plan.fields import DurationText, MomentText, OfPath, ShareText, SizeText
from tunnelmark.units import Duration, Share, Size
from tunnelmark.workloads import _nginx, _vegeta
from tunnelmark.workloads.base import Endpoints, Reading, Traffic, Workload, check_warmup

_PORT = 8080
_SHORT, _LONG = "short", "long"  # the files that are asked for, and the beginnings of the metrics' names
_STEPS = 1000  # the share of long requests is a whole number of these
_MOST = 200_000  # requests of a trial: each leaves some 400 bytes of output
_PERCENTILES = {"p50": 50.0, "p90": 90.0, "p99": 99.0, "p99_9": 99.9, "max": 100.0}
_FEELS: dict[str, Feels] = {"p50": "delay", "p90": "delay", "p99": "tail", "p99_9": "tail", "max": "longest"}


class HttpOptions(Options):
    """The client sends `rate` requests a second for `duration`.

    `warmup`: the first part of `duration`, in which the client opens its connections; its requests are not measured.
    `short` and `long`: the sizes of the answers' bodies. `share`: the share of requests for long ones, evenly spread.
    Without `keepalive` each request has its own connection (and its own TLS handshake, with `tls`).
    """

    rate: Annotated[int, Field(ge=1, le=50_000)] = 200
    duration: Annotated[DurationText, OfPath("cuts")] = Duration(4)
    warmup: MomentText = Duration(0.5)
    short: Annotated[SizeText, Field(le=10_000_000)] = Size(1000)
    long: Annotated[SizeText, Field(le=100_000_000)] = Size(256_000)
    share: ShareText = Share(0.02)
    keepalive: bool = True
    tls: bool = False
    http2: bool = False

    @model_validator(mode="after")
    def _makes_sense(self) -> HttpOptions:
        check_warmup(self.warmup, self.duration)
        if not 2 <= self.attack.requests <= _MOST:
            raise ValueError(f"should send from 2 to {_MOST} requests: that is its rate times its duration")
        if abs(self.share * _STEPS - round(self.share * _STEPS)) > 1e-6 or float(self.share) == 1:
            raise ValueError("should have a share in steps of 0.1 %, below 100 %")
        if self.share > 0 and self.long <= self.short:
            raise ValueError("should have long answers that are longer than the short ones")
        cycle = self.cycle
        measured = {cycle[at % len(cycle)] for at in range(self.attack.skipped, self.attack.requests)}
        if measured != set(cycle):
            raise ValueError(
                "should send requests of both kinds after its warmup: with this share it is too short for that"
            )
        if self.http2 and not (self.tls and self.keepalive):
            raise ValueError("should have tls and keepalive with http2: it is spoken over TLS here, on one connection")
        return self

    @property
    def attack(self) -> _vegeta.Attack:
        """The requests that are sent, including those of the warm-up."""
        return _vegeta.Attack(round(self.rate * self.duration), self.rate, skipped=round(self.rate * self.warmup))

    @property
    def cycle(self) -> tuple[str, ...]:
        """The kind of each request ("short" or "long"), in the order in which requests are sent; it repeats.

        It is the shortest cycle with exactly this `share` of long requests. They are as evenly spread as possible.
        """
        share = Fraction(round(self.share * _STEPS), _STEPS)
        many, of = share.numerator, share.denominator
        until = [(at * many + of // 2) // of for at in range(of + 1)]  # long ones before each place
        return tuple(_LONG if until[at + 1] > until[at] else _SHORT for at in range(of))


def _metrics(options: HttpOptions) -> tuple[Metric, ...]:
    words = {"p50": "median", "p90": "90th percentile", "p99": "99th percentile", "p99_9": "99.9th percentile"}
    kinds = [kind for kind in (_SHORT, _LONG) if kind in options.cycle]
    latencies = [
        Metric(
            f"{kind}_{name}",
            "ms",
            f"{words.get(name, 'longest')} latency of {kind} requests",
            "lower",
            "difference",
            primary=primary,
            feels=_FEELS[name],
        )
        for kind in kinds
        for name in _PERCENTILES
        for primary in ((kind, name) == (_SHORT, "p50"),)
    ]
    series = [Metric(kind, "ms", f"latency of each {kind} request", "lower", feels="tail") for kind in kinds]
    return (*latencies, *_vegeta.GENERATOR, *series)


def _traffic(ends: Endpoints, options: HttpOptions) -> Traffic:
    root = ends.folder / "www"
    sizes = {name: size for name, size in ((_SHORT, options.short), (_LONG, options.long)) if name in options.cycle}
    # Noise, so that a VPN that compresses gains nothing from it.
    noise = " && ".join(f"head -c {int(size)} /dev/urandom >{name}" for name, size in sizes.items())
    setup: list[Command | CopyFile] = [
        Command(ends.target, ("sh", "-c", f'mkdir -p "$1" && cd "$1" && {noise}', "sh", str(root)))
    ]
    tls, roots = None, None
    if options.tls:
        tls, step = _nginx.certificate(ends.target, ends.target_address, ends.folder)
        roots = ends.folder / "roots.crt"
        setup += [step, CopyFile(ends.target, ends.folder / "tls.crt", ends.source, roots)]
    configuration, server = _nginx.server(
        ends.target, ends.target_address, _PORT, root, ends.folder, tls=tls, http2=options.http2, log_buffer="64k"
    )
    base = f"http{'s' if tls else ''}://{_nginx.at(ends.target_address, _PORT)}"
    cycle, repeat, client = _vegeta.client(
        ends,
        options.attack,
        [f"{base}/{name}" for name in options.cycle],
        keepalive=options.keepalive,
        http2=options.http2,
        roots=roots,
    )
    return Traffic(
        servers=(server,),
        client=client,
        window=options.attack.window,
        warmup=options.attack.begins,
        timeout=options.attack.timeout,
        files=(configuration, cycle),
        setup=(*setup, repeat),
    )


def _read(outputs: dict[str, str], options: HttpOptions) -> Reading:
    attack = options.attack
    measured = _vegeta.read(outputs, attack)[attack.skipped :]
    samples = _vegeta.generator(measured, attack)
    for kind in dict.fromkeys(options.cycle):
        samples += _samples(kind, [answer for answer in measured if answer.url.endswith(f"/{kind}")], attack.begins)
    starved = _vegeta.starved(measured, attack)
    return Reading(samples=tuple(samples), window=attack.window, warmup=attack.begins, starved=starved)


def _samples(kind: str, answers: Sequence[_vegeta.Answer], began: float) -> list[Sample]:
    """Return the samples of one kind of requests: percentiles, and each latency at its request's intended send time."""
    values = np.percentile([answer.latency for answer in answers], list(_PERCENTILES.values()))
    return [
        *(Sample(f"{kind}_{name}", float(value)) for name, value in zip(_PERCENTILES, values, strict=True)),
        *(Sample(kind, answer.latency, answer.due - began) for answer in answers),
    ]


WORKLOAD = Workload(
    name="http",
    title="Short and long HTTP requests at a fixed rate (vegeta, nginx)",
    serves="web services",
    metrics=_metrics(HttpOptions()),
    traffic=_traffic,
    read=_read,
    programs=(_vegeta.PROGRAM, _nginx.PROGRAM, _nginx.OPENSSL),
    packages=(_nginx.PACKAGE, _nginx.OPENSSL_PACKAGE),
    options=HttpOptions,
    metrics_of=_metrics,
    recipe=_vegeta.RECIPE,
)
