"""Runs vegeta in open loop, and computes each request's latency from its intended send time; for workloads over HTTP.

It relies on these facts about vegeta 12.13. Request n is due n intervals after the first, whether or not earlier ones
were answered. vegeta adds a worker when all are busy, so no request waits for an earlier answer. vegeta prints when a
worker began with a request, and the latency from then to the last byte of the answer. A worker may begin late; the
printed latency does not include that lateness, so it is added here. With `-lazy` vegeta sends one request for each
target, even if it is late. With `-duration` it would leave out the requests that are late at the end. At the end of its
targets it prints a few results without a URL. With `-max-body 0` it reads bodies to their end and discards them; an
answer that is cut short is still an error.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import PurePath, PurePosixPath

import numpy as np
from pydantic import AwareDatetime

from tunnelmark.errors import OutputUnreadable, WorkloadFailed
from tunnelmark.model.metrics import Metric, Sample
from tunnelmark.model.steps import Command, File
from tunnelmark.workloads._printed import ProgramOutput, understood
from tunnelmark.workloads.base import Endpoints, Program

PROGRAM, RECIPE = "vegeta", "vegeta"
CLIENT = "client"

LATE_MS = 50.0
"""The limit in ms for the 99th percentile of vegeta's own lateness (or half an interval, if that is longer).

Beyond it, the load generator is measured and not the path. On a quiet core vegeta is late by about a millisecond.
"""

_GRACE_S = 10.0  # seconds that starting vegeta and writing its results may take
_AT_END = "no targets to attack"
_PORT = re.compile(r":\d+->")  # the sender's own port, which differs in each error

_SCRIPT = 'results=$1; shift; vegeta attack "$@" -output "$results" && vegeta encode --to json "$results"'


@dataclass(frozen=True, slots=True)
class Attack:
    """The requests that vegeta sends.

    `requests`: the number of requests in all.
    `rate`: requests a second; they do not wait for answers (open loop).
    `skipped`: how many requests at the begin are warm-up and not measured.
    `request_timeout`: seconds after which a request without an answer has failed.
    """

    requests: int
    rate: int
    skipped: int = 0
    request_timeout: float = 5.0  # seconds

    @property
    def interval(self) -> float:
        """Seconds from one request to the next; vegeta rounds them down to whole nanoseconds."""
        return (1_000_000_000 // self.rate) / 1e9

    @property
    def seconds(self) -> float:
        """Seconds from the first intended send time to one interval after the last."""
        return self.requests * self.interval

    @property
    def begins(self) -> float:
        """Seconds from the first intended send time to that of the first measured request."""
        return self.skipped * self.interval

    @property
    def window(self) -> float:
        """Seconds that are measured."""
        return self.seconds - self.begins

    @property
    def timeout(self) -> float:
        """Seconds within which the client must end; if it has not ended then, it hangs."""
        return self.seconds + self.request_timeout + _GRACE_S


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of one request.

    `due`: its intended send time, in seconds after that of the first request.
    `late`: how many ms after `due` it was sent.
    `latency`: ms from `due` to the last byte of the answer. For a failed request it is at least the request timeout, so
    that failing fast does not look fast.
    `error`: why the request failed; "" if it succeeded.
    """

    url: str
    due: float
    late: float
    latency: float
    error: str


class _Result(ProgramOutput):
    """A line of `vegeta encode --to json`; `latency` is in nanoseconds."""

    seq: int
    code: int
    timestamp: AwareDatetime
    latency: int
    error: str
    url: str


def client(
    ends: Endpoints,
    attack: Attack,
    urls: Iterable[str],
    *,
    keepalive: bool = True,
    http2: bool = False,
    roots: PurePath | None = None,
    headers: Sequence[str] = (),
) -> tuple[File, Command, Program]:
    """Return the client on the source, which requests `urls` in turn: a file, a step of the set-up, and the program.

    The file has `urls`, and the step repeats them for all requests (see `repeated`). `roots`: a file on the source
    with the certificates that the client trusts; None: the system's. `headers`: such as "Accept: text/html".
    """
    folder = ends.folder / "vegeta"
    file, step = repeated(ends.source, folder, [f"GET {url}" for url in urls], attack.requests)
    argv = (
        *("sh", "-c", _SCRIPT, "sh", str(folder / "results")),
        *(
            "-lazy",
            "-targets",
            str(targets(folder)),
            "-rate",
            f"{attack.rate}/1s",
            "-timeout",
            f"{attack.request_timeout:g}s",
        ),
        *("-laddr", str(ends.source_address), "-max-body", "0", "-redirects", "-1"),
        *(f"-keepalive={str(keepalive).lower()}", f"-http2={str(http2).lower()}"),
        *(("-root-certs", str(roots)) if roots else ()),
        *(word for header in headers for word in ("-header", header)),
    )
    return file, step, Program(CLIENT, ends.source, argv)


def repeated(node: str, folder: PurePosixPath, lines: Iterable[str], count: int) -> tuple[File, Command]:
    """Return a file with `lines`, and a step that repeats them in the file of `targets` until it has `count` lines.

    A message to a node holds 150 kB, so the targets of a long run do not fit into one message.
    """
    cycle = folder / "cycle"
    text = "".join(f"{line}\n" for line in lines)
    script = 'while cat "$1"; do :; done | head -n "$2" >"$3"'
    step = Command(node, ("sh", "-c", script, "sh", str(cycle), str(count), str(targets(folder))))
    return File(node, cycle, text), step


def targets(folder: PurePosixPath) -> PurePosixPath:
    """Return the path on the node of the file to which the step of `repeated` writes the targets."""
    return folder / "targets"


def read(outputs: Mapping[str, str], attack: Attack) -> tuple[Answer, ...]:
    """Return the answers to all requests, in the order of sending, including those of the warm-up.

    vegeta does not print when its schedule began, and its first request may be as late as any other. So the schedule
    is laid such that no request was sent before its time, and the most punctual one exactly at its time. Raises
    WorkloadFailed if at least half of the measured requests failed, and OutputUnreadable if results are missing.
    """
    results = [result for result in _results(outputs.get(CLIENT, "")) if result.url or result.error != _AT_END]
    results.sort(key=lambda result: result.seq)
    if [result.seq for result in results] != list(range(attack.requests)):
        raise OutputUnreadable(
            f"vegeta wrote {len(results)} results of {attack.requests} requests",
            hint="see the raw output: it may have been cut short",
        )
    microsecond = timedelta(microseconds=1)
    sent = [(result.timestamp - results[0].timestamp) / microsecond / 1e6 for result in results]
    due = [number * attack.interval for number in range(attack.requests)]
    began = min(at - planned for at, planned in zip(sent, due, strict=True))
    answers = []
    for result, at, planned in zip(results, sent, due, strict=True):
        late = 1e3 * (at - began - planned)
        error = result.error or ("" if 200 <= result.code < 300 else f"status {result.code}")
        latency = late + result.latency / 1e6
        answers.append(
            Answer(result.url, planned, late, max(latency, 1e3 * attack.request_timeout) if error else latency, error)
        )
    measured = answers[attack.skipped :]
    _raise_if_failed(measured)
    return tuple(answers)


def starved(answers: Sequence[Answer], attack: Attack) -> str:
    """Return a sentence for `Reading.starved` if vegeta sent the requests of `answers` too late, else "".

    Too late is a 99th percentile of vegeta's lateness above LATE_MS, or above half an interval if that is longer. The
    latencies then say more about vegeta than about the path, because they include its lateness.
    """
    bound = max(LATE_MS, 1e3 * attack.interval / 2)
    if (late := late_p99(answers)) <= bound:
        return ""
    return f"vegeta was late: one request of a hundred was sent {late:.0f} ms or more after its time ({bound:.0f} ms are let pass)"


def late_p99(answers: Iterable[Answer]) -> float:
    """Return the 99th percentile of vegeta's own lateness in ms."""
    return float(np.percentile([answer.late for answer in answers], 99))


def generator(answers: Sequence[Answer], attack: Attack) -> list[Sample]:
    """Return the samples of the metrics GENERATOR: how well vegeta kept its schedule in the window, and what failed."""
    sent = [answer.due + answer.late / 1e3 for answer in answers]
    span = sent[-1] - sent[0]
    failed = sum(bool(answer.error) for answer in answers)
    return [
        Sample("errors", 100 * failed / len(answers)),
        Sample("achieved", (len(sent) - 1) / span if span > 0 else float(attack.rate)),
        Sample("late", late_p99(answers)),
    ]


GENERATOR = (
    Metric("errors", "%", "requests without a good answer", "lower", compare="difference"),
    Metric("achieved", "requests/s", "requests sent a second", "higher"),
    Metric(
        "late",
        "ms",
        "99th percentile of how late the generator itself sent a request",
        "lower",
        "difference",
        feels="tail",
    ),
)


def _results(text: str) -> list[_Result]:
    if not text.strip():
        raise OutputUnreadable("vegeta printed nothing", hint="see its stderr in the raw output")
    hint = "this reader knows vegeta 12.13; see the raw output, it may have been cut short"
    with understood("vegeta wrote a result", hint):
        return [_Result.model_validate_json(line) for line in text.splitlines()]


def _raise_if_failed(answers: Sequence[Answer]) -> None:
    """Raise WorkloadFailed if at least half of the requests failed, because the median would be that of failures."""
    errors = Counter(_PORT.sub("->", answer.error) for answer in answers if answer.error)
    if 2 * errors.total() >= len(answers):
        raise WorkloadFailed(
            f"{errors.total()} of {len(answers)} requests failed, most of them so: {errors.most_common(1)[0][0]}",
            hint="see what the server printed in the raw output, and the VPN's logs",
        )
