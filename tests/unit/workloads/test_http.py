"""The workload `http`, read from what vegeta really wrote."""

import json
import re
from datetime import datetime, timedelta
from typing import Any

import pytest
from pydantic import ValidationError

from tunnelmark.errors import OutputUnreadable, WorkloadFailed
from tunnelmark.lab.channel import LIMIT
from tunnelmark.model.steps import Command, File
from tunnelmark.workloads.base import Reading, Traffic
from tunnelmark.workloads.http import WORKLOAD, HttpOptions
from unit.workloads.recorded import ends, recorded, series, whole

RECORDED = {"rate": 50, "duration": "2 s", "warmup": "200 ms", "share": "10 %"}
STILL = {"rate": 100, "duration": "2 s", "warmup": "200 ms", "share": "0 %"}  # one side stood still in the middle
SECOND = {"rate": 50, "duration": "1 s", "warmup": "0 s", "share": "10 %"}


def options(**chosen: object) -> HttpOptions:
    return HttpOptions.model_validate(RECORDED | chosen)


def read(name: str, **chosen: object) -> Reading:
    return WORKLOAD.read(recorded(name), options(**chosen))


def results(name: str) -> list[dict[str, Any]]:
    """What vegeta wrote, in the order of sending."""
    return sorted(map(json.loads, recorded(name)["client"].splitlines()), key=lambda line: int(line["seq"]))


def with_later(name: str, number: int, milliseconds: float) -> list[dict[str, Any]]:
    """These results, one of them of a request that was taken up later than it was."""
    lines = results(name)
    moment = datetime.fromisoformat(lines[number]["timestamp"][:26]) + timedelta(milliseconds=milliseconds)
    lines[number]["timestamp"] = f"{moment.isoformat()}Z"
    return lines


def read_results(lines: list[dict[str, Any]], **chosen: object) -> Reading:
    return WORKLOAD.read({"client": "\n".join(map(json.dumps, lines))}, options(**chosen))


def traffic(**chosen: object) -> Traffic:
    return WORKLOAD.traffic(ends(), options(**chosen))


def argv(**chosen: object) -> str:
    return " ".join(traffic(**chosen).client.argv)


def file(made: Traffic, name: str) -> File:
    return next(file for file in made.files if file.path.name == name)


class TestWhatItStarts:
    def test_sends_at_a_rate_and_keeps_no_bodies(self):
        assert "-lazy -targets /run/workload/vegeta/targets -rate 50/1s -timeout 5s" in argv()
        assert "-max-body 0" in argv()
        assert "-duration" not in argv()  # it would leave out what is late at the end

    def test_leaves_from_the_overlay_address_of_either_family(self):
        assert "-laddr 10.0.0.1 " in argv()
        assert "-laddr 200::1 " in " ".join(WORKLOAD.traffic(ends("200::1", "200::2"), options()).client.argv)
        assert (
            "GET http://[200::2]:8080/" in file(WORKLOAD.traffic(ends("200::1", "200::2"), options()), "cycle").content
        )

    def test_sends_as_many_requests_as_rate_and_duration_make(self):
        step = traffic(rate=30, duration="3 s").setup[-1]
        assert isinstance(step, Command)
        assert step.node == "a"
        assert step.argv[-2:] == ("90", "/run/workload/vegeta/targets")

    def test_asks_for_long_ones_evenly(self):
        lines = file(traffic(share="10 %"), "cycle").content.splitlines()
        assert [line.rsplit("/", 1)[1] for line in lines].index("long") == 4
        assert [line.endswith("/long") for line in lines].count(True) == 1
        assert len(lines) == 10

    @pytest.mark.parametrize("share", ["0 %", "0.1 %", "33.3 %", "99.9 %"])
    def test_asks_for_the_share_of_long_ones(self, share):
        made = options(share=share, rate=1000)
        assert sum(kind == "long" for kind in made.cycle) / len(made.cycle) == pytest.approx(float(share[:-2]) / 100)

    def test_fits_into_a_message_to_a_node(self):
        made = WORKLOAD.traffic(ends("fd00:1111:2222:3333:4444:5555:6666:7777"), options(share="33.3 %", rate=1000))
        assert all(len(json.dumps(one.content)) < LIMIT for one in made.files)

    def test_hands_the_certificate_over(self):
        made = traffic(tls=True)
        assert "-root-certs /run/workload/roots.crt" in " ".join(made.client.argv)
        assert "GET https://10.0.0.2:8080/short" in file(made, "cycle").content
        assert [(hand.source, hand.node) for hand in made.setup if hasattr(hand, "source")] == [("b", "a")]
        assert "-root-certs" not in argv()

    def test_keeps_connections_or_not(self):
        assert "-keepalive=true -http2=false" in argv()
        assert "-keepalive=false" in argv(keepalive=False)
        assert "-http2=true" in argv(tls=True, http2=True)
        assert " http2;" in file(traffic(tls=True, http2=True), "nginx.conf").content

    def test_ends_a_client_that_hangs(self):
        made = traffic()
        assert made.window + made.warmup == pytest.approx(2)
        assert made.timeout == pytest.approx(2 + 5 + 10)


class TestWhatItReads:
    def test_is_the_latency_of_both_kinds(self):
        values = whole(read("http-ipv4"))
        assert 0.1 < values["short_p50"] < values["short_p90"] < values["short_p99"] <= values["short_max"] < 20
        assert 0.1 < values["long_p50"] <= values["long_p90"] <= values["long_max"] < 20
        assert values["errors"] == 0
        assert values["achieved"] == pytest.approx(50, rel=0.01)

    def test_is_without_the_warmup(self):
        reading = read("http-ipv4")
        assert reading.warmup == pytest.approx(0.2)
        assert reading.window == pytest.approx(1.8)
        assert len(series(reading, "short")) == 81
        assert len(series(reading, "long")) == 9
        assert series(reading, "short")[0][0] == 0

    def test_reads_https_and_http2(self):
        reading = read("http-ipv6-tls", duration="1 s", tls=True, http2=True)
        assert whole(reading)["errors"] == 0
        assert len(series(reading, "short")) + len(series(reading, "long")) == 40

    def test_counts_every_request_that_was_due_while_the_server_stood_still(self):
        # For 400 ms at 100 requests/s: 40 requests wait from 0 to 400 ms. A client that waits for each answer sees one.
        reading = read("http-server-stands-still", **STILL)
        waited = [latency for _, latency in series(reading, "short") if latency > 20]
        assert len(waited) == pytest.approx(38, abs=4)
        assert sum(waited) / len(waited) == pytest.approx(210, abs=30)
        assert whole(reading)["short_max"] == pytest.approx(400, abs=20)

    def test_counts_from_the_intended_send_time(self):
        usual = series(read("http-ipv4", warmup="0 s"), "short")
        found = series(read_results(with_later("http-ipv4", 60, milliseconds=15), warmup="0 s"), "short")
        moved = [(time, round(now - was, 2)) for (time, now), (_, was) in zip(found, usual, strict=True) if now != was]
        assert moved == [(1.2, 15.0)]

    def test_trusts_the_schedule_and_not_the_first_request(self):
        # A first request that is late must look late, and not all others early.
        usual = series(read("http-ipv4", warmup="0 s"), "short")
        found = series(read_results(with_later("http-ipv4", 0, milliseconds=15), warmup="0 s"), "short")
        assert found[0][1] - usual[0][1] == pytest.approx(15, abs=0.5)
        assert [latency for _, latency in found[1:]] == pytest.approx([latency for _, latency in usual[1:]], abs=0.5)

    def test_takes_results_in_any_order(self):
        assert read_results(results("http-ipv4")[::-1]) == read("http-ipv4")

    @pytest.mark.parametrize(("name", "chosen"), [("http-ipv4", RECORDED), ("http-server-stands-still", STILL)])
    def test_is_declared(self, name, chosen):
        declared = {metric.name for metric in WORKLOAD.metrics_with(options(**chosen))}
        assert {sample.metric for sample in read(name, **chosen).samples} == declared

    def test_is_judged_by_the_median_of_short_requests(self):
        assert [metric.name for metric in WORKLOAD.metrics if metric.primary] == ["short_p50"]


class TestFailure:
    def test_of_every_request_is_told_in_vegetas_words(self):
        with pytest.raises(WorkloadFailed, match=r"50 of 50 requests failed.*connection refused"):
            read("http-refused", **SECOND)

    def test_is_a_certificate_that_nobody_vouches_for(self):
        with pytest.raises(WorkloadFailed, match="unknown authority"):
            read("http-wrong-certificate", **SECOND, tls=True)

    def test_of_some_counts_with_the_patience_of_a_client(self):
        lines = results("http-ipv4")
        for line in lines[50:60]:
            line["error"], line["latency"] = "read tcp 10.0.0.1:4711->10.0.0.2:8080: connection reset by peer", 1000
        values = whole(read_results(lines))
        assert values["errors"] == pytest.approx(100 * 10 / 90)
        assert values["short_max"] == 5000
        assert values["short_p50"] < 10

    def test_is_an_answer_that_is_no_good(self):
        lines = results("http-ipv4")
        for line in lines:
            line["code"] = 404
        with pytest.raises(WorkloadFailed, match="status 404"):
            read_results(lines)

    def test_is_a_generator_that_stood_still(self):
        reading = read("http-generator-stands-still", **STILL)
        assert re.search(r"sent 2\d\d ms or more after its time", reading.starved)


class TestWhatItCannotRead:
    def test_is_nothing(self):
        with pytest.raises(OutputUnreadable, match="printed nothing"):
            WORKLOAD.read({"client": ""}, options())

    def test_is_output_that_was_cut_short_in_a_line(self):
        with pytest.raises(OutputUnreadable, match="not understood"):
            WORKLOAD.read({"client": recorded("http-ipv4")["client"][:-400]}, options())

    def test_is_output_that_was_cut_short_between_lines(self):
        with pytest.raises(OutputUnreadable, match="99 results of 100"):
            read_results(results("http-ipv4")[:99])

    @pytest.mark.parametrize("missing", ["seq", "code", "timestamp", "latency", "error", "url"])
    def test_is_output_that_lacks_a_figure(self, missing):
        lines = results("http-ipv4")
        del lines[3][missing]
        with pytest.raises(OutputUnreadable, match=missing):
            read_results(lines)


class TestOptions:
    @pytest.mark.parametrize(
        ("wrong", "right"),
        [
            ({"rate": 0}, "greater than or equal to 1"),
            ({"rate": "10 Mbit/s"}, "valid integer"),
            ({"rate": 50_000, "duration": "10 s"}, "from 2 to 200000 requests"),
            ({"rate": 1, "duration": "1 s", "warmup": "0 s"}, "from 2 to 200000 requests"),
            ({"warmup": "1500 ms"}, "half its duration"),
            ({"share": "100 %"}, "below 100 %"),
            ({"share": "0.05 %"}, "steps of 0.1 %"),
            ({"share": "0.1 %"}, "both kinds"),
            ({"short": "1 MB"}, "longer than the short"),
            ({"http2": True}, "tls and keepalive"),
            ({"http2": True, "tls": True, "keepalive": False}, "tls and keepalive"),
        ],
    )
    def test_that_are_wrong_are_refused(self, wrong, right):
        with pytest.raises(ValidationError, match=right):
            options(**wrong)

    def test_are_written_as_they_are_read(self):
        chosen = options(rate=20, share="2.5 %", tls=True)
        assert options(**chosen.model_dump(mode="json")) == chosen
