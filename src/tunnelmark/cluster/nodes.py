"""A scheduler and a worker of Dask, as they run on the machines of a cluster: listening on the address that is named, with its TLS or on loopback alone."""

from __future__ import annotations

import asyncio
import ipaddress
import os
import tempfile
from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from tunnelmark.cluster import worker as block
from tunnelmark.errors import UsageError

if TYPE_CHECKING:
    from distributed.security import Security

LOOPBACK = "127.0.0.1"

TTL, SCHEDULER_PAGES, WORKER_PAGES = (
    "distributed.scheduler.worker-ttl",
    "distributed.scheduler.http.routes",
    "distributed.worker.http.routes",
)

_MEMORY = 5 << 29  # bytes of a virtual machine: 2 GiB of the guest's, and QEMU's own

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
    host, _, port = listen.rpartition(":")
    _closed(host, security)
    async with Scheduler(
        host=host,
        port=int(port),
        protocol=_protocol(security),
        security=security,
        dashboard_address=dashboard or f"{LOOPBACK}:0",
    ) as made:
        ready(made.address)
        await made.finished()


async def worker(
    address: str, name: str | None, listen: str, security: Security | None, said: Callable[[str], object]
) -> None:
    """Run a worker until it is stopped, whether its scheduler is there, goes or comes again; each block in a thread of its own, as many as there are cores where their time is counted."""
    import dask
    from distributed import Worker

    dask.config.set(SETTINGS)
    host, _, port = listen.partition(":")
    _closed(host, security)
    with tempfile.TemporaryDirectory(prefix="tunnelmark-worker-") as scratch:
        settings: dict[str, Any] = {
            "name": name or f"{os.uname().nodename}-{os.getpid()}",
            "nthreads": _side_by_side(),
            "host": host,
            "port": int(port or 0),
            "protocol": _protocol(security),
            "security": security,
            "dashboard_address": f"{LOOPBACK}:0",
            "local_directory": scratch,
        }
        waiting = False
        while True:
            try:
                async with Worker(address, **settings) as made:
                    said(f"worker {made.name} waits for blocks of {address}")
                    waiting = False
                    await made.finished()
            except (OSError, RuntimeError) as error:  # what Dask raises where no one answers, or hangs up meanwhile
                if not waiting:
                    said(f"{address} does not answer ({error}); trying until it does")
            if not waiting:
                block.stop()
            waiting = True
            await asyncio.sleep(_RETRY)


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


def _closed(host: str, security: Security | None) -> None:
    if security is None and not is_loopback(host):
        raise UsageError(
            f"on {host} it would take orders from everyone who reaches it",
            hint="make keys with `tunnelmark cluster certificates DIR`, and add --tls DIR",
        )
