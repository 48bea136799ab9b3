"""What the workloads of `tunnelmark-probe` share: how its two ends are started, and its JSON, an object a line."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationError

from tunnelmark.errors import OutputUnreadable, WorkloadFailed
from tunnelmark.model.steps import LogMatch
from tunnelmark.units import Share
from tunnelmark.workloads.base import Endpoints, Program

PROGRAM = "tunnelmark-probe"
SERVER, CLIENT = "server", "client"

HEADER = 32
"""Bytes that each datagram's own header takes: no payload is smaller."""

LARGEST = 65507
"""Bytes that fit a datagram over IPv4."""

_BUFFER = 4 * 1024 * 1024
"""Bytes of socket buffer to ask for: see the workload `udp`."""

LineT = TypeVar("LineT", bound=BaseModel)


class Line(BaseModel):
    """The base of what is read of the output of `tunnelmark-probe`; further fields are ignored."""

    model_config = ConfigDict(extra="ignore", frozen=True)


class ProbeTrial(Line):
    """One trial at one rate; rates in datagrams a second, times in seconds."""

    size: int  # bytes of payload
    offered: float
    seconds: float
    sent: int
    lost: int


def percent(share: Share) -> str:
    """A share in per cent, as short as it can be said."""
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
    """The end that receives; it stays until the client has ended."""
    return Program(
        name=SERVER,
        node=ends.target,
        argv=(PROGRAM, "serve", "--bind", str(ends.target_address), *_buffer(ends)),
        ready=LogMatch('"kind":"ready"'),
        long_running=True,
    )


def client(ends: Endpoints, subcommand: str, *options: str) -> Program:
    """The end that drives the measurement."""
    argv = (PROGRAM, subcommand, "--to", str(ends.target_address), *_buffer(ends), *options)
    return Program(name=CLIENT, node=ends.source, argv=argv)


def _buffer(ends: Endpoints) -> tuple[str, str]:
    return "--buffer", str(min(_BUFFER, ends.socket_buffer))


def lines(outputs: Mapping[str, str], name: str) -> list[dict[str, object]]:
    """What that side printed; WorkloadFailed if it says why it failed, OutputUnreadable if a line is not JSON."""
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
    """All that the client printed, up to its last line; OutputUnreadable if that is missing."""
    said = lines(outputs, CLIENT)
    if not said or said[-1].get("kind") != "end":
        raise OutputUnreadable(
            f"{PROGRAM} printed {len(said)} lines and not the last, which says that it is done",
            hint="see its stderr in the raw output: it may have been ended",
        )
    return said


def of_kind(said: list[dict[str, object]], kind: str, form: type[LineT]) -> list[LineT]:
    """The lines of that kind, as `form`; OutputUnreadable if one is not of that form."""
    try:
        return [form.model_validate(line) for line in said if line.get("kind") == kind]
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise OutputUnreadable(
            f"{PROGRAM} printed a line {kind!r} that is not understood: {where}: {first['msg']}",
            hint="the program and this reader are of different versions: run `make setup`",
        ) from error
