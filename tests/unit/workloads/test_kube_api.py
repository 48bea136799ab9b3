"""The workload `kube-api`, read from what vegeta, kube-apiserver and the step that makes the pods really printed."""

import json

import pytest
from pydantic import ValidationError

from tunnelmark.errors import OutputUnreadable, WorkloadFailed
from tunnelmark.model.steps import Command
from tunnelmark.workloads.base import Reading, Traffic
from tunnelmark.workloads.kube_api import PODS, SERVER, STORE, WORKLOAD, KubeApiOptions
from unit.workloads.recorded import ends, recorded, series, whole

GOOD = "kube-api-ipv4"


def options(**chosen: object) -> KubeApiOptions:
    return KubeApiOptions.model_validate({"requests": 20, "warmup": "500 ms"} | chosen)


def read(**changed: str) -> Reading:
    return WORKLOAD.read(recorded(GOOD) | changed, options())


def traffic(target: str = "10.0.0.2", **chosen: object) -> Traffic:
    return WORKLOAD.traffic(ends(target=target), options(**chosen))


def argv(made: Traffic, name: str) -> str:
    return next(" ".join(server.argv) for server in made.servers if server.name == name)


def count(made: Traffic) -> int:
    """How many requests the client will send."""
    step = made.setup[-1]
    assert isinstance(step, Command)
    return int(step.argv[-2])


class TestWhatItStarts:
    def test_is_a_store_then_the_server_then_the_pods(self):
        made = traffic()
        assert [server.name for server in made.servers] == [STORE, SERVER, PODS]
        assert all(server.node == "b" and server.long_running and server.ready for server in made.servers)
        assert made.client.node == "a"

    def test_is_a_server_on_the_overlay_and_a_store_that_only_it_reaches(self):
        assert "--bind-address=10.0.0.2 " in argv(traffic(), SERVER)
        assert "--etcd-servers=http://127.0.0.1:2379 " in argv(traffic(), SERVER)
        assert "--listen-client-urls http://127.0.0.1:2379 " in argv(traffic(), STORE)

    def test_is_a_server_of_one_address_family(self):
        assert "--service-cluster-ip-range=10.96.0.0/24" in argv(traffic(), SERVER)
        assert "--service-cluster-ip-range=fd10:96::/112" in argv(traffic("200::2"), SERVER)

    def test_sends_what_was_published_if_asked(self):
        made = traffic(requests=5000, warmup="0 s")
        assert "-rate 10/1s" in " ".join(made.client.argv)
        assert count(made) == 5000
        assert made.window == pytest.approx(500)
        assert made.warmup == 0

    def test_sends_the_warmup_beforehand(self):
        made = traffic(requests=50, warmup="1 s")
        assert count(made) == 60
        assert (made.window, made.warmup) == (pytest.approx(5), pytest.approx(1))

    def test_checks_the_certificate_and_wants_no_compression(self):
        said = " ".join(traffic().client.argv)
        assert "-root-certs /run/workload/roots.crt" in said
        assert "-header Accept-Encoding: identity" in said
        assert "-http2=false" in said
        assert "-http2=true" in " ".join(traffic(http2=True).client.argv)

    def test_keeps_its_secrets_on_the_servers_node(self):
        files = {file.path.name: file.node for file in traffic().files}
        assert files["tokens.csv"] == "b"

    def test_begins_with_an_empty_store(self):
        assert traffic().setup[0] == Command("b", ("rm", "-rf", "/run/workload/etcd"))


class TestWhatItReads:
    def test_is_the_distribution_of_response_times(self):
        values = whole(read())
        assert values["p50"] == pytest.approx(4.3, abs=0.5)
        assert values["p50"] <= values["p90"] <= values["p99"] <= values["max"]
        assert min(time for _, time in series(read(), "latency")) < values["mean"] < values["max"]

    def test_is_without_the_warmup(self):
        reading = read()
        assert (reading.window, reading.warmup) == (pytest.approx(2), pytest.approx(0.5))
        assert [time for time, _ in series(reading, "latency")] == pytest.approx([0.1 * number for number in range(20)])

    def test_says_how_much_of_it_was_the_servers_own(self):
        values = whole(read())
        assert 1 < values["server_p50"] < values["p50"]

    def test_says_how_large_a_response_is(self):
        assert whole(read())["response"] == 143350

    def test_says_how_well_the_schedule_was_kept(self):
        values = whole(read())
        assert values["achieved"] == pytest.approx(10, rel=0.01)
        assert values["late"] < 20
        assert values["errors"] == 0

    def test_is_declared(self):
        declared = {metric.name for metric in WORKLOAD.metrics}
        assert {sample.metric for sample in read().samples} == declared

    def test_is_judged_by_the_median(self):
        assert [metric.name for metric in WORKLOAD.metrics if metric.primary] == ["p50"]


class TestFailure:
    def test_is_a_server_that_is_not_there(self):
        with pytest.raises(WorkloadFailed, match=r"10 of 10 requests failed.*connection refused"):
            WORKLOAD.read(recorded("kube-api-refused"), options(requests=10, warmup="0 s"))

    def test_is_a_server_that_knows_nobody(self):
        client = recorded(GOOD)["client"].replace('"code":200', '"code":401')
        with pytest.raises(WorkloadFailed, match="status 401"):
            read(client=client)


class TestWhatItCannotRead:
    def test_is_nothing(self):
        with pytest.raises(OutputUnreadable, match="vegeta printed nothing"):
            read(client="")

    def test_is_a_client_that_was_cut_short(self):
        with pytest.raises(OutputUnreadable, match="not understood"):
            read(client=recorded(GOOD)["client"][:-300])

    def test_is_a_log_that_was_cut_short_in_a_line(self):
        with pytest.raises(OutputUnreadable, match="audit log"):
            read(apiserver=recorded(GOOD)["apiserver"][:-100])

    def test_is_a_log_that_lacks_lines(self):
        lines = recorded(GOOD)["apiserver"].splitlines()
        with pytest.raises(OutputUnreadable, match="24 listings, and 25 were answered"):
            read(apiserver="\n".join(lines[1:]))

    def test_is_a_log_without_times(self):
        event = json.loads(recorded(GOOD)["apiserver"].splitlines()[0])
        del event["stageTimestamp"]
        with pytest.raises(OutputUnreadable, match="Field required"):
            read(apiserver=json.dumps(event))

    def test_are_pods_that_nobody_counted(self):
        with pytest.raises(OutputUnreadable, match="list of pods"):
            read(pods="")


class TestOptions:
    @pytest.mark.parametrize(
        ("wrong", "right"),
        [
            ({"requests": 5}, "greater than or equal to 10"),
            ({"rate": 0}, "greater than or equal to 1"),
            ({"pods": 0}, "greater than or equal to 1"),
            ({"pods": 10_000}, "less than or equal to 5000"),
            ({"requests": 10, "warmup": "2 s"}, "no longer than what is measured"),
        ],
    )
    def test_that_are_wrong_are_refused(self, wrong, right):
        with pytest.raises(ValidationError, match=right):
            options(**wrong)

    def test_are_written_as_they_are_read(self):
        chosen = options(rate=20, http2=True)
        assert options(**chosen.model_dump(mode="json")) == chosen
