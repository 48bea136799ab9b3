"""The workload `latency`, read from what tunnelmark-probe really printed."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from pydantic import ValidationError

from tunnelmark.errors import OutputUnreadable, WorkloadFailed
from tunnelmark.workloads.base import Reading
from tunnelmark.workloads.latency import WORKLOAD, LatencyOptions
from unit.workloads.recorded import ends, recorded, whole

LOADED: dict[str, object] = {"sizes": [100, 1000], "load": ["0 %", "50 %"], "interval": "2 ms", "duration": "1 s"}


def options(**chosen: object) -> LatencyOptions:
    return LatencyOptions.model_validate(chosen)


def read(name: str, **chosen: object) -> Reading:
    return WORKLOAD.read(recorded(name), options(**chosen))


def changed(side: str, kind: str, change: Callable[[dict[str, Any]], None]) -> dict[str, str]:
    """The loaded output with that done to every line of a kind of one side."""
    outputs = recorded("latency-load")
    lines = [json.loads(line) for line in outputs[side].splitlines()]
    for line in lines:
        if line["kind"] == kind:
            change(line)
    return outputs | {side: "".join(json.dumps(line) + "\n" for line in lines)}


class TestWhatItStarts:
    def test_probes_from_the_source_with_a_server_on_the_target(self):
        traffic = WORKLOAD.traffic(ends(), options())
        assert (traffic.client.node, traffic.servers[0].node) == ("a", "b")
        argv = " ".join(traffic.client.argv)
        assert argv.startswith("tunnelmark-probe latency --to 10.0.0.2 --buffer 4194304 ")
        assert "--sizes 100,500,1000 --load 0,50,90 --load-size full" in argv
        assert "--interval 1 --duration 4" in argv

    def test_sends_enough_of_each_size_for_a_high_percentile_though_one_of_five_is_lost(self):
        chosen = options()
        assert 0.8 * chosen.duration / chosen.interval / len(chosen.sizes) > 1000

    def test_takes_no_search_where_there_is_no_load(self):
        idle, loaded = (WORKLOAD.traffic(ends(), options(load=load)) for load in (["0 %"], ["50 %"]))
        assert idle.window == loaded.window == 4
        assert idle.warmup + 5 < loaded.warmup


class TestWhatItReads:
    def test_is_each_ways_delay_at_each_load_and_size(self):
        values = whole(read("latency-load", **LOADED))
        for way in ("forward", "back"):
            # 2 ms of the link, and its rate: 142 or 1042 bytes at 50 Mbit/s.
            assert values[f"{way}_p50_idle_100"] == pytest.approx(2.02, abs=0.08)
            assert values[f"{way}_p50_idle_1000"] == pytest.approx(2.17, abs=0.08)
            for at in ("idle_100", "idle_1000", "load_50"):
                ordered = [values[f"{way}_{what}_{at}"] for what in ("p50", "p90", "p99", "max")]
                assert ordered == sorted(ordered)
                assert 0 <= values[f"{way}_loss_{at}"] < 4

    def test_is_told_apart_by_way(self):
        def later(line: dict[str, Any]) -> None:
            line["delays_ns"] = [delay and delay + 5_000_000 for delay in line["delays_ns"]]

        before, after = (
            whole(read("latency-load", **LOADED)),
            whole(WORKLOAD.read(changed("server", "delays", later), options(**LOADED))),
        )
        assert after["forward_p50_idle_100"] == pytest.approx(before["forward_p50_idle_100"] + 5)
        assert after["back_p50_idle_100"] == before["back_p50_idle_100"]

    def test_has_percentiles_that_are_delays_of_probes(self):
        def counted(line: dict[str, Any]) -> None:
            line["delays_ns"] = [1_000_000 * (place // 2 + 1) for place in range(200)]  # 1 to 100 ms of each size

        values = whole(WORKLOAD.read(changed("client", "delays", counted), options(**LOADED)))
        found = [values[f"back_{what}_idle_1000"] for what in ("p50", "p90", "p99", "max")]
        assert found == [50, 90, 99, 100]

    def test_counts_what_did_not_arrive(self):
        def every_fourth(line: dict[str, Any]) -> None:
            line["delays_ns"] = [None if place % 4 == 0 else 1000 for place in range(400)]

        values = whole(WORKLOAD.read(changed("server", "delays", every_fourth), options(**LOADED)))
        assert values["forward_loss_idle_100"] == 50  # the sizes alternate: every second one of the first
        assert values["forward_loss_idle_1000"] == 0
        assert values["forward_loss_load_50"] == 25

    def test_says_a_99_9th_percentile_of_a_thousand_probes_and_of_no_fewer(self):
        def many(line: dict[str, Any]) -> None:
            line["delays_ns"] = [1000 * place for place in range(1, 2001)]

        assert not any("p99_9" in name for name in whole(read("latency-load", **LOADED)))
        values = whole(WORKLOAD.read(changed("server", "delays", many), options(**LOADED)))
        assert values["forward_p99_9_load_50"] == pytest.approx(1.998)
        assert "back_p99_9_load_50" not in values

    def test_is_what_the_path_carries_and_what_it_was_offered(self):
        values = whole(read("latency-load", **LOADED))
        assert values["capacity"] == pytest.approx(50e6 * 1472 / 1514, rel=0.03)
        assert values["offered_load_50"] == pytest.approx(values["capacity"] / 2, rel=0.01)
        assert 0 < values["lost_load_50"] < 3
        assert 0 < values["late_p99"] < 20

    def test_is_declared(self):
        declared = {metric.name for metric in WORKLOAD.metrics_with(options(**LOADED))}
        found = {sample.metric for sample in read("latency-load", **LOADED).samples}
        assert found == {name for name in declared if "p99_9" not in name}

    def test_is_judged_by_the_idle_median_and_the_99th_percentile_at_the_highest_load(self):
        def judged(**chosen: object) -> list[str]:
            return [metric.name for metric in WORKLOAD.metrics_with(options(**chosen)) if metric.primary]

        assert judged() == ["forward_p50_idle_100", "forward_p99_load_90"]
        assert judged(load=["100 %", "25 %"]) == ["forward_p99_load_100"]
        assert judged(load=["0 %"], sizes=[64]) == ["forward_p50_idle_64"]


class TestFailure:
    def test_of_the_path_is_told_in_the_words_of_the_probe(self):
        with pytest.raises(WorkloadFailed, match="no answer from the server to Progress within 12 s"):
            read("latency-dies", sizes=[100], load=["0 %"])

    def test_is_that_not_one_probe_arrived(self):
        def nothing(line: dict[str, Any]) -> None:
            line["delays_ns"] = [None] * 500

        with pytest.raises(WorkloadFailed, match="not one of 500 probes arrived forward, idle"):
            WORKLOAD.read(changed("server", "delays", nothing), options(**LOADED))

    def test_is_told_of_a_load_that_was_not_offered(self):
        def less(line: dict[str, Any]) -> None:
            line["offered"] *= 0.9

        reading = WORKLOAD.read(changed("client", "load", less), options(**LOADED))
        assert re.search(r"the load was only \d+ of \d+ datagrams/s, 50 % of capacity", reading.starved)

    def test_is_told_of_probes_that_left_late(self):
        def late(line: dict[str, Any]) -> None:
            line["late_ns"]["p99"] = 60_000_000

        assert "60 ms late" in WORKLOAD.read(changed("server", "delays", late), options(**LOADED)).starved

    @pytest.mark.parametrize("side", ["client", "server"])
    def test_of_the_reader_is_told_where_a_side_is_cut_short_or_silent(self, side: str):
        outputs = recorded("latency-load")
        for text in ("", outputs[side][:-5], outputs[side][: len(outputs[side]) // 2]):
            with pytest.raises(OutputUnreadable):
                WORKLOAD.read(outputs | {side: text}, options(**LOADED))

    def test_of_the_reader_is_told_where_a_load_is_missing(self):
        with pytest.raises(OutputUnreadable, match="90 % of capacity"):
            read("latency-load", **(LOADED | {"load": ["0 %", "50 %", "90 %"]}))


@pytest.mark.parametrize(
    "wrong",
    [
        {"sizes": []},
        {"sizes": [31]},
        {"sizes": [100, 100]},
        {"load": []},
        {"load": ["101 %"]},
        {"load": [50]},
        {"load": ["50 %", "50 %"]},
        {"load_size": "half"},
        {"interval": "0.1 ms"},
        {"duration": "5 ms"},
        {"duration": "2 h"},
    ],
)
def test_options_that_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        options(**wrong)
