"""The workload `traversal`: pings while a path is sought."""

from __future__ import annotations

import pytest

from tunnelmark.errors import OutputUnreadable
from tunnelmark.workloads.base import Endpoints
from tunnelmark.workloads.traversal import WORKLOAD, TraversalOptions

# iputils 20221126
SAID = """PING 10.60.0.3 (10.60.0.3) 1000(1028) bytes of data.

--- 10.60.0.3 ping statistics ---
400 packets transmitted, 390 received, 2.5% packet loss, time 9988ms
rtt min/avg/max/mdev = 0.410/0.655/9.012/0.400 ms
"""


def test_lost_pings_are_counted():
    (lost,) = WORKLOAD.read({"client": SAID}, TraversalOptions()).samples
    assert (lost.metric, lost.value) == ("lost", 2.5)


@pytest.mark.parametrize("said", ["", "ping: connect: Network is unreachable\n"])
def test_output_without_a_summary_is_refused(said: str):
    with pytest.raises(OutputUnreadable, match="no summary"):
        WORKLOAD.read({"client": said}, TraversalOptions())


def test_it_runs_as_long_as_it_is_asked_to_and_begins_at_once():
    traffic = WORKLOAD.traffic(Endpoints.between("a", "b"), TraversalOptions.model_validate({"duration": "7 s"}))
    assert traffic.window == 7
    assert "-w 7" in " ".join(traffic.client.argv)
    assert WORKLOAD.at_once
