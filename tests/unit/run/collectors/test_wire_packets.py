"""Of which packets a figure "for each wire packet" is: those on the wire, also where cards split and where each end is on a host of its own."""

from __future__ import annotations

import pytest

from tunnelmark.run.collectors import _counts
from tunnelmark.run.collectors.base import Collected


def counts(received: int, sent: int) -> _counts.TrafficCounts:
    return _counts.TrafficCounts(0, 0, 0, 0, received + sent, 0, sent, 0, 0)


def test_each_end_counts_its_own_where_no_card_splits() -> None:
    passed = {"source": counts(10, 900), "target": counts(890, 10)}
    assert _counts.wire_packets("none", passed) == {"packets_source": 910, "packets_target": 900}


def test_where_cards_split_an_end_s_packets_are_counted_as_they_arrive() -> None:
    passed = {"source": counts(10, 20), "target": counts(900, 10)}  # 900 left as 20 super-packets
    assert _counts.wire_packets("offloads", passed) == {"packets_source": 910, "packets_target": 910}


def test_ends_on_two_hosts_add_up() -> None:
    one, other = (
        Collected(sums=_counts.wire_packets("offloads", passed))
        for passed in ({"source": counts(10, 20)}, {"target": counts(900, 10)})
    )
    assert one.joined(other).sums == {"packets_source": 910, "packets_target": 910}


def test_what_an_end_has_done_is_shared_out_among_its_packets_or_said_to_be_for_none() -> None:
    seen = Collected(sums={"done_source": 91.0, "packets_source": 910.0, "done_target": 5.0})
    found = _counts.for_each_packet(seen, "done_", "switches_per_packet")
    (sample,) = found.samples
    assert (sample.metric, sample.value) == ("switches_per_packet_source", pytest.approx(0.1))
    assert found.notes == {"switches_per_packet_target": _counts.NOTHING_PASSED}
