"""Starts the two ends of `tunnelmark-probe` and reads its JSON lines; all workloads that use that program share it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated

from pydantic import AfterValidator

from tunnelmark.errors import OutputUnreadable, WorkloadFailed
from tunnelmark.model.steps import LogMatch
from tunnelmark.units import Share
from tunnelmark.workloads._printed import FormT, ProgramOutput, understood
from tunnelmark.workloads.base import Endpoints, Program

PROGRAM = "tunnelmark-probe"
SERVER, CLIENT = "server", "client"

HEADER = 32
"""Bytes that the probe's own header takes in each datagram; no payload can be smaller."""

LARGEST = 65507
"""The largest payload of a UDP datagram over IPv4, in bytes."""

_BUFFER = 4 * 1024 * 1024
"""The socket buffer to ask for, in bytes; the workload `udp` says why."""


class ProbeTrial(ProgramOutput):
    """One test of one rate within a trial; `offered`: datagrams sent a second, `seconds`: the length of the test."""

    size: int  # bytes of payload
    offered: float
    seconds: float
    sent: int
    lost: int


def percent(share: Share) -> str:
    """Return a share in per cent as text, with at most six digits: "0.1"."""
    return f"{100 * float(share):.6g}"


def _each_once(values: tuple[object, ...]) -> tuple[object, ...]:
    if len(set(values)) < len(values):
        raise ValueError("should name each value once")
    return values


def _fits(size: int) -> int:
    if not HEADER <= size <= LARGEST:
        raise ValueError(f"should be from {HEADER} to {LARGEST} bytes: the probe's own header takes {HEADER}")
    return size


EachOnce = AfterValidator(_each_once)
ProbeSize = Annotated[int, AfterValidator(_fits)]


def server(ends: Endpoints) -> Program:
    """Return the program of the receiving end, on the target. It runs until the client has ended."""
    return Program(
        name=SERVER,
        node=ends.target,
        argv=(PROGRAM, "serve", "--bind", str(ends.target_address), *_buffer(ends)),
        ready=LogMatch('"kind":"ready"'),
        long_running=True,
    )


def client(ends: Endpoints, subcommand: str, *options: str) -> Program:
    """Return the program of the sending end, on the source, which drives the measurement by `subcommand`."""
    argv = (PROGRAM, subcommand, "--to", str(ends.target_address), *_buffer(ends), *options)
    return Program(name=CLIENT, node=ends.source, argv=argv)


def _buffer(ends: Endpoints) -> tuple[str, str]:
    return "--buffer", str(min(_BUFFER, ends.socket_buffer))


def lines(outputs: Mapping[str, str], name: str) -> list[dict[str, object]]:
    """Return one side's JSON lines. Raises WorkloadFailed if one is an error, OutputUnreadable if one is not JSON."""
    found = []
    for number, text in enumerate(outputs.get(name, "").splitlines(), 1):
        try:
            said = json.loads(text)
        except json.JSONDecodeError:
            said = None
        if not isinstance(said, dict):
            raise OutputUnreadable(
                f"line {number} of the {name}'s output is not a JSON object",
                hint="see the raw output: it may be cut short",
            )
        if said.get("kind") == "error":
            raise WorkloadFailed(f"{PROGRAM} says: {said.get('why')}", hint="see the VPN's logs and the raw output")
        found.append(said)
    return found


def until_end(outputs: Mapping[str, str]) -> list[dict[str, object]]:
    """Return all lines that the client printed. Raises OutputUnreadable if the last one (`end`) is missing."""
    said = lines(outputs, CLIENT)
    if not said or said[-1].get("kind") != "end":
        raise OutputUnreadable(
            f"{PROGRAM} printed {len(said)} lines and not the last, which says that it is done",
            hint="see its stderr in the raw output: it may have been ended",
        )
    return said


def of_kind(said: list[dict[str, object]], kind: str, form: type[FormT]) -> list[FormT]:
    """Return the lines of that kind, parsed as `form`. Raises OutputUnreadable if one has another form."""
    hint = "the program and this reader are of different versions: run `make setup`"
    with understood(f"{PROGRAM} printed a line {kind!r}", hint):
        return [form.model_validate(line) for line in said if line.get("kind") == kind]
