"""The workload `udp`, read from what iperf3 really printed."""

import json
from dataclasses import replace

import pytest
from pydantic import ValidationError

from tunnelmark.errors import OutputUnreadable, TrialVoid, UsageError, WorkloadFailed
from tunnelmark.plan.load_shares import shares
from tunnelmark.workloads.base import Reading
from tunnelmark.workloads.udp import WORKLOAD, UdpOptions
from unit.workloads.recorded import ends, recorded, series, whole


def options(**chosen: object) -> UdpOptions:
    return UdpOptions.model_validate({"duration": "1 s"} | chosen)


def read(name: str, **chosen: object) -> Reading:
    return WORKLOAD.read(recorded(name), options(**chosen))


class TestWhatItStarts:
    def test_sends_datagrams_of_one_length_at_one_rate(self):
        argv = " ".join(WORKLOAD.traffic(ends("200::1", "200::2"), options()).client.argv)
        assert "--client 200::2 " in argv
        assert "--udp --bitrate 100000000 --length 1200 --window 4194304" in argv

    @pytest.mark.parametrize(
        ("chosen", "bare", "bitrate"),
        [
            ({}, True, "0"),
            ({"flood_limit": "1 Gbit/s"}, True, "1000000000"),
            ({"flood_limit": "1 Gbit/s"}, False, "0"),  # the card holds nothing back of what a VPN takes in
        ],
    )
    def test_floods_as_fast_as_it_can_or_up_to_what_the_card_takes(self, chosen, bare, bitrate):
        argv = WORKLOAD.traffic(replace(ends(), bare=bare), options(flood=True, **chosen)).client.argv
        assert argv[argv.index("--bitrate") + 1] == bitrate

    def test_sends_bursts_if_asked_to(self):
        argv = WORKLOAD.traffic(ends(), options(burst=8)).client.argv
        assert argv[argv.index("--bitrate") + 1] == "100000000/8"

    def test_leaves_the_length_to_iperf3_where_datagrams_are_to_fit(self):
        assert "--length" not in WORKLOAD.traffic(ends(), options(fit=True)).client.argv

    def test_asks_for_no_larger_buffer_than_the_host_allows(self):
        argv = " ".join(WORKLOAD.traffic(ends(socket_buffer=212992), options()).client.argv)
        assert "--window 212992" in argv

    def test_fits_into_the_smallest_inner_mtu(self):
        ipv6_and_udp = 40 + 8
        assert options().length + ipv6_and_udp <= 1280


class TestWhatItReads:
    def test_is_what_was_delivered_without_the_warmup(self):
        reading = read("udp-ipv4")
        assert whole(reading)["delivered"] == pytest.approx(100e6, rel=0.01)
        assert whole(reading)["lost"] == 0
        assert reading.window == pytest.approx(0.8, abs=0.01)
        assert reading.warmup == pytest.approx(0.2, abs=0.01)
        assert reading.congestion_control == ()

    @pytest.mark.parametrize(("late", "moved"), [(0.6, True), (0.6, False)], ids=["a long path", "a slow start"])
    def test_is_of_the_time_in_which_the_client_sent(self, late: float, moved: bool):
        """Over a long path the server's clock is a round trip early; what a VPN held back at first is still missing."""
        outputs = recorded("udp-ipv4")
        server = json.loads(outputs["server"])
        steps = server["intervals"]
        silent = [dict(step["streams"][0], bytes=0, packets=0, lost_packets=0) for step in steps[: round(10 * late)]]
        if moved:
            for step in steps:
                stream = step["streams"][0]
                stream["start"], stream["end"] = stream["start"] + late, stream["end"] + late
            server["intervals"] = [{"streams": [one]} for one in silent] + steps
        else:
            server["intervals"] = [{"streams": [one]} for one in silent] + steps[len(silent) :]
        reading = WORKLOAD.read(outputs | {"server": json.dumps(server)}, options())
        share = 1.0 if moved else 1 - (late - 0.2) / 0.8
        assert whole(reading)["delivered"] == pytest.approx(share * 100e6, rel=0.02)

    def test_is_the_receivers_rate_though_iperf3_puts_the_senders_first(self):
        assert json.loads(recorded("udp-ipv6-loss")["client"])["end"]["sum"]["bits_per_second"] > 79e6
        assert whole(read("udp-ipv6-loss", rate="80 Mbit/s"))["delivered"] == pytest.approx(47.5e6, rel=0.01)

    def test_is_the_length_that_iperf3_chose(self):
        client = json.loads(recorded("udp-ipv4")["client"])
        client["start"]["test_start"]["blksize"] = 600
        half = WORKLOAD.read(recorded("udp-ipv4") | {"client": json.dumps(client)}, options(fit=True))
        assert whole(half)["length"] == 600
        assert whole(half)["offered"] == whole(read("udp-ipv4"))["offered"] / 2
        assert whole(read("udp-ipv4", length="1100 B"))["length"] == 1100

    def test_is_the_share_that_is_missing(self):
        # 47.5 of 80 Mbit/s arrived
        assert whole(read("udp-ipv6-loss", rate="80 Mbit/s"))["lost"] == pytest.approx(100 * (1 - 47.54 / 80), abs=0.3)

    def test_is_right_where_packets_come_back_in_disorder(self):
        # Counts below zero are printed as 2^64 less themselves. 4,441 + 5,347 datagrams came before the warm-up's end.
        assert "18446744073709551578" in recorded("udp-reordered")["server"]
        values = whole(read("udp-reordered", flood=True, duration="1 s"))
        assert values["lost"] == pytest.approx(100 * (1 - (54600 - 4441 - 5347) / (301300 - 28764 - 27088)), abs=0.01)

    def test_counts_what_was_lost_after_the_last_arrival(self):
        client = json.loads(recorded("udp-ipv4")["client"])
        client["end"]["sum_sent"]["packets"] += 1000
        values = whole(WORKLOAD.read(recorded("udp-ipv4") | {"client": json.dumps(client)}, options()))
        assert values["lost"] == pytest.approx(100 * 1000 / (8300 + 1000), rel=0.02)

    def test_is_jitter_and_disorder(self):
        values = whole(read("udp-ipv6-loss", rate="80 Mbit/s"))
        assert values["jitter"] == pytest.approx(0.31, abs=0.01)
        assert values["out_of_order"] == 0

    @pytest.mark.parametrize("metric", ["delivered", "lost", "jitter"])
    def test_has_a_value_for_every_tenth_of_a_second(self, metric):
        points = series(read("udp-ipv6-loss", rate="80 Mbit/s"), metric)
        assert [time for time, _ in points] == pytest.approx([0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7], abs=0.01)

    def test_is_declared(self):
        declared = {metric.name for metric in WORKLOAD.metrics}
        assert {sample.metric for sample in read("udp-ipv4").samples} == declared

    def test_is_judged_by_what_arrives_and_what_is_lost(self):
        assert [metric.name for metric in WORKLOAD.metrics if metric.primary] == ["delivered", "lost"]


class TestFailure:
    def test_of_the_path_is_told_in_the_words_of_both_sides(self):
        with pytest.raises(WorkloadFailed, match=r"Broken pipe.*idle timeout"):
            read("udp-dies")

    @pytest.mark.parametrize("lost", ["opening", "answer"])
    def test_to_open_the_stream_says_nothing_of_the_path(self, lost: str):
        with pytest.raises(TrialVoid, match="never began"):
            read(f"udp-{lost}-lost")

    def test_is_not_a_sender_that_fell_short_which_is_told_beside_what_arrived(self):
        reading = read("udp-ipv4", rate="200 Mbit/s")
        assert reading.starved == "the sender offered only 100 of 200 Mbit/s"
        values = whole(reading)
        assert values["shortfall"] == pytest.approx(50, abs=0.1)
        assert values["delivered"] > 0
        assert read("udp-ipv4").starved == ""

    def test_is_a_window_without_a_datagram(self):
        server = json.loads(recorded("udp-ipv4")["server"])
        for step in server["intervals"][1:]:
            step["streams"][0]["bytes"] = 0
        with pytest.raises(WorkloadFailed, match="not a datagram"):
            WORKLOAD.read(recorded("udp-ipv4") | {"server": json.dumps(server)}, options())


class TestWhatItCannotRead:
    @pytest.mark.parametrize("side", ["client", "server"])
    def test_is_output_that_was_cut_short(self, side):
        text = recorded("udp-ipv4")[side]
        with pytest.raises(OutputUnreadable, match=side):
            WORKLOAD.read(recorded("udp-ipv4") | {side: text[: len(text) // 2]}, options())

    @pytest.mark.parametrize("missing", ["lost_packets", "jitter_ms", "out_of_order"])
    def test_is_output_that_lacks_a_figure(self, missing):
        text = recorded("udp-ipv4")["server"].replace(f'"{missing}"', '"other"')
        with pytest.raises(OutputUnreadable, match=missing):
            WORKLOAD.read(recorded("udp-ipv4") | {"server": text}, options())

    def test_is_more_received_than_was_sent(self):
        client = json.loads(recorded("udp-ipv4")["client"])
        client["end"]["sum_sent"]["packets"] = 1
        with pytest.raises(OutputUnreadable, match="of 1 that it sent"):
            WORKLOAD.read(recorded("udp-ipv4") | {"client": json.dumps(client)}, options())

    def test_is_output_of_tcp(self):
        with pytest.raises(OutputUnreadable):
            read("tcp-ipv4")


class TestOptions:
    @pytest.mark.parametrize(
        ("wrong", "right"),
        [
            ({"rate": "-5 Mbit/s"}, "a rate above zero"),
            ({"rate": 5}, "a rate above zero"),
            ({"length": "8 B"}, "greater than or equal to 16"),
            ({"length": "1 MiB"}, "less than or equal to 65507"),
            ({"warmup": "900 ms"}, "half its duration"),
        ],
    )
    def test_that_are_wrong_are_refused(self, wrong, right):
        with pytest.raises(ValidationError, match=right):
            options(**wrong)

    def test_may_offer_a_share_of_the_link(self):
        chosen = options(rate="30 %")
        assert chosen.model_dump(mode="json")["rate"] == "30 %"
        with pytest.raises(UsageError, match=r"a share of a link's rate .30 %., and that rate is not known"):
            WORKLOAD.offered(chosen)

    def test_does_not_judge_what_a_flood_loses(self):
        """As it was read: VPNs were ranked by it, of which one was handed four times as many datagrams as another."""
        judged = {
            of: [each.name for each in WORKLOAD.metrics_with(options(flood=of)) if each.primary] for of in (True, False)
        }
        assert judged == {True: ["delivered"], False: ["delivered", "lost"]}

    def test_may_hold_a_flood_to_the_rate_of_the_link(self):
        assert shares(options(flood=True, flood_limit="100 %")) == {"flood_limit": 1}
        with pytest.raises(ValidationError, match="flood_limit is of a flood only"):
            options(flood_limit="100 %")
        with pytest.raises(ValidationError, match="burst is of a rate only"):
            options(flood=True, burst=8)

    @pytest.mark.parametrize("wrong", ["0 %", "120 %"])
    def test_cannot_offer_a_share_that_is_none(self, wrong):
        with pytest.raises(ValidationError, match="share"):
            options(rate=wrong)

    def test_are_written_as_they_are_read(self):
        chosen = options(rate="20 Mbit/s", duration="90 s")
        assert chosen.model_dump(mode="json")["rate"] == "20 Mbit/s"
        assert options(**chosen.model_dump(mode="json")) == chosen
