"""The workload `traversal`: pings while a path is sought."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from tunnelmark.errors import OutputUnreadable
from tunnelmark.workloads.base import Endpoints
from tunnelmark.workloads.traversal import WORKLOAD, TraversalOptions


def said(sent: int, lost: set[int], answer_ms: float = 0.5) -> str:
    """What ping (iputils 20221126) prints of that many probes, 20 ms apart, some of which are not answered."""
    answers = "".join(
        f"[{1795706416 + 0.02 * number + answer_ms / 1e3:.6f}] 1008 bytes from 10.60.0.3: icmp_seq={number} ttl=64 time={answer_ms:g} ms\n"
        for number in range(1, sent + 1)
        if number not in lost
    )
    received, seconds = sent - len(lost), 0.02 * (sent - 1)
    return (
        "PING 10.60.0.3 (10.60.0.3) 1000(1028) bytes of data.\n"
        "[1795706419.559924] From 10.60.0.1 icmp_seq=17 Destination Host Unreachable\n"
        f"{answers}\n--- 10.60.0.3 ping statistics ---\n"
        f"{sent} packets transmitted, {received} received, +1 errors, "
        f"{100 * len(lost) / sent:g}% packet loss, time {1e3 * seconds:.0f}ms\n"
        "rtt min/avg/max/mdev = 0.410/0.655/9.012/0.400 ms, pipe 4\n"
    )


def lost(text: str) -> float:
    (sample,) = WORKLOAD.read({"client": text}, TraversalOptions()).samples
    assert sample.metric == "lost"
    return sample.value


def test_lost_pings_are_counted():
    assert lost(said(1000, set(range(17, 42)))) == 2.5


def test_pings_under_way_at_the_end_are_not_lost():
    assert lost(said(1000, {17, *range(973, 1001)}, answer_ms=565)) == pytest.approx(100 / 972)


def test_a_path_that_answers_nothing_loses_everything():
    assert lost(said(1000, set(range(1, 1001)))) == 100


@pytest.mark.parametrize("text", ["", "ping: connect: Network is unreachable\n"])
def test_output_without_a_summary_is_refused(text: str):
    with pytest.raises(OutputUnreadable, match="no summary"):
        WORKLOAD.read({"client": text}, TraversalOptions())


def test_it_runs_as_long_as_it_is_asked_to_and_begins_at_once():
    traffic = WORKLOAD.traffic(Endpoints.between("a", "b"), TraversalOptions.model_validate({"duration": "7 s"}))
    assert traffic.window == 7
    assert "timeout --foreground --signal=INT 7 ping " in " ".join(traffic.client.argv)
    assert WORKLOAD.at_once


def test_no_icmp_error_ends_it_early():
    """With a deadline or a count of its own (`-w`, `-c`) iputils' ping ends at the first one."""
    argv = WORKLOAD.traffic(Endpoints.between("a", "b"), TraversalOptions()).client.argv
    assert not {"-w", "-c"} & set(argv[argv.index("ping") :])


@pytest.mark.parametrize(
    ("duration", "right"), [("1311 s", "less than or equal to 1310"), ("1 s", "greater than or equal to 2")]
)
def test_more_pings_than_could_be_told_apart_and_too_few_are_refused(duration: str, right: str):
    with pytest.raises(ValidationError, match=right):
        TraversalOptions.model_validate({"duration": duration})
