"""What the kernel prints where packets are lost or wait, as it printed it (Linux 6.18, iproute2 6.1), read back."""

from __future__ import annotations

import pytest

from tunnelmark.run.collectors import _proc, _streams, limits

SS = """\
0      2668544 10.60.0.1:37432 10.60.0.2:40255
\t bbr wscale:0,10 rto:228 rtt:25.345/7.194 mss:2048 pmtu:65535 rcvmss:536 advmss:65483 cwnd:12 ssthresh:94 bytes_sent:149504\
 bytes_retrans:6144 bytes_acked:139265 segs_out:75 segs_in:38 data_segs_out:73 bbr:(bw:1625000bps,mrtt:0.027,pacing_gain:1.25,\
cwnd_gain:2) send 7757270bps lastsnd:12 lastrcv:868 lastack:12 pacing_rate 2010936bps delivery_rate 1557336bps delivered:72\
 busy:856ms rwnd_limited:664ms(77.6%) unacked:2 retrans:0/3 dsack_dups:3 rcv_space:65495 rcv_ssthresh:65495 notsent:2664448\
 minrtt:0.027 snd_wnd:4096
4096   0       [::ffff:10.60.0.1]:40255 [::ffff:10.60.0.2]:37432
\t bbr wscale:10,0 rto:200 rtt:0.019/0.009 ato:64 mss:32768 cwnd:10 bytes_received:143360 segs_out:37 send 137970526316bps\
 lastsnd:868 lastrcv:12 lastack:12 pacing_rate 394299253656bps delivered:1 app_limited rcv_rtt:1 rcv_space:6144 minrtt:0.019
0      0       10.50.0.1:655 10.50.0.2:40000
\t cubic bytes_sent:5000 busy:1ms
"""


def test_what_a_stream_waited_for_is_read_and_the_vpn_s_own_tcp_is_another_s() -> None:
    found = _proc.streams(SS, ["10.60.0.1"])
    assert [ends[1] for ends in found] == ["10.60.0.2:40255", "[::ffff:10.60.0.2]:37432"]
    sender, receiver = found.values()
    assert sender == _proc.Stream(149504, 0.856, 0.664, 0.0, 1557336.0)
    assert receiver == _proc.Stream(0, 0.0, 0.0, 0.0, 0.0)


def test_a_delivery_rate_may_have_a_prefix() -> None:
    (stream,) = _proc.streams("0 0 10.0.0.1:1 10.0.0.2:2\n\t cubic delivery_rate 1.25Gbps\n", ["10.0.0.1"]).values()
    assert stream.rate == 1.25e9


def test_full_buffers_are_counted_of_both_families() -> None:
    snmp = (
        "Tcp: RtoAlgorithm RtoMin\nTcp: 1 200\n"
        "Udp: InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors SndbufErrors InCsumErrors IgnoredMulti MemErrors\n"
        "Udp: 2844 21 3748 6877 3748 7 0 0 0\nUdpLite: InDatagrams\nUdpLite: 0\n"
    )
    assert _proc.udp_errors(snmp) == (3748, 7)
    assert _proc.udp_errors(
        "Udp6OutDatagrams   \t1880\nUdp6RcvbufErrors                \t202\nUdp6SndbufErrors \t0\n"
    ) == (202, 0)
    assert _proc.udp_errors("") == (0, 0)


def test_what_each_udp_socket_dropped_is_told_by_its_inode() -> None:
    text = (
        "   sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer drops            \n"
        " 3670: 00000000:DAE2 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 184415 2 0000000097f9b595 0        \n"
        "12019: 0100007F:BB7F 00000000:0000 07 00000000:00001B00 00:00000000 00000000     0        0 184414 2 00000000e70bf7d4 47       \n"
    )
    assert _proc.udp_drops(text) == {"184415": 0, "184414": 47}


def test_the_columns_of_interfaces_are_the_right_ones() -> None:
    text = (
        "Inter-|   Receive                                                |  Transmit\n"
        " face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed\n"
        "  eth0: 31808209    8794    0    5    0     0          0         0 41808209    9794    0    3    0     0       0          0\n"
    )
    assert _proc.devices(text) == {"eth0": _proc.Device(31808209, 8794, 5, 41808209, 9794, 3)}


def test_rest_and_steal_are_seconds_by_core() -> None:
    text = "cpu  1 2 3 4 5 6 7 8 0 0\ncpu0 100 0 50 2952 9 0 617 49 0 0\nintr 5\n"
    assert _proc.idle(text, 100) == {0: (pytest.approx(29.61), 0.49)}


@pytest.mark.parametrize(
    ("text", "quota"),
    [
        (
            "nr_periods 15629\nnr_throttled 2144\nthrottled_time 51940762395\nnr_bursts 0\n",
            _proc.Quota(51.940762395, 15629, 2144),
        ),
        ("usage_usec 5\nnr_periods 4\nnr_throttled 3\nthrottled_usec 2500000\n", _proc.Quota(2.5, 4, 3)),
        ("usage_usec 5\n", _proc.Quota()),
    ],
)
def test_how_long_a_quota_held_a_group_back_is_read_of_both_versions(text: str, quota: _proc.Quota) -> None:
    assert _proc.quota(text) == quota


def test_a_quota_that_is_used_up_in_every_period_leaves_no_rest_whenever_its_time_is_booked() -> None:
    assert _proc.Quota(0.4, 15, 15).ran_out(_proc.Quota(0.0, 10, 10)) == 1.0
    assert _proc.Quota(0.4, 15, 12).ran_out(_proc.Quota(0.0, 10, 10)) == pytest.approx(0.4)
    assert _proc.Quota().ran_out(_proc.Quota()) == 0.0


def test_the_time_in_which_a_group_had_work_and_no_core_is_read() -> None:
    text = "some avg10=0.00 avg60=0.00 avg300=0.00 total=38903\nfull avg10=0.00 avg60=1.50 avg300=0.00 total=2019194\n"
    assert _proc.stalled(text) == 2.019194
    assert _proc.stalled("some avg10=0.00 avg60=0.00 avg300=0.00 total=38903\n") == 0.0, "before Linux 5.13"


class TestStreams:
    """What TCP had to send counts from when there was a stream: on a busy machine a program begins late."""

    def stream(self, sent: int, busy: float) -> _proc.Stream:
        return _proc.Stream(sent, busy, 0.0, 0.0, 0.0)

    def test_traffic_runs_from_its_first_to_its_last_share_of_note(self) -> None:
        assert _streams.running([0.0, 0.3, 90.0, 0.0, 5.0, 0.2]) == slice(2, 5)
        assert _streams.running([5.0, 5.0]) == slice(0, 2)
        assert _streams.running([0.0, 0.0]) == slice(None)
        assert _streams.running([]) == slice(None)

    def test_a_stream_that_begins_late_was_busy_all_the_time_that_it_had(self) -> None:
        early, late = {("a", "b"): self.stream(10, 0.1)}, {("a", "b"): self.stream(1000, 1.1)}
        assert _streams.busy([(2.0, early), (3.0, late)], late, 1.9, 0.2) == pytest.approx(1.0)

    def test_a_stream_that_is_seen_once_counts_from_when_traffic_began(self) -> None:
        seen = {("a", "b"): self.stream(1000, 0.6)}
        assert _streams.busy([(3.0, seen)], seen, 2.0, 0.2) == pytest.approx(0.6)

    def test_what_a_programs_ends_say_before_and_after_the_traffic_is_not_of_its_time(self) -> None:
        talk, data = ("a", "b"), ("c", "d")
        looks = [
            (1.0, {talk: self.stream(300, 0.1)}),  # parameters, over a path of a second
            (2.0, {talk: self.stream(300, 0.2), data: self.stream(37, 0.0)}),
            (4.0, {talk: self.stream(300, 0.2), data: self.stream(1_000_000, 2.0)}),
            (8.0, {talk: self.stream(300, 0.2), data: self.stream(5_000_000, 5.9)}),
            (11.0, {talk: self.stream(900, 0.9), data: self.stream(5_000_000, 6.0)}),  # results
        ]
        assert _streams.busy(looks, looks[-1][1], 0.5, 0.2) == pytest.approx(3.9 / 4, abs=0.01)

    def test_streams_count_by_what_they_sent(self) -> None:
        first = {("a", "b"): self.stream(100, 1.0), ("a", "c"): self.stream(1, 0.0)}
        last = {("a", "b"): self.stream(900, 2.0), ("a", "c"): self.stream(100, 0.0)}
        assert _streams.busy([(1.0, first), (2.0, last)], last, 0.0, 0.2) == pytest.approx(0.9)


def test_what_an_interface_has_counted_since_it_was_created_again_is_no_loss() -> None:
    """As it was, all that a restarted VPN had handed over before was said to be lost inside of it."""
    before = {
        "got_target": 0.0,
        "got_size_target": 0.0,
        "sent_source": 0.0,
        "overlay_source": 4.0,
        "overlay_target": 4.0,
    }
    after = before | {"got_target": 900.0, "got_size_target": 9e5, "sent_source": 1000.0}
    assert limits._counted(before, after) == {"got_target": 900.0, "got_size_target": 9e5, "sent_source": 1000.0}
    assert limits._counted(before, after | {"overlay_target": 5.0}) == {"sent_source": 1000.0}
    assert limits._counted(before, after | {"overlay_target": 0.0}) == {"sent_source": 1000.0}, "it is missing"
