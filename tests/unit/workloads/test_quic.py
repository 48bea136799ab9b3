"""The workload `quic`, read from what tunnelmark-quic really printed."""

import json
import statistics

import pytest
from pydantic import ValidationError

from tunnelmark.errors import OutputUnreadable, WorkloadFailed
from tunnelmark.model.steps import LogMatch
from tunnelmark.workloads.base import Reading
from tunnelmark.workloads.quic import WORKLOAD, QuicOptions
from unit.workloads.recorded import ends, recorded, series, whole


def options(**chosen: object) -> QuicOptions:
    return QuicOptions.model_validate(chosen)


def read(name: str, **chosen: object) -> Reading:
    return WORKLOAD.read(recorded(name), options(duration="1 s", **chosen))


def changed(name: str, program: str, **values: object) -> dict[str, str]:
    """The output of a run, with other values at the top of one program's JSON."""
    outputs = recorded(name)
    return outputs | {program: json.dumps(json.loads(outputs[program]) | values)}


class TestWhatItStarts:
    def test_is_a_server_on_the_source_and_a_client_on_the_target(self):
        traffic = WORKLOAD.traffic(ends(), options())
        (server,) = traffic.servers
        assert server.node == "a"
        assert server.argv == (
            *("tunnelmark-quic", "server", "--listen", "10.0.0.1:4433"),
            *("--receive-buffer", "4194304", "--gso", "true"),
        )
        assert server.ready == LogMatch(r"^listening on ")
        assert server.long_running
        assert traffic.client.node == "b"
        assert traffic.client.argv == (
            *("tunnelmark-quic", "client", "--connect", "10.0.0.1:4433", "--duration", "2"),
            *("--handshakes", "5", "--connections", "1", "--patience", "52"),
            *("--receive-buffer", "4194304", "--gso", "true"),
        )

    def test_brackets_ipv6(self):
        traffic = WORKLOAD.traffic(ends("200::1", "200::2"), options())
        assert "[200::1]:4433" in traffic.servers[0].argv
        assert "[200::1]:4433" in traffic.client.argv

    def test_follows_the_options(self):
        chosen = options(duration="1.5 s", handshakes=2, connections=3, gso=False)
        argv = WORKLOAD.traffic(ends(), chosen).client.argv
        assert argv[4:10] == ("--duration", "1.5", "--handshakes", "2", "--connections", "3")
        assert argv[-2:] == ("--gso", "false")

    def test_asks_for_no_more_buffer_than_the_host_allows(self):
        argv = WORKLOAD.traffic(ends(socket_buffer=212992), options()).client.argv
        assert argv[argv.index("--receive-buffer") + 1] == "212992"

    def test_has_an_end(self):
        traffic = WORKLOAD.traffic(ends(), options(duration="3 s", warmup="1 s"))
        assert (traffic.window, traffic.warmup) == (2, 1)
        assert 3 + 52 + 5 < traffic.timeout < 75  # download, patience, what is under way: the client knows its own end


class TestWhatItReads:
    def test_is_goodput_without_the_warm_up(self):
        reading = read("quic-ipv4")
        arrived = json.loads(recorded("quic-ipv4")["client"])["arrived"]
        seconds = arrived[10]["time"] - arrived[3]["time"]
        assert whole(reading)["goodput"] == (arrived[10]["bytes"] - arrived[3]["bytes"]) * 8 / seconds
        assert whole(reading)["goodput"] == pytest.approx(47.5e6, rel=0.02)  # 50 Mbit/s without headers
        assert reading.window == pytest.approx(0.7, abs=0.02)
        assert reading.warmup == pytest.approx(0.3, abs=0.02)

    def test_is_how_long_connections_took(self):
        said = json.loads(recorded("quic-ipv4")["client"])["handshakes"]
        values = whole(read("quic-ipv4"))
        assert len(said) == 5
        assert values["handshake"] == statistics.median(one["connect_ms"] for one in said)
        assert values["handshake_max"] == max(one["connect_ms"] for one in said)
        assert values["first_byte"] == statistics.median(one["first_byte_ms"] for one in said)

    def test_is_what_the_sender_knows_of_its_connections(self):
        server = json.loads(recorded("quic-ipv6-three")["server"])
        left = server["left"]
        values = whole(read("quic-ipv6-three", connections=3, handshakes=2, gso=False))
        assert values["sent"] == left[10]["sent"] - left[3]["sent"]
        assert values["lost"] == left[10]["lost"] - left[3]["lost"] > 0
        assert [one["mtu"] for one in server["connections"]] == [1452, 1420, 1389]
        assert values["mtu"] == 1389  # probes of two connections were lost in the full queue
        assert values["datagrams_per_call"] == 1
        assert whole(read("quic-ipv4"))["datagrams_per_call"] > 1

    def test_is_cpu_time_for_a_gigabyte_of_both_programs_apart(self):
        outputs = {name: json.loads(text) for name, text in recorded("quic-ipv4").items()}
        arrived, left = outputs["client"]["arrived"], outputs["server"]["left"]
        gigabytes = (arrived[10]["bytes"] - arrived[3]["bytes"]) / 1e9
        values = whole(read("quic-ipv4"))
        assert values["cpu_client"] == pytest.approx((arrived[10]["cpu"] - arrived[3]["cpu"]) / gigabytes)
        assert values["cpu_server"] == pytest.approx((left[10]["cpu"] - left[3]["cpu"]) / gigabytes)

    def test_is_a_series_that_adds_up(self):
        reading = read("quic-ipv4")
        steps = series(reading, "goodput")
        assert len(steps) == 7
        assert steps[0][0] == 0
        assert [time for time, _ in steps] == sorted(time for time, _ in steps)
        assert statistics.fmean(value for _, value in steps) == pytest.approx(whole(reading)["goodput"], rel=0.01)
        for metric in ("sent", "lost"):
            assert sum(value for _, value in series(reading, metric)) == whole(reading)[metric]

    def test_is_the_congestion_control_of_every_connection(self):
        assert read("quic-ipv4").congestion_control == ("cubic",)
        assert read("quic-ipv6-three", connections=3).congestion_control == ("cubic",) * 3

    @pytest.mark.parametrize("name", ["quic-ipv4", "quic-ipv6-three"])
    def test_is_declared(self, name):
        assert {sample.metric for sample in read(name).samples} == {metric.name for metric in WORKLOAD.metrics}

    def test_is_judged_by_goodput(self):
        assert [metric.name for metric in WORKLOAD.metrics if metric.primary] == ["goodput"]


class TestFailures:
    def test_of_a_path_that_died(self):
        with pytest.raises(WorkloadFailed, match="no longer answered within 5 s") as caught:
            read("quic-dies")
        assert caught.value.hint

    def test_of_a_server_that_is_not_there(self):
        with pytest.raises(WorkloadFailed, match="not established: timed out"):
            read("quic-refused")

    def test_of_a_download_that_stood_still(self):
        arrived = json.loads(recorded("quic-ipv4")["client"])["arrived"]
        outputs = changed("quic-ipv4", "client", arrived=[look | {"bytes": 7} for look in arrived])
        with pytest.raises(WorkloadFailed, match="not a byte"):
            WORKLOAD.read(outputs, options(duration="1 s"))

    def test_of_a_request_that_was_lost_as_long_as_it_was_waited_for(self):
        arrived = json.loads(recorded("quic-ipv4")["client"])["arrived"]
        outputs = changed("quic-ipv4", "client", arrived=[look | {"bytes": 0} for look in arrived])
        outputs["server"] = changed("quic-ipv4", "server", connections=[], left=[])["server"]
        with pytest.raises(WorkloadFailed, match="did not reach the server within 1 s") as caught:
            WORKLOAD.read(outputs, options(duration="1 s"))
        assert caught.value.hint


class TestWhatItCannotRead:
    @pytest.mark.parametrize("keep", [0, 40, 1000])
    @pytest.mark.parametrize("program", ["client", "server"])
    def test_is_output_that_was_cut_short(self, program, keep):
        outputs = recorded("quic-ipv4")
        with pytest.raises(OutputUnreadable) as caught:
            WORKLOAD.read(outputs | {program: outputs[program][:keep]}, options(duration="1 s"))
        assert program in caught.value.message
        assert caught.value.hint

    def test_is_the_output_of_another_program(self):
        with pytest.raises(OutputUnreadable, match=r"handshakes: Field required"):
            WORKLOAD.read(recorded("quic-ipv4") | {"client": recorded("tcp-ipv4")["client"]}, options(duration="1 s"))

    @pytest.mark.parametrize(("program", "key"), [("client", "arrived"), ("server", "left")])
    def test_is_a_run_that_was_not_looked_at(self, program, key):
        looks = json.loads(recorded("quic-ipv4")[program])[key]
        with pytest.raises(OutputUnreadable, match="no byte counts"):
            WORKLOAD.read(changed("quic-ipv4", program, **{key: looks[:5]}), options(duration="1 s"))

    def test_is_a_server_that_served_nobody_and_a_client_that_was_served(self):
        with pytest.raises(OutputUnreadable, match="served no download"):
            WORKLOAD.read(changed("quic-ipv4", "server", connections=[], left=[]), options(duration="1 s"))


class TestOptions:
    @pytest.mark.parametrize(
        ("wrong", "right"),
        [
            ({"duration": "fast"}, "a duration above zero"),
            ({"duration": "2 h"}, "less than or equal to 3600"),
            ({"warmup": "1.5 s"}, "at most half"),
            ({"duration": "0.3 s", "warmup": "0.15 s"}, "0.2 s or more"),
            ({"handshakes": 0}, "greater than or equal to 1"),
            ({"connections": 101}, "less than or equal to 100"),
            ({"gso": "yes"}, "boolean"),
            ({"congestion_control": "bbr"}, "not permitted"),
        ],
    )
    def test_that_are_wrong_are_refused(self, wrong, right):
        with pytest.raises(ValidationError, match=right):
            options(**wrong)

    def test_are_written_as_they_are_read(self):
        chosen = options(duration="90 s", warmup="1 s", handshakes=9, connections=4, gso=False)
        assert options(**chosen.model_dump(mode="json")) == chosen
