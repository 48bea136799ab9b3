"""The workload `tcp`, read from what iperf3 really printed."""

import json

import pytest
from pydantic import ValidationError

from tunnelmark.errors import OutputUnreadable, WorkloadFailed
from tunnelmark.model.steps import TcpPort
from tunnelmark.workloads.base import Reading
from tunnelmark.workloads.tcp import WORKLOAD, TcpOptions
from unit.workloads.recorded import ends, recorded, series, whole


def options(**chosen: object) -> TcpOptions:
    return TcpOptions.model_validate({"duration": "1 s"} | chosen)


def read(name: str, **chosen: object) -> Reading:
    return WORKLOAD.read(recorded(name), options(**chosen))


class TestWhatItStarts:
    def test_is_a_server_for_one_test_and_a_client(self):
        traffic = WORKLOAD.traffic(ends(), options(duration="3 s"))
        (server,) = traffic.servers
        assert (server.node, traffic.client.node) == ("b", "a")
        assert {"--server", "--one-off", "--json"} <= set(server.argv)
        assert server.ready == TcpPort(5201)
        assert "--client 10.0.0.2 --json" in " ".join(traffic.client.argv)
        assert "--time 3 " in " ".join(traffic.client.argv)

    def test_states_its_congestion_control(self):
        assert WORKLOAD.traffic(ends(), options()).client.argv[-2:] == ("--congestion", "cubic")
        chosen = options(congestion_control="bbr")
        assert WORKLOAD.traffic(ends(), chosen).client.argv[-2:] == ("--congestion", "bbr")

    def test_sends_at_a_rate_in_blocks_of_a_length_if_asked_to(self):
        chosen = options(rate="16384 kbit/s", length="16 KiB", streams=2)
        words = " ".join(WORKLOAD.traffic(ends(), chosen).client.argv)
        assert "--length 16384 --bitrate 16384000 --parallel 2" in words
        assert WORKLOAD.offered(chosen) == 2 * 16384000
        assert not WORKLOAD.metrics_with(chosen)[0].fills, "it is not asked to fill the link"

    def test_else_offers_all_that_it_can(self):
        assert not {"--length", "--bitrate"} & set(WORKLOAD.traffic(ends(), options()).client.argv)
        assert WORKLOAD.offered(options()) is None
        assert WORKLOAD.offered(options(rate="1 Mbit/s", flows="both")) == 2e6
        assert WORKLOAD.offered(options(rate="1 Mbit/s", flows="ring")) is None, "the topology has as many as it has"

    def test_never_lets_iperf3_leave_out_the_warmup(self):
        assert not {"-O", "--omit"} & set(WORKLOAD.traffic(ends(), options()).client.argv)

    def test_has_an_end_whatever_hangs(self):
        traffic = WORKLOAD.traffic(ends(), options(duration="3 s"))
        assert traffic.timeout == 13
        assert "--connect-timeout" in traffic.client.argv
        assert "--idle-timeout" in traffic.servers[0].argv

    @pytest.mark.parametrize("duration", [1, 41])
    def test_bears_a_silence_as_long_as_itself_and_ends_a_dead_stream_within_its_time(self, duration):
        traffic = WORKLOAD.traffic(ends(), options(duration=f"{duration} s"))
        (server,) = traffic.servers
        silence = int(server.argv[server.argv.index("--rcv-timeout") + 1]) / 1000
        assert duration + 4 < silence < traffic.timeout - 2, "its client is then left alone for 2 s"
        assert silence < server.ready_timeout, "it may be waited for so long once its client has ended"

    def test_asks_for_no_longer_timeout_than_iperf3_takes(self):
        (server,) = WORKLOAD.traffic(ends(), options(duration="86400 s")).servers
        assert server.argv[server.argv.index("--rcv-timeout") + 1] == "86400000"

    def test_plans_what_it_measures(self):
        traffic = WORKLOAD.traffic(ends(), options(duration="3 s", warmup="500 ms"))
        assert (traffic.window, traffic.warmup) == (2.5, 0.5)


class TestWhatItReads:
    def test_is_goodput_where_it_arrives_without_the_warmup(self):
        reading = read("tcp-ipv4")
        intervals = [step["sum"] for step in json.loads(recorded("tcp-ipv4")["server"])["intervals"]]
        measured = intervals[3:10]  # 0.3 s to 1.0 s; the eleventh is a stump of milliseconds
        expected = sum(step["bytes"] for step in measured) * 8 / sum(step["seconds"] for step in measured)
        assert whole(reading)["goodput"] == pytest.approx(expected)
        assert 930e6 < expected < 950e6  # of a link of 1 Gbit/s
        assert reading.window == pytest.approx(0.7, abs=0.01)
        assert reading.warmup == pytest.approx(0.3, abs=0.01)

    def test_is_what_the_sender_repeated_and_saw(self):
        values = whole(read("tcp-ipv6"))
        assert values["retransmits"] == 216
        assert values["cwnd"] == pytest.approx(28.3, abs=0.1)
        assert values["rtt"] == pytest.approx(2.1, abs=0.1)

    def test_is_the_share_that_was_sent_again_of_full_segments(self):
        client = json.loads(recorded("tcp-ipv6")["client"])
        sent = [step["streams"][0] for step in client["intervals"][3:10]]
        segments = sum(span["bytes"] for span in sent) / client["start"]["tcp_mss_default"]
        values = whole(read("tcp-ipv6"))
        assert values["retransmit_share"] == pytest.approx(100 * 216 / (216 + segments))

    def test_is_what_the_sender_believes_beside_what_arrived(self):
        sent = [step["sum"] for step in json.loads(recorded("tcp-ipv4")["client"])["intervals"]][3:10]
        expected = sum(step["bytes"] for step in sent) * 8 / sum(step["seconds"] for step in sent)
        assert whole(read("tcp-ipv4"))["sent"] == pytest.approx(expected)

    def test_is_the_extremes_and_the_deviation_that_the_kernel_saw_in_the_window(self):
        spans = [step["streams"][0] for step in json.loads(recorded("tcp-ipv4")["client"])["intervals"]][3:10]
        values = whole(read("tcp-ipv4"))
        assert values["cwnd_max"] == pytest.approx(max(span["snd_cwnd"] for span in spans) / 1024)
        assert values["rtt_min"] == min(span["rtt"] for span in spans) / 1e3
        assert values["rtt_min"] < values["rtt"]
        assert values["rtt_deviation"] == pytest.approx(sum(span["rttvar"] for span in spans) / len(spans) / 1e3)

    def test_is_the_cpu_that_each_side_says_of_itself(self):
        values = whole(read("tcp-ipv4"))
        assert values["sender_cpu"] == pytest.approx(4.855, abs=0.001)
        assert values["receiver_cpu"] == pytest.approx(66.336, abs=0.001)

    def test_counts_repeats_only_inside_of_the_window(self):
        whole_run = json.loads(recorded("tcp-ipv6")["client"])["end"]["sum_sent"]["retransmits"]
        assert whole(read("tcp-ipv6"))["retransmits"] < whole_run

    @pytest.mark.parametrize("metric", ["goodput", "retransmits", "cwnd", "rtt"])
    def test_has_a_value_for_every_tenth_of_a_second(self, metric):
        points = series(read("tcp-ipv4"), metric)
        assert [time for time, _ in points] == pytest.approx([0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6], abs=0.01)

    def test_is_declared(self):
        declared = {metric.name for metric in WORKLOAD.metrics}
        assert {sample.metric for sample in read("tcp-ipv4").samples} == declared

    def test_is_the_congestion_control_of_both_sockets(self):
        assert read("tcp-ipv4").congestion_control == ("cubic", "cubic")


class TestFailure:
    def test_is_told_in_iperf3s_own_words_though_its_exit_code_was_0(self):
        with pytest.raises(WorkloadFailed, match="Connection refused"):
            read("tcp-refused")

    def test_is_a_stream_that_stands_still(self):
        server = json.loads(recorded("tcp-ipv4")["server"])
        for step in server["intervals"][2:]:
            step["streams"][0]["bytes"] = 0
        with pytest.raises(WorkloadFailed, match="not a byte"):
            WORKLOAD.read(recorded("tcp-ipv4") | {"server": json.dumps(server)}, options())


class TestWhatItCannotRead:
    @pytest.mark.parametrize("side", ["client", "server"])
    @pytest.mark.parametrize("text", ["", "\n", "{", "[]", "{}", "iperf3: error - out of memory"])
    def test_is_output_of_another_form(self, side, text):
        with pytest.raises(OutputUnreadable, match=side) as caught:
            WORKLOAD.read(recorded("tcp-ipv4") | {side: text}, options())
        assert caught.value.hint

    @pytest.mark.parametrize("side", ["client", "server"])
    def test_is_output_that_was_cut_short(self, side):
        text = recorded("tcp-ipv4")[side]
        with pytest.raises(OutputUnreadable):
            WORKLOAD.read(recorded("tcp-ipv4") | {side: text[: len(text) // 2]}, options())

    @pytest.mark.parametrize("missing", ["snd_cwnd", "retransmits", "rtt", "sender_tcp_congestion", "intervals"])
    def test_is_output_that_lacks_a_figure(self, missing):
        text = recorded("tcp-ipv4")["client"].replace(f'"{missing}"', '"other"')
        with pytest.raises(OutputUnreadable, match=missing):
            WORKLOAD.read(recorded("tcp-ipv4") | {"client": text}, options())

    def test_is_a_run_that_ended_in_its_warmup(self):
        server = json.loads(recorded("tcp-ipv4")["server"])
        del server["intervals"][3:]
        with pytest.raises(OutputUnreadable, match="no interval"):
            WORKLOAD.read(recorded("tcp-ipv4") | {"server": json.dumps(server)}, options())

    def test_is_a_program_that_printed_nothing_at_all(self):
        with pytest.raises(OutputUnreadable):
            WORKLOAD.read({}, options())


class TestOptions:
    @pytest.mark.parametrize(
        ("wrong", "right"),
        [
            ({"duration": "1500 ms"}, "whole seconds"),
            ({"duration": "0 s"}, "above zero"),
            ({"warmup": "800 ms"}, "half its duration"),
            ({"congestion_control": "cubic; reboot"}, "pattern"),
            ({"parallel": 4}, "not permitted"),
        ],
    )
    def test_that_are_wrong_are_refused(self, wrong, right):
        with pytest.raises(ValidationError, match=right):
            options(**wrong)
