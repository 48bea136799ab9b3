"""The workload `udp-search`, read from what tunnelmark-probe really printed."""

from __future__ import annotations

import json

import pytest
from pydantic import ValidationError

from tunnelmark.errors import OutputUnreadable, WorkloadFailed
from tunnelmark.workloads.base import Reading
from tunnelmark.workloads.udp_search import WORKLOAD, UdpSearchOptions
from unit.workloads.recorded import ends, recorded, whole

SHAPED = {"sizes": [64, "full"]}
FULL = 1472  # bytes of payload that an MTU of 1500 holds with 28 bytes of headers


def options(**chosen: object) -> UdpSearchOptions:
    return UdpSearchOptions.model_validate(chosen)


def read(name: str, **chosen: object) -> Reading:
    return WORKLOAD.read(recorded(name), options(**chosen))


def changed(name: str, kind: str, **fields: object) -> dict[str, str]:
    """That output with other values in all the client's lines of a kind."""
    lines = [json.loads(line) for line in recorded(name)["client"].splitlines()]
    lines = [line | fields if line["kind"] == kind else line for line in lines]
    return recorded(name) | {"client": "".join(json.dumps(line) + "\n" for line in lines)}


class TestWhatItStarts:
    def test_searches_from_the_source_with_a_server_on_the_target(self):
        traffic = WORKLOAD.traffic(ends("200::1", "200::2"), options())
        assert (traffic.client.node, traffic.servers[0].node) == ("a", "b")
        argv = " ".join(traffic.client.argv)
        assert argv.startswith("tunnelmark-probe search --to 200::2 --buffer 4194304 ")
        assert "--sizes 64,512,1280,full --loss 0,0.1 --trial 0.3 --confirm 1 --resolution 1" in argv
        assert " ".join(traffic.servers[0].argv) == "tunnelmark-probe serve --bind 200::2 --buffer 4194304"
        assert traffic.servers[0].long_running

    def test_asks_for_no_larger_buffer_than_the_host_allows(self):
        traffic = WORKLOAD.traffic(ends(socket_buffer=212992), options())
        assert all("--buffer 212992" in " ".join(one.argv) for one in (traffic.client, *traffic.servers))

    def test_may_take_longer_the_more_it_searches(self):
        few = WORKLOAD.traffic(ends(), options(sizes=[64], loss=["0 %"]))
        many = WORKLOAD.traffic(ends(), options())
        assert few.window < many.window
        assert few.window + few.warmup < few.timeout < many.timeout


class TestWhatItReads:
    def test_is_the_rate_of_the_shaped_link_at_each_size(self):
        values = whole(read("search-shaped", **SHAPED))
        for size, payload in ((64, 64), ("full", FULL)):
            packets = 20e6 / 8 / (payload + 42)  # with the headers that the link counts
            assert values[f"packets_{size}_loss_0"] == pytest.approx(packets, rel=0.01)
            assert values[f"packets_{size}_loss_0_1"] == pytest.approx(packets, rel=0.01)
            assert values[f"bits_{size}_loss_0"] == pytest.approx(packets * payload * 8, rel=0.01)
            assert 0 < values[f"gap_{size}_loss_0"] < 1.1
            assert values[f"offered_max_{size}"] > packets
            assert (
                values[f"split_{size}"] == values[f"limited_{size}_loss_0"] == values[f"limited_{size}_loss_0_1"] == 0
            )

    def test_is_zero_where_no_rate_is_without_loss(self):
        values = whole(read("search-lossy", sizes=[512], loss=["0 %"]))
        assert values["packets_512_loss_0"] == values["bits_512_loss_0"] == 0
        assert "gap_512_loss_0" not in values

    def test_has_the_confirming_trials_as_its_window(self):
        reading = read("search-shaped", **SHAPED)
        assert reading.window == pytest.approx(4, abs=0.1)  # two sizes, two bounds
        assert reading.warmup > 1

    @pytest.mark.parametrize("limit", ["sender", "receiver"])
    def test_marks_the_searches_that_the_laboratory_ended(self, limit: str):
        values = whole(WORKLOAD.read(changed("search-shaped", "found", limit=limit), options(**SHAPED)))
        assert all(values[f"limited_{size}_loss_{bound}"] == 1 for size in ("64", "full") for bound in ("0", "0_1"))

    def test_leaves_out_what_the_kernel_does_not_tell(self):
        values = whole(WORKLOAD.read(changed("search-shaped", "found", split=None), options(**SHAPED)))
        assert "split_64" not in values

    def test_is_declared(self):
        declared = {metric.name for metric in WORKLOAD.metrics_with(options(**SHAPED))}
        assert {sample.metric for sample in read("search-shaped", **SHAPED).samples} == declared

    def test_is_judged_by_packets_at_the_smallest_and_bits_at_the_largest_size(self):
        def judged(**chosen: object) -> list[str]:
            return [metric.name for metric in WORKLOAD.metrics_with(options(**chosen)) if metric.primary]

        assert judged() == ["packets_64_loss_0_1", "bits_full_loss_0_1"]
        assert judged(sizes=[512], loss=["0 %"]) == ["bits_512_loss_0"]
        assert judged(sizes=[1280, 64], loss=["2 %", "1 %"]) == ["bits_1280_loss_2", "packets_64_loss_2"]


class TestFailure:
    def test_of_the_path_is_told_in_the_words_of_the_probe(self):
        with pytest.raises(WorkloadFailed, match="no answer from the server to Count within 12 s"):
            read("search-dies", sizes=[512], loss=["0 %"])

    def test_of_the_reader_is_told_where_the_output_is_cut_short(self):
        whole_text = recorded("search-shaped")["client"]
        with pytest.raises(OutputUnreadable, match="not the last"):
            WORKLOAD.read({"client": whole_text[: whole_text.rindex("{")], "server": ""}, options(**SHAPED))
        with pytest.raises(OutputUnreadable, match="not a JSON object"):
            WORKLOAD.read({"client": whole_text[:-5], "server": ""}, options(**SHAPED))

    @pytest.mark.parametrize("text", ["", "usage: something else\n", "7\n"])
    def test_of_the_reader_is_told_where_it_is_no_output(self, text: str):
        with pytest.raises(OutputUnreadable):
            WORKLOAD.read({"client": text}, options())

    def test_of_the_reader_is_told_where_a_search_is_missing(self):
        with pytest.raises(OutputUnreadable, match="512 B"):
            read("search-shaped", sizes=[64, 512])

    def test_of_the_reader_is_told_where_a_line_has_another_form(self):
        with pytest.raises(OutputUnreadable, match="offered_max"):
            WORKLOAD.read(changed("search-shaped", "found", offered_max="much"), options(**SHAPED))


@pytest.mark.parametrize(
    "wrong",
    [
        {"sizes": []},
        {"sizes": [31]},
        {"sizes": [65508]},
        {"sizes": ["half"]},
        {"sizes": [64, 64]},
        {"loss": []},
        {"loss": [0.1]},
        {"loss": ["101 %"]},
        {"loss": ["0 %", "0.0 %"]},
        {"trial": "0 s"},
        {"resolution": "0 %"},
        {"rate": "1 Mbit/s"},
    ],
)
def test_options_that_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        options(**wrong)
