"""The workload `mtu`, read from what the search and iperf3 really printed."""

import json

import pytest
from pydantic import ValidationError

from tunnelmark.errors import OutputUnreadable, WorkloadFailed
from tunnelmark.workloads.base import Reading
from tunnelmark.workloads.mtu import WORKLOAD, MtuOptions
from unit.workloads.recorded import ends, recorded, whole


def options(**chosen: object) -> MtuOptions:
    return MtuOptions.model_validate(chosen)


def read(name: str) -> Reading:
    return WORKLOAD.read(recorded(name), options(sizes=[576]))


def stalled(name: str, server: str) -> dict[str, str]:
    """Recorded output of which one server received nothing after the first 0.3 s."""
    outputs = recorded(name)
    said = json.loads(outputs[server])
    for step in said["intervals"][3:]:
        step["streams"][0]["bytes"] = 0
    return outputs | {server: json.dumps(said)}


class TestWhatItStarts:
    def test_is_a_search_and_then_a_stream_for_each_size(self):
        traffic = WORKLOAD.traffic(ends(), options(sizes=[576, 1000], duration="2 s"))
        assert [one.name for one in traffic.servers] == ["answers", "server", "server_576", "server_1000"]
        shell, dash, script = traffic.client.argv
        assert (shell, dash) == ("sh", "-c")
        search, free, small, medium = script.split(" && ")
        assert search == "tunnelmark-probe mtu --to 10.0.0.2:5211"
        assert free.endswith("--port 5212 --time 2 --connect-timeout 3000 --congestion cubic")
        assert small.endswith("--port 5213 --time 2 --connect-timeout 3000 --congestion cubic --set-mss 536")
        assert medium.endswith("--set-mss 960")
        assert all(one.long_running for one in traffic.servers), "those to whom no client came must end, too"

    def test_leaves_room_for_the_headers_of_ipv6(self):
        script = WORKLOAD.traffic(ends("200::1", "200::2"), options(sizes=[1280])).client.argv[2]
        assert script.startswith("tunnelmark-probe mtu --to '[200::2]:5211'")
        assert script.endswith("--set-mss 1220")

    def test_has_time_for_streams_that_all_stall_until_their_servers_give_up(self):
        traffic = WORKLOAD.traffic(ends(), options(sizes=[576, 1000], duration="4 s"))
        streams = [one.argv for one in traffic.servers if one.name != "answers"]
        silences = [int(argv[argv.index("--rcv-timeout") + 1]) / 1000 for argv in streams]
        assert min(silences) > 4 + 4
        assert traffic.timeout > sum(silences) + 20

    def test_has_an_end(self):
        traffic = WORKLOAD.traffic(ends(), options())
        assert traffic.window == 3
        assert traffic.window < traffic.timeout < 60


class TestWhatItReads:
    def test_is_the_interface_s_own_mtu_where_nothing_else_stops_packets(self):
        values = whole(read("mtu-local"))
        assert values["mtu"] == values["interface"] == 1300
        assert values["black_hole"] == 0
        assert values["mss"] == 1300 - 40 - 12

    def test_is_the_path_s_where_somebody_says_that_packets_are_too_big(self):
        values = whole(read("mtu-icmp"))
        assert (values["mtu"], values["interface"], values["black_hole"]) == (1437, 1500, 0)
        assert values["mss"] == 1437 - 40 - 12

    def test_is_a_black_hole_where_nobody_says_anything(self):
        values = whole(read("mtu-black-hole"))
        assert (values["mtu"], values["interface"], values["black_hole"]) == (1404, 1500, 1)

    def test_is_goodput_as_the_receiver_counts_it(self):
        outputs = recorded("mtu-local")
        values = whole(read("mtu-local"))
        for metric, server in (("goodput", "server"), ("goodput_576", "server_576")):
            said = json.loads(outputs[server])["end"]["sum_received"]["bits_per_second"]
            assert values[metric] == pytest.approx(said, rel=0.3)  # that has the slow start in it
        assert read("mtu-local").congestion_control == ("cubic", "cubic")

    def test_is_no_goodput_where_a_black_hole_swallowed_the_stream(self):
        outputs = recorded("mtu-black-hole")
        search, *_ = outputs["client"].split("\n", 1)
        dead = json.dumps({"error": "error - control socket has closed unexpectedly"})
        values = whole(WORKLOAD.read({**outputs, "client": "\n".join([search, dead, dead])}, options(sizes=[576])))
        assert values["goodput"] == values["goodput_576"] == 0

    @pytest.mark.parametrize(("name", "server"), [("mtu-local", "server"), ("mtu-local", "server_576")])
    def test_is_a_failure_where_nothing_arrived_and_nothing_swallows_packets(self, name, server):
        with pytest.raises(WorkloadFailed, match=r"not a byte arrived in 0\.\d s of the stream"):
            WORKLOAD.read(stalled(name, server), options(sizes=[576]))

    def test_is_no_goodput_where_a_black_hole_held_the_stream_without_an_error(self):
        assert whole(WORKLOAD.read(stalled("mtu-black-hole", "server"), options(sizes=[576])))["goodput"] == 0

    @pytest.mark.parametrize("name", ["mtu-local", "mtu-icmp", "mtu-black-hole"])
    def test_is_declared(self, name):
        declared = {metric.name for metric in WORKLOAD.metrics_with(options(sizes=[576]))}
        assert {sample.metric for sample in read(name).samples} == declared


class TestWhatItCannotRead:
    @pytest.mark.parametrize("keep", [20, 250, 3000])
    def test_is_output_that_was_cut_short(self, keep):
        outputs = recorded("mtu-local")
        with pytest.raises(OutputUnreadable) as caught:
            WORKLOAD.read({**outputs, "client": outputs["client"][:keep]}, options(sizes=[576]))
        assert caught.value.hint

    def test_is_a_search_that_found_nothing(self):
        with pytest.raises(WorkloadFailed, match="found none"):
            WORKLOAD.read({**recorded("mtu-local"), "client": ""}, options(sizes=[576]))

    def test_is_a_search_that_says_something_else(self):
        outputs = recorded("mtu-local")
        wrong = outputs["client"].replace('"above":"local"', '"above":"elsewhere"')
        with pytest.raises(OutputUnreadable, match="above"):
            WORKLOAD.read({**outputs, "client": wrong}, options(sizes=[576]))

    def test_is_a_server_that_printed_nothing(self):
        with pytest.raises(OutputUnreadable, match="printed nothing"):
            WORKLOAD.read({**recorded("mtu-local"), "server_576": ""}, options(sizes=[576]))

    def test_is_a_stream_that_failed_without_a_black_hole(self):
        outputs = recorded("mtu-local")
        search, *_ = outputs["client"].split("\n", 1)
        dead = json.dumps({"error": "unable to connect to server"})
        with pytest.raises(WorkloadFailed, match="unable to connect"):
            WORKLOAD.read({**outputs, "client": "\n".join([search, dead, dead])}, options(sizes=[576]))


class TestOptions:
    @pytest.mark.parametrize(
        ("wrong", "right"),
        [
            ({"sizes": [500]}, "greater than or equal to 576"),
            ({"sizes": [65535]}, "less than or equal to 9000"),
            ({"sizes": [1000, 1000]}, "once"),
            ({"warmup": "1 s"}, "at most half its duration"),
            ({"duration": "1.5 s"}, "whole seconds"),
            ({"size": 1000}, "not permitted"),
        ],
    )
    def test_that_are_wrong_are_refused(self, wrong, right):
        with pytest.raises(ValidationError, match=right):
            options(**wrong)

    def test_may_name_no_size(self):
        names = {metric.name for metric in WORKLOAD.metrics_with(options(sizes=[]))}
        assert names == {"mtu", "black_hole", "interface", "mss", "goodput"}
