"""The workload `traversal`: which path a VPN finds between two nodes, and when.

Pings of 1,000 bytes run from the moment at which the VPN answers. Through routers that translate addresses or filter, a
VPN may begin with a relay and switch to the direct path later, or never. The collector `path` observes in the underlay
which path the pings take. The lost pings are counted from ping's output.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from tunnelmark.model.metrics import Metric, Sample
from tunnelmark.model.options import Options
from tunnelmark.plan.fields import WholeSeconds
from tunnelmark.units import Duration
from tunnelmark.workloads import _ping
from tunnelmark.workloads.base import Endpoints, Program, Reading, Traffic, Workload

METRICS = (
    Metric(
        "path_direct",
        "%",
        "bytes that came from the other end itself",
        "higher",
        "difference",
        primary=True,
        feels="counts",
    ),
    Metric("lost", "%", "pings without an answer", "lower", "difference", feels="counts"),
)
_INTERVAL = 0.02  # seconds: the kernel's tick makes it up to 24 ms
_SIZE = 1000  # payload bytes of a ping: more than a VPN's own packets have, and no VPN's MTU splits it
_LONGEST = int(_ping.SEQUENCE_NUMBERS * _INTERVAL)  # whole seconds


class TraversalOptions(Options):
    """`duration` is how long the pings run; a path that is found later is not seen."""

    # The bounds must follow the parsing type: those of a `Field` given as the default would be replaced by it.
    duration: Annotated[
        WholeSeconds,
        Field(ge=2, le=_LONGEST, description=f"whole seconds from '2 s' to '{_LONGEST} s', such as '20 s'"),
    ] = Duration(20)


def traffic(ends: Endpoints, options: TraversalOptions) -> Traffic:
    """Return the client, a ping that gets SIGINT at the end: with a deadline it would end at the first ICMP error."""
    seconds = float(options.duration)
    limit = ("timeout", "--foreground", "--signal=INT", f"{seconds:.0f}")
    argv = ("ping", "-n", "-D", "-i", f"{_INTERVAL:g}", "-s", str(_SIZE), str(ends.target_address))
    client = Program("client", ends.source, ("sh", "-c", '"$@" || true', "sh", *limit, *argv))
    return Traffic((), client, window=seconds, warmup=0.0, timeout=seconds + 10)


def read(outputs: dict[str, str], options: TraversalOptions) -> Reading:
    """Return a reading with the share of lost pings in per cent; the collector `path` reports the path."""
    probes = _ping.read(outputs.get("client", ""), options.duration)
    return Reading((Sample("lost", probes.loss),), float(options.duration), 0.0)


WORKLOAD = Workload(
    name="traversal",
    title="which path is found, and when",
    metrics=METRICS,
    traffic=traffic,
    read=read,
    programs=("ping", "timeout"),
    packages=("iputils-ping", "coreutils"),
    options=TraversalOptions,
    watch=("path",),
    at_once=True,
)
