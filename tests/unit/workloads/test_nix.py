"""The workload `nix`, read from what Nix and nginx really printed."""

from ipaddress import ip_address
from pathlib import Path

import pytest
from pydantic import ValidationError

from tunnelmark.errors import OutputUnreadable, WorkloadFailed
from tunnelmark.model.steps import Command, CopyFile
from tunnelmark.workloads.base import Endpoints, Reading, Traffic
from tunnelmark.workloads.nix import WORKLOAD, NixOptions
from unit.workloads.recorded import recorded, whole


def options(**chosen: object) -> NixOptions:
    return NixOptions.model_validate(chosen)


def traffic(source: str = "10.0.0.1", target: str = "10.0.0.2", **chosen: object) -> Traffic:
    ends = Endpoints("a", "b", ip_address(source), ip_address(target), assets={"nix-cache": Path("/cache")})
    return WORKLOAD.traffic(ends, options(**chosen))


def read(name: str, **chosen: object) -> Reading:
    return WORKLOAD.read(recorded(name), options(**chosen))


class TestWhatItStarts:
    def test_serves_on_the_source_and_copies_on_the_target(self):
        started = traffic()
        (server,) = started.servers
        assert (server.node, started.client.node) == ("a", "b")
        configuration = started.files[0]
        assert configuration.node == "a"
        assert "listen 10.0.0.1:8080;" in configuration.content
        assert "root /cache/cache;" in configuration.content
        assert str(configuration.path) in server.argv

    def test_checks_signatures_and_asks_for_the_root_only(self):
        argv = " ".join(traffic(connections=3).client.argv)
        assert "nix copy --store /run/workload/store --from http://10.0.0.1:8080 " in argv
        assert "--option require-sigs true --option http-connections 3" in argv
        assert "no-check-sigs" not in argv
        assert '--option trusted-public-keys "$(cat "$asset/key.public")" "$(cat "$asset/root")"' in argv

    def test_has_a_store_and_a_home_that_end_with_the_node(self):
        started = traffic()
        assert started.client.env["HOME"] == "/run/workload/home"
        first = started.setup[0]
        assert isinstance(first, Command)
        assert (first.node, first.argv) == ("b", ("rm", "-rf", "/run/workload/store", "/run/workload/home"))

    def test_brackets_an_ipv6_address(self):
        started = traffic("200::1", "200::2")
        assert "http://[200::1]:8080" in started.client.argv
        assert "listen [200::1]:8080;" in started.files[0].content

    def test_proves_who_it_is_with_tls(self):
        started = traffic(tls=True)
        _, make, hand = started.setup
        assert isinstance(make, Command)
        assert (make.node, make.argv[0]) == ("a", "openssl")
        assert "subjectAltName=IP:10.0.0.1" in make.argv
        assert isinstance(hand, CopyFile)
        assert (hand.source, hand.node) == ("a", "b")
        assert started.client.env["NIX_SSL_CERT_FILE"] == str(hand.to)
        assert "https://10.0.0.1:8443" in started.client.argv
        assert "listen 10.0.0.1:8443 ssl http2;" in started.files[0].content

    def test_ends_within_its_timeout(self):
        started = traffic(timeout="7 s")
        assert started.client.argv[6:10] == ("timeout", "--kill-after=2", "7", "nix")
        assert started.timeout == 17


class TestTheClosure:
    def test_has_many_small_and_some_large_paths_of_the_asked_size(self):
        sizes = options(paths=200, size="96 MiB").sizes()
        assert len(sizes) == 200
        assert sum(sizes) == pytest.approx(96 << 20, rel=1e-4)
        large = [size for size in sizes if size > 1 << 20]
        assert len(large) == 10
        assert sum(large) == pytest.approx(0.75 * sum(sizes), rel=0.01)

    def test_of_a_few_paths_has_them_all_alike(self):
        assert options(paths=3, size="3 KiB").sizes() == (1024, 1024, 1024)

    def test_is_another_asset_with_another_size(self):
        (one,), (other,) = WORKLOAD.assets_with(options()), WORKLOAD.assets_with(options(size="1 MiB"))
        assert one.files["sizes"].count("\n") == 400
        assert one.files != other.files


class TestWhatItReads:
    @pytest.mark.parametrize("name", ["nix-http", "nix-tls"])
    def test_is_the_requests_by_kind(self, name):
        values = whole(read(name))
        assert values["narinfo_requests"] == values["nar_requests"] == 20
        assert values["other_requests"] == 3
        assert values["requests"] == 43
        assert values["failures"] == values["retries"] == 0
        assert values["connections"] == 1

    def test_is_the_time_and_the_bytes_of_the_archives_over_it(self):
        reading = read("nix-http")
        values = whole(reading)
        assert values["seconds"] == pytest.approx(0.054785)
        assert values["goodput"] == pytest.approx(1059184 * 8 / 0.054785)
        assert reading.window == values["seconds"]

    def test_is_every_request_without_a_good_answer(self):
        outputs = recorded("nix-http")
        server = outputs["server"].replace(" HTTP/1.1 200 ", " HTTP/1.1 503 ", 2)
        assert whole(WORKLOAD.read(outputs | {"server": server}, options()))["failures"] == 2

    def test_is_what_nix_tried_again(self):
        outputs = recorded("nix-http")
        said = "warning: error: unable to download 'http://10.50.0.1:8080/a': Timeout (28); retrying in 288 ms\n"
        values = whole(WORKLOAD.read(outputs | {"client": said + outputs["client"]}, options()))
        assert values["retries"] == 1

    def test_is_declared(self):
        declared = {metric.name for metric in WORKLOAD.metrics}
        assert {sample.metric for sample in read("nix-http").samples} == declared

    def test_is_judged_by_the_time(self):
        assert [metric.name for metric in WORKLOAD.metrics if metric.primary] == ["seconds"]


class TestFailure:
    def test_is_a_closure_without_a_valid_signature(self):
        with pytest.raises(WorkloadFailed, match="lacks a valid signature"):
            read("nix-unsigned")

    def test_is_a_copy_that_hangs(self):
        with pytest.raises(WorkloadFailed, match="did not end within 3 s"):
            read("nix-hangs", timeout="3 s")

    def test_is_a_store_that_lacks_paths(self):
        outputs = recorded("nix-http")
        with pytest.raises(WorkloadFailed, match="of 20 paths 19 are"):
            WORKLOAD.read(outputs | {"client": outputs["client"].replace("code 0\n20", "code 0\n19")}, options())

    def test_is_a_store_that_cannot_be_asked(self):
        outputs = recorded("nix-http")
        with pytest.raises(WorkloadFailed, match="of 20 paths none are"):
            WORKLOAD.read(outputs | {"client": outputs["client"].replace("code 0\n20", "code 0\n")}, options())


class TestWhatItCannotRead:
    def test_is_a_client_that_was_cut_short(self):
        outputs = recorded("nix-http")
        with pytest.raises(OutputUnreadable, match="what it copied"):
            WORKLOAD.read(outputs | {"client": outputs["client"][:700]}, options())

    def test_is_nothing(self):
        with pytest.raises(OutputUnreadable):
            WORKLOAD.read({}, options())

    @pytest.mark.parametrize("log", ["", "\n"])
    def test_is_a_server_without_a_request(self, log):
        with pytest.raises(OutputUnreadable):
            WORKLOAD.read(recorded("nix-http") | {"server": log}, options())

    def test_is_a_log_in_another_form(self):
        outputs = recorded("nix-http")
        with pytest.raises(OutputUnreadable, match=r"not a request: '10\.50\.0\.3 - - "):
            WORKLOAD.read(outputs | {"server": '10.50.0.3 - - "GET / HTTP/1.1" 200 5\n'}, options())

    def test_is_a_log_that_was_cut_short(self):
        outputs = recorded("nix-http")
        with pytest.raises(OutputUnreadable, match="not a request"):
            WORKLOAD.read(outputs | {"server": outputs["server"][:-9]}, options())


class TestOptions:
    @pytest.mark.parametrize(
        ("wrong", "right"),
        [
            ({"paths": 0}, "greater than or equal to 1"),
            ({"paths": 100, "size": "50 KiB"}, "at least 1 KiB for each"),
            ({"size": "5 GiB"}, "less than or equal to"),
            ({"connections": 0}, "greater than or equal to 1"),
            ({"tls": "yes"}, "valid boolean"),
            ({"timeout": "-1 s"}, "duration"),
        ],
    )
    def test_that_are_wrong_are_refused(self, wrong, right):
        with pytest.raises(ValidationError, match=right):
            options(**wrong)

    def test_are_written_as_they_are_read(self):
        chosen = options(size="8 MiB", timeout="90 s", tls=True)
        assert options(**chosen.model_dump(mode="json")) == chosen
