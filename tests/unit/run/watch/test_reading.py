"""What collectors read: the kernel's tables, `ss`, `perf stat`, and the packet sizes that a tap has counted."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tunnelmark.linux.packet_sizes import SizeCounts
from tunnelmark.run.collectors._counts import TrafficCounts, fragments, interface_counts, ip_counts, memory, switches
from tunnelmark.run.collectors.base import Collected
from tunnelmark.run.collectors.syscall_counts import counted
from tunnelmark.run.collectors.tcp_state import connections
from tunnelmark.run.collectors.wire_bytes import CLASSES, UNCOUNTED, UNKNOWN, classes, overhead, split, totals

DEV = """\
Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo:       0       0    0    0    0     0          0         0        0       0    0    0    0     0       0          0
  eth0: 5282102   61020    0    0    0     0          0         0 186214222  123021    0    0    0     0       0          0
wg0:12 3 0 0 0 0 0 0 45 6 0 0 0 0 0 0
"""
SNMP = """\
Ip: Forwarding DefaultTTL InReceives ReasmReqds ReasmOKs ReasmFails FragOKs FragFails FragCreates
Ip: 2 64 61018 20 10 0 5 0 10
Icmp: InMsgs InErrors
Icmp: 0 0
"""
SNMP6 = """\
Ip6InReceives                   \t1600
Ip6ReasmReqds                   \t6
Ip6ReasmOKs                     \t3
Ip6FragOKs                      \t4
Ip6FragCreates                  \t7
Icmp6InMsgs                     \t2
"""
# ss (iproute2 6.1) -tinH state established on a node with openvpn over TCP and an iperf3 of two connections
SS = """\
0      0                10.60.0.1:39512     10.60.0.2:5201 \n\
@cubic wscale:7,7 rto:204 rtt:0.21/0.1 ato:40 mss:1337 pmtu:1389 rcvmss:536 advmss:1337 cwnd:10 bytes_sent:161 bytes_acked:162 bytes_received:4 segs_out:9 segs_in:8 data_segs_out:3 send 509Mbps lastsnd:480 lastrcv:480 lastack:440 pacing_rate 1.02Gbps delivery_rate 112Mbps delivered:4 app_limited busy:40ms rcv_space:14480 rcv_ssthresh:64088 minrtt:0.09 snd_wnd:65152
0      1336824          10.60.0.1:39518     10.60.0.2:5201 \n\
@cubic wscale:7,7 rto:208 rtt:6.301/0.41 mss:1337 pmtu:1389 rcvmss:536 advmss:1337 cwnd:512 ssthresh:402 bytes_sent:42143577 bytes_retrans:32088 bytes_acked:41426946 segs_out:31524 segs_in:11232 data_segs_out:31522 send 869Mbps lastrcv:484 pacing_rate 1.04Gbps delivery_rate 703Mbps delivered:30987 busy:484ms unacked:512 retrans:3/24 reordering:31 reord_seen:7 dsack_dups:2 rcv_space:14480 rcv_ssthresh:64088 notsent:652000 minrtt:0.2 snd_wnd:1570944
0      98765            10.50.0.1:51820     10.50.0.2:1194
@cubic wscale:7,7 rto:204 rtt:0.9/0.2 mss:1448 pmtu:1500 cwnd:100 bytes_sent:44000000 segs_out:31000 minrtt:0.05
0      0      [::ffff:10.60.0.1]:443  [::ffff:10.60.0.2]:1000
@cubic rtt:1/0.5 mss:1000 cwnd:2
""".replace("@", "\t ")


def test_interfaces_are_counted_by_name():
    counts = interface_counts(DEV)
    assert counts["eth0"] == (5282102, 61020, 186214222, 123021)
    assert counts["wg0"] == (12, 3, 45, 6)


def test_fragments_are_found_by_the_columns_name():
    counts = ip_counts(SNMP)
    assert (counts["FragCreates"], counts["ReasmOKs"]) == (10, 10)


def test_fragments_of_an_ipv6_underlay_are_counted_too():
    assert fragments(SNMP, SNMP6) == (10 + 7, 10 + 3)
    assert fragments(SNMP, "") == (10, 10)


def test_connections_are_read_with_their_figures():
    control, data, tunnel, mapped = connections(SS)
    assert (data.local, data.peer) == ("10.60.0.1:39518", "10.60.0.2:5201")
    assert data.cwnd == 512 * 1337
    assert (data.rtt, data.retransmits, data.reordering, data.sent) == (6.301, 24, 7, 42143577)
    assert (control.retransmits, control.reordering) == (0, 0)
    assert tunnel.local == "10.50.0.1:51820"
    assert mapped.local == "[::ffff:10.60.0.1]:443"
    assert connections("") == []


@pytest.mark.parametrize(
    ("printed", "count"),
    [
        ("Events disabled\nEvents enabled\n4171,,raw_syscalls:sys_enter,2014005,100.00,,\n", 4171),
        ("<not counted>,,raw_syscalls:sys_enter,0,100.00,,\n", 0),
        ("<not supported>,,raw_syscalls:sys_enter,0,100.00,,\n", None),
        ("event syntax error: 'raw_syscalls:sys_enter'\n", None),
        ("", None),
    ],
)
def test_what_perf_counts_is_a_number_and_what_it_cannot_is_none(printed: str, count: int | None):
    assert counted(printed) == count


def test_sizes_fall_into_their_classes_with_the_frames_checksum():
    # 124 + 4 is the last of its class, 125 + 4 the first of the next; 1514 + 4 is a whole packet of 1,500.
    shares = classes({60: 1, 124: 1, 125: 2, 1514: 5, 2047: 1})
    assert len(shares) == len(CLASSES) + 1
    assert shares == pytest.approx([0.2, 0.2, 0.0, 0.0, 0.5, 0.1])
    assert sum(shares) == pytest.approx(1)


def test_a_process_that_has_ended_holds_and_counts_nothing():
    gone = 2**22 + 1  # beyond the largest process number of Linux
    assert (memory([gone]).pss, memory([gone]).rss) == (0, 0)
    assert switches([gone]).voluntary == 0


def passed(inner_bytes: int, inner_packets: int, sent_bytes: int, sent_packets: int) -> TrafficCounts:
    return TrafficCounts(0, inner_bytes, inner_packets, 0, 0, sent_bytes, sent_packets, 0, 0)


def test_super_packets_inside_count_as_what_they_become():
    # One super-packet of 10 x 1,368 bytes and one header of 52 becomes ten of 1,420, each with 60 bytes around it.
    sender, receiver = passed(13_732, 1, 14_800, 10), passed(520, 10, 1_120, 10)
    ten = SizeCounts({1_420: 10}, 13_732, 9, 9 * 52)
    seen = overhead(Collected(sums=totals({"a": sender, "b": receiver}, [ten], 1.0)))
    found = {sample.metric: sample.value for sample in seen.samples}
    assert found["wire_bytes_per_byte"] == pytest.approx((14_800 + 1_120) / (14_200 + 520))
    assert found["wire_packets_per_packet"] == 1.0
    assert seen.notes == {}


def test_a_few_packets_tell_no_overhead():
    seen = overhead(Collected(sums=totals({"a": passed(500, 5, 900, 6), "b": passed(0, 0, 0, 0)}, [], 1.0)))
    assert seen.samples == ()
    assert set(seen.notes) == {"wire_bytes_per_byte", "wire_packets_per_packet"}


@pytest.mark.parametrize("key", [UNKNOWN, UNCOUNTED])
def test_there_is_no_overhead_of_what_was_not_counted(key: str):
    sums = totals({"a": passed(13_732, 10, 14_800, 10)}, [], 1.0) | {UNCOUNTED: 0.0}
    assert overhead(Collected(sums=sums)).samples
    seen = overhead(Collected(sums=sums | {key: 1.0}))
    assert seen.samples == ()
    assert "interface" in seen.notes["wire_bytes_per_byte"] or "refused" in seen.notes["wire_bytes_per_byte"]


def test_an_interface_that_was_created_again_is_known_by_its_index():
    before = replace(passed(500, 5, 900, 6), overlay=7)
    assert passed(900, 9, 1_900, 16).since(passed(500, 5, 900, 6)).overlay == 0
    assert replace(passed(100, 1, 1_900, 16), overlay=8).since(before).overlay != 0
    assert passed(0, 0, 1_900, 16).since(before).overlay != 0, "it is missing"


def test_what_a_card_splits_counts_as_the_packets_on_the_wire():
    # Two super-packets of 10 x 1,448 bytes behind one header of 52, and one bare acknowledgement; all of it was looked at.
    sent = passed(700, 7, 29_116, 3)
    seen = SizeCounts({1_514: 20, 66: 1}, 29_116 + 3 * 14, 18, 18 * 52)
    found = split(sent, [seen], bare=False)
    assert (found.sent_packets, found.sent_bytes) == (21, 29_116 + 18 * 52)
    assert (found.inner_sent_packets, found.inner_sent_bytes) == (7, 700)


def test_without_a_tunnel_inside_is_what_is_outside():
    found = split(passed(29_064, 2, 29_064, 2), [SizeCounts({1_514: 20}, 29_092, 18, 18 * 52)], bare=True)
    assert (found.inner_sent_packets, found.inner_sent_bytes) == (found.sent_packets, found.sent_bytes) == (20, 30_000)


def test_what_was_looked_at_now_and_then_stands_for_all():
    found = split(passed(0, 0, 145_320, 10), [SizeCounts({1_514: 10}, 14_546, 9, 9 * 52)], bare=False)
    assert (found.sent_packets, found.sent_bytes) == (100, 150_000)
    assert split(passed(0, 0, 900, 6), [], bare=False).sent_packets == 6


def test_longer_super_packets_while_sizes_were_counted_do_not_make_more_packets():
    # All: 1,000 packets of 1,500 B and 100 super-packets of 10; counted were 40 of these alone.
    counted = SizeCounts({1_514: 400}, 40 * 14_546, 360, 360 * 52)
    found = split(passed(0, 0, 1_000 * 1_500 + 100 * 14_532, 1_100), [counted], bare=True)
    assert found.sent_packets == pytest.approx(2_000, rel=0.02)
    assert found.sent_bytes / found.sent_packets <= 1_500
