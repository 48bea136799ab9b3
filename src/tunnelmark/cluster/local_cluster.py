"""A cluster of Dask on this machine alone: its scheduler, and as many workers as are asked for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tunnelmark.cluster import dispatch, nodes

if TYPE_CHECKING:
    from distributed.security import Security


@contextmanager
def here(count: int) -> Iterator[tuple[str, Security]]:
    """A cluster of so many workers on this machine, for as long as it is needed: its address, and its TLS with keys of its own."""
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
