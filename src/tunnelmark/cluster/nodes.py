"""A scheduler and a worker of Dask, as they run on the machines of a cluster: listening on the address that is named, with its TLS or on loopback alone."""

from __future__ import annotations

import asyncio
import ipaddress
import os
import socket
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from tunnelmark.cluster import worker as block
from tunnelmark.errors import UsageError
from tunnelmark.linux import scratch

if TYPE_CHECKING:
    from distributed.security import Security

LOOPBACK = "127.0.0.1"

PORT = 8786
"""Where a scheduler listens unless another port is stated; Dask's own."""

TTL, SCHEDULER_PAGES, WORKER_PAGES = (
    "distributed.scheduler.worker-ttl",
    "distributed.scheduler.http.routes",
    "distributed.worker.http.routes",
)

_MEMORY = 5 << 29  # bytes of a virtual machine: 2 GiB of the guest's, and QEMU's own

_START = 30.0  # seconds in which a worker has reached its scheduler, or says that it has not and tries on; Dask's own would try without a word
_RETRY = 1.0  # seconds between two tries to reach the scheduler

SILENCE = 30
"""Seconds without a word after which a worker is taken to be lost; Dask's own default is 300. One that is killed is missed at once."""


SETTINGS: dict[str, Any] = {TTL: f"{SILENCE} s", SCHEDULER_PAGES: [], WORKER_PAGES: []}
"""Settings of Dask for a cluster of ours: without a dashboard no page answers on the port that Dask opens for one."""


async def scheduler(
    listen: str, dashboard: str | None, security: Security | None, ready: Callable[[str], object]
) -> None:
    """Run a scheduler until it is stopped; `ready` gets its address. UsageError where it would be open to others without TLS."""
    import dask
    from distributed import Scheduler

    dask.config.set(SETTINGS if dashboard is None else {TTL: SETTINGS[TTL]})
    host, port = place(listen)
    _closed(listen, security)
    async with Scheduler(
        host=host,
        port=port,
        protocol=_protocol(security),
        security=security,
        dashboard_address=dashboard or f"{LOOPBACK}:0",
    ) as made:
        ready(made.address)
        await made.finished()


async def worker(
    address: str,
    name: str | None,
    listen: str | None,
    security: Security | None,
    said: Callable[[str], object],
    lacks: Callable[[str], object],
) -> None:
    """Run a worker until it is stopped, whether its scheduler is there, goes or comes again; each block in a thread of its own, as many as there are cores where their time is counted.

    `listen` None: on this machine's address on the way to the scheduler, which reaches it there. `said` gets that it is ready, `lacks` why it is not.
    """
    import dask
    from distributed import Worker

    dask.config.set(SETTINGS)
    _closed(address, security)
    host, port = (None, 0) if listen is None else place(listen, 0)
    if listen is not None:
        _closed(listen, security)
    folder = Path(tempfile.mkdtemp(prefix="tunnelmark-worker-"))
    with scratch.held([folder]):
        settings: dict[str, Any] = {
            "name": name or f"{os.uname().nodename}-{os.getpid()}",
            "nthreads": _side_by_side(),
            "port": port,
            "protocol": _protocol(security),
            "security": security,
            "dashboard_address": f"{LOOPBACK}:0",
            "death_timeout": _START,
            "local_directory": str(folder),
        }
        waiting = False
        while True:
            try:
                async with Worker(address, host=host or own_address(address), **settings) as made:
                    said(f"worker {made.name} waits for blocks of {address}")
                    waiting = False
                    await made.finished()
            except (OSError, RuntimeError) as error:  # what Dask raises where no one answers, or hangs up meanwhile
                if not waiting:
                    late = isinstance(error, TimeoutError)
                    why = "does not answer" if late else f"does not take it ({error.__cause__ or error})"
                    lacks(f"the scheduler at {address} {why}; trying until it does")
            if not waiting:
                block.stop()
            waiting = True
            await asyncio.sleep(_RETRY)


def place(text: str, port: int | None = None) -> tuple[str, int]:
    """Host and port of `ADDRESS:PORT`; `port` is meant where none is stated. UsageError if it is something else."""
    try:
        split = urlsplit(f"//{text}")
        host, number = split.hostname, split.port if split.port is not None else port
    except ValueError:
        host, number = None, None
    if not host or number is None:
        raise UsageError(f"{text} is not ADDRESS:PORT", hint=f"such as {LOOPBACK}:{PORT}")
    return host, number


def addressed(address: str, *, keys: bool) -> str:
    """The address of a scheduler with its protocol. UsageError if it is not one, or if its protocol does not go with the keys that there are."""
    protocol, _, rest = address.rpartition("://")
    place(rest, PORT)
    if protocol == "tcp" and keys:
        raise UsageError(f"{address} is not encrypted, and --tls is given", hint=f"write tls://{rest}")
    if protocol == "tls" and not keys:
        raise UsageError(f"{address} needs TLS keys", hint="name their folder: --tls DIR")
    return address if protocol else f"{'tls' if keys else 'tcp'}://{rest}"


def own_address(address: str) -> str:
    """The address of this machine on the way to a scheduler; OSError where there is no way. Nothing is sent."""
    host, port = place(address.rpartition("://")[2], PORT)
    family, kind, protocol, _, there = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)[0]
    with socket.socket(family, kind, protocol) as way:
        way.connect(there)
        return str(way.getsockname()[0])


def is_loopback(address: str) -> bool:
    """Whether an address, with or without protocol and port, is of this machine alone."""
    host = urlsplit(address if "://" in address else f"tcp://{address}").hostname or ""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _side_by_side() -> int:
    """How many virtual machines fit here at once: one a core, each with its memory."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return max(min(os.cpu_count() or 1, memory // _MEMORY), 1)


def _protocol(security: Security | None) -> str:
    return "tls://" if security is not None else "tcp://"


def _closed(address: str, security: Security | None) -> None:
    """UsageError where others than users of this machine could give orders there."""
    if security is None and not is_loopback(address):
        raise UsageError(
            f"without TLS, everyone who can reach {address} could run programs on this machine",
            hint="make keys with `tunnelmark cluster certificates DIR`, and add --tls DIR",
        )
