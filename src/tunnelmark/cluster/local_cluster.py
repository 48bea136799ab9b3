"""Runs a Dask cluster on this machine only: a scheduler and some workers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tunnelmark.cluster import dispatch, nodes

if TYPE_CHECKING:
    from distributed.security import Security


@contextmanager
def here(count: int) -> Iterator[tuple[str, Security]]:
    """Run a scheduler and `count` workers on this machine during the body of the `with` statement.

    Yield the scheduler's address, and the TLS settings to connect to it, with temporary keys.
    """
    dispatch.require()
    import dask
    from distributed import LocalCluster
    from distributed.security import Security

    dask.config.set(nodes.SETTINGS)
    security: Security = Security.temporary()  # type: ignore[no-untyped-call]
    with LocalCluster(  # type: ignore[no-untyped-call]
        n_workers=count,
        threads_per_worker=1,
        processes=True,
        host="127.0.0.1",
        protocol="tls://",
        security=security,
        dashboard_address="127.0.0.1:0",
        worker_dashboard_address="127.0.0.1:0",
        silence_logs=50,
    ) as cluster:
        yield cluster.scheduler_address, security
