"""Runs a scheduler or a worker of Dask on a machine of a cluster; without TLS, only on the loopback address."""

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
"""The default port of a scheduler; it is Dask's own default."""

TTL, SCHEDULER_PAGES, WORKER_PAGES = (
    "distributed.scheduler.worker-ttl",
    "distributed.scheduler.http.routes",
    "distributed.worker.http.routes",
)

_MEMORY = 5 << 29  # bytes for a virtual machine: 2 GiB for the guest, and 0.5 GiB for QEMU

_START = 30.0  # seconds for a worker to reach its scheduler; else it reports that, and tries on (Dask would not report)
_RETRY = 1.0  # seconds between two tries to reach the scheduler

SILENCE = 30
"""Seconds of silence after which a worker counts as lost (Dask's default: 300). A killed one is noticed at once."""


SETTINGS: dict[str, Any] = {TTL: f"{SILENCE} s", SCHEDULER_PAGES: [], WORKER_PAGES: []}
"""Dask's settings for our clusters. They serve no page on the port that Dask opens for a dashboard."""


async def scheduler(
    listen: str, dashboard: str | None, security: Security | None, ready: Callable[[str], object]
) -> None:
    """Run a scheduler until the calling task is cancelled (by Ctrl-C, for example).

    `listen`: the address to listen on, as ADDRESS:PORT. `dashboard`: where Dask shows its web pages, as ADDRESS:PORT;
    None: nowhere. `security`: the TLS settings; None: without TLS. `ready` is called with the scheduler's address when
    workers can connect. UsageError if other machines could reach the scheduler without TLS.
    """
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
    """Run a worker of the scheduler at `address` until the calling task is cancelled.

    If the scheduler is not there, or goes away, the worker tries to connect until it succeeds. One thread measures one
    block, and the worker has one thread for each virtual machine that fits on this machine.
    `name`: the worker's name; None: this machine's name and the process ID. `listen`: ADDRESS[:PORT]; None: the address
    of this machine from which the worker reaches the scheduler. `security`: the TLS settings; None: without TLS.
    `said` is called with a text when the worker is ready, `lacks` with the reason when it cannot connect. UsageError if
    `address` or `listen` is not a loopback address and TLS is not used.
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
    """Return host and port of `ADDRESS:PORT`; `port` is the default port. UsageError if the text has another form."""
    try:
        split = urlsplit(f"//{text}")
        host, number = split.hostname, split.port if split.port is not None else port
    except ValueError:
        host, number = None, None
    if not host or number is None:
        raise UsageError(f"{text} is not ADDRESS:PORT", hint=f"such as {LOOPBACK}:{PORT}")
    return host, number


def addressed(address: str, *, keys: bool) -> str:
    """Return a scheduler's address with its protocol.

    UsageError if the text is not an address, or if it names `tcp` with keys, or `tls` without keys.
    """
    protocol, _, rest = address.rpartition("://")
    place(rest, PORT)
    if protocol == "tcp" and keys:
        raise UsageError(f"{address} is not encrypted, and --tls is given", hint=f"write tls://{rest}")
    if protocol == "tls" and not keys:
        raise UsageError(f"{address} needs TLS keys", hint="name their folder: --tls DIR")
    return address if protocol else f"{'tls' if keys else 'tcp'}://{rest}"


def own_address(address: str) -> str:
    """Return this machine's address from which it reaches a scheduler; OSError without a route to it. Sends nothing."""
    host, port = place(address.rpartition("://")[2], PORT)
    family, kind, protocol, _, there = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)[0]
    with socket.socket(family, kind, protocol) as way:
        way.connect(there)
        return str(way.getsockname()[0])


def is_loopback(address: str) -> bool:
    """Return whether an address, with or without protocol and port, is a loopback address."""
    host = urlsplit(address if "://" in address else f"tcp://{address}").hostname or ""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _side_by_side() -> int:
    """Return how many virtual machines fit on this machine at once: one per core, as far as the memory suffices."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return max(min(os.cpu_count() or 1, memory // _MEMORY), 1)


def _protocol(security: Security | None) -> str:
    return "tls://" if security is not None else "tcp://"


def _closed(address: str, security: Security | None) -> None:
    """Raise UsageError if the address can be reached from other machines and TLS is not used."""
    if security is None and not is_loopback(address):
        raise UsageError(
            f"without TLS, everyone who can reach {address} could run programs on this machine",
            hint="make keys with `tunnelmark cluster certificates DIR`, and add --tls DIR",
        )
