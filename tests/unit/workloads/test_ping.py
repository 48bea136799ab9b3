"""The workload `ping`, read from what ping really printed."""

import statistics

import pytest
from pydantic import ValidationError

from tunnelmark.errors import OutputUnreadable, WorkloadFailed
from tunnelmark.workloads.base import Reading
from tunnelmark.workloads.ping import WORKLOAD, PingOptions
from unit.workloads.recorded import ends, recorded, series, whole


def options(**chosen: object) -> PingOptions:
    return PingOptions.model_validate(chosen)


def read(name: str, **chosen: object) -> Reading:
    return WORKLOAD.read(recorded(name), options(duration="1 s", **chosen))


class TestWhatItStarts:
    def test_is_one_ping_on_the_source(self):
        traffic = WORKLOAD.traffic(ends(), options())
        assert traffic.servers == ()
        assert traffic.client.node == "a"
        assert traffic.client.argv == ("sh", "-c", "ping -n -D -i 0.01 -w 2 -s 56 10.0.0.2")

    def test_is_one_ping_after_the_other_for_several_sizes(self):
        script = WORKLOAD.traffic(ends("200::1", "200::2"), options(sizes=[56, 1200], interval="20 ms")).client.argv[2]
        assert script == "ping -n -D -i 0.02 -w 2 -s 56 200::2; ping -n -D -i 0.02 -w 2 -s 1200 200::2"

    def test_has_an_end(self):
        traffic = WORKLOAD.traffic(ends(), options(sizes=[56, 1200], duration="3 s"))
        assert traffic.window == 6
        assert traffic.warmup == 0
        assert 6 < traffic.timeout < 20


class TestWhatItReads:
    def test_is_the_distribution_of_round_trip_times(self):
        reading = read("ping-ipv4", interval="20 ms")
        values = whole(reading)
        times = [value for _, value in series(reading, "rtt")]
        assert values["rtt_median"] == pytest.approx(statistics.median(times))
        assert values["rtt_mean"] == pytest.approx(statistics.fmean(times))
        assert values["rtt_max"] == max(times)
        assert values["rtt_median"] <= values["rtt_p90"] <= values["rtt_p99"] <= values["rtt_max"]
        assert values["loss"] == 0
        assert reading.window == 1.0

    def test_is_a_failure_where_an_error_ended_it_early(self):
        text = "PING 10.77.0.2 (10.77.0.2) 1440(1468) bytes of data.\n"
        answer = "[1795294649.60] 1448 bytes from 10.77.0.2: icmp_seq=1 ttl=64 time=0.028 ms\n"
        error = "[1795294649.62] From 10.77.0.1 icmp_seq=2 Frag needed and DF set (mtu = 1437)\n"
        end = "\n2 packets transmitted, 1 received, +1 errors, 50% packet loss, time 20ms\n"
        with pytest.raises(WorkloadFailed, match=r"ended after 0.0 of 1 s, because an error came back: Frag needed"):
            WORKLOAD.read({"client": text + answer + error + end}, options(duration="1 s", sizes=[1440]))
        late = end.replace("20ms", "980ms")
        assert whole(WORKLOAD.read({"client": text + answer + error + late}, options(duration="1 s", sizes=[1440])))

    def test_is_a_failure_where_an_error_ended_it_in_its_second_half(self):
        answers = "".join(
            f"[{1795294649 + n / 100:.6f}] 64 bytes from 10.77.0.2: icmp_seq={n} ttl=64 time=0.028 ms\n"
            for n in range(1, 121)
        )
        text = (
            f"PING 10.77.0.2 (10.77.0.2) 56(84) bytes of data.\n{answers}"
            "[1795294650.21] From 10.77.0.1 icmp_seq=121 Destination Host Unreachable\n"
            "\n121 packets transmitted, 120 received, +1 errors, 0.826446% packet loss, time 1200ms\n"
        )
        with pytest.raises(WorkloadFailed, match=r"ended after 1.2 of 2 s, because an error came back: Destination"):
            WORKLOAD.read({"client": text}, options(duration="2 s"))
        whole_run = text.replace("time 1200ms", "time 1980ms")
        assert whole(WORKLOAD.read({"client": whole_run}, options(duration="2 s")))["loss"] > 0

    def test_loss_is_a_share_of_the_probes_whose_answers_were_waited_for(self):
        """The first answer came after a second, so a probe of the last second could be on its way: it counts neither as lost nor as answered."""
        sent = {n: 1795294649 + (n - 1) / 10 for n in range(1, 21)}
        times = dict.fromkeys(sent, 0.0001) | {1: 1.0}
        lost = (5, 15)
        answers = "".join(
            f"[{sent[n] + times[n]:.6f}] 64 bytes from 10.77.0.2: icmp_seq={n} ttl=64 time={1e3 * times[n]:.1f} ms\n"
            for n in sent
            if n not in lost
        )
        text = (
            f"PING 10.77.0.2 (10.77.0.2) 56(84) bytes of data.\n{answers}"
            "\n20 packets transmitted, 18 received, 10% packet loss, time 1900ms\n"
        )
        reading = WORKLOAD.read({"client": text}, options(duration="2 s", interval="100 ms"))
        assert whole(reading)["loss"] == pytest.approx(10.0), "one of the ten that were sent in the first second"

    def test_agrees_with_what_ping_itself_says(self):
        reading = read("ping-loss", sizes=[1400])  # ping: rtt min/avg/max/mdev = 0.020/97.205/119.723/33.101 ms
        assert whole(reading)["rtt_mean"] == pytest.approx(97.205, rel=0.01)
        assert whole(reading)["rtt_max"] == pytest.approx(119.723, rel=0.01)
        assert whole(reading)["rtt_min"] == pytest.approx(0.020)
        assert whole(reading)["rtt_deviation"] == pytest.approx(33.101, rel=0.01)

    def test_is_every_probe_at_the_time_when_it_was_sent(self):
        times = [time for time, _ in series(read("ping-ipv4", interval="20 ms"), "rtt")]
        assert times[0] == 0
        assert times == sorted(times)
        assert 0.9 < times[-1] < 1.0

    def test_bears_the_size_in_its_names_when_there_are_several(self):
        reading = read("ping-ipv6-sizes", sizes=[56, 1400])
        assert whole(reading)["rtt_median_56"] > 0
        assert whole(reading)["rtt_median_1400"] > 0
        assert "rtt_median" not in whole(reading)
        assert reading.window == pytest.approx(2.0, abs=0.1)
        assert min(time for time, _ in series(reading, "rtt_1400")) >= 0.9

    @pytest.mark.parametrize(("name", "sizes"), [("ping-ipv4", [56]), ("ping-ipv6-sizes", [56, 1400])])
    def test_is_declared(self, name, sizes):
        declared = {metric.name for metric in WORKLOAD.metrics_with(options(sizes=sizes))}
        assert {sample.metric for sample in read(name, sizes=sizes).samples} == declared

    def test_is_judged_by_the_median(self):
        assert [metric.name for metric in WORKLOAD.metrics if metric.primary] == ["rtt_median"]
        several = WORKLOAD.metrics_with(options(sizes=[56, 1400]))
        assert [metric.name for metric in several if metric.primary] == ["rtt_median_56", "rtt_median_1400"]


class TestLoss:
    def test_is_counted(self):
        # 67 sent, 18 answered; the last 8 were sent less than the slowest answer (120 ms) before the end.
        assert whole(read("ping-loss", sizes=[1400]))["loss"] == pytest.approx(100 * 41 / 59)

    def test_is_not_what_was_still_under_way_at_the_end(self):
        assert whole(read("ping-in-flight", sizes=[1400]))["loss"] == 0

    def test_is_counted_to_the_end_when_the_path_dies(self):
        assert whole(read("ping-dies"))["loss"] == pytest.approx(100 * 12 / 33)

    def test_of_everything_is_a_failure(self):
        with pytest.raises(WorkloadFailed, match="no answer"):
            read("ping-unanswered")

    def test_of_everything_of_one_size_names_the_size(self):
        second = recorded("ping-ipv4")["client"].replace(" 56(84) ", " 1000(1028) ")
        with pytest.raises(WorkloadFailed, match="no answer at all with 56 bytes"):
            WORKLOAD.read(
                {"client": recorded("ping-unanswered")["client"] + second}, options(duration="1 s", sizes=[56, 1000])
            )


class TestWhatItCannotRead:
    @pytest.mark.parametrize("keep", [0, 40, 500])
    def test_is_output_that_was_cut_short(self, keep):
        with pytest.raises(OutputUnreadable) as caught:
            WORKLOAD.read({"client": recorded("ping-ipv4")["client"][:keep]}, options())
        assert caught.value.hint

    def test_is_output_that_lacks_answers(self):
        lines = recorded("ping-ipv4")["client"].splitlines(keepends=True)
        with pytest.raises(OutputUnreadable):
            WORKLOAD.read({"client": "".join(lines[:3] + lines[5:])}, options())

    def test_is_another_size_than_was_asked_for(self):
        with pytest.raises(OutputUnreadable):
            read("ping-ipv4", sizes=[57])

    def test_is_not_an_answer_that_came_twice(self):
        text = recorded("ping-ipv4")["client"]
        answer = next(line for line in text.splitlines() if "icmp_seq=2 " in line)
        text = text.replace(answer, f"{answer}\n{answer} (DUP!)").replace("received,", "received, +1 duplicates,")
        assert WORKLOAD.read({"client": text}, options(duration="1 s")) == read("ping-ipv4")


class TestOptions:
    @pytest.mark.parametrize(
        ("wrong", "right"),
        [
            ({"interval": "5 ms"}, "'10 ms' or more"),
            ({"interval": "fast"}, "a duration above zero"),
            ({"duration": "1.5 s"}, "whole seconds"),
            ({"sizes": []}, "at least 1 item"),
            ({"sizes": [8]}, "greater than or equal to 16"),
            ({"sizes": [56, 56]}, "once"),
            ({"duration": "700 s"}, "fewer than 65536"),
            ({"size": 56}, "not permitted"),
        ],
    )
    def test_that_are_wrong_are_refused(self, wrong, right):
        with pytest.raises(ValidationError, match=right):
            options(**wrong)

    def test_are_written_as_they_are_read(self):
        chosen = options(sizes=[56, 1400], duration="90 s")
        assert options(**chosen.model_dump(mode="json")) == chosen
