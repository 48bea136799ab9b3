"""The workload `video`, read from what the RIST tools and ffmpeg really printed."""

import re
from ipaddress import ip_address
from pathlib import Path

import pytest
from pydantic import ValidationError

from tunnelmark.errors import OutputUnreadable, WorkloadFailed
from tunnelmark.workloads.base import Endpoints, Reading, Traffic
from tunnelmark.workloads.video import WORKLOAD, VideoOptions
from unit.workloads.recorded import recorded, series, whole

PACKETS = 947  # of the recorded clip: 1,245,124 bytes, 1,316 in each


def options(**chosen: object) -> VideoOptions:
    return VideoOptions.model_validate({"duration": "3 s"} | chosen)


def traffic(source: str = "10.0.0.1", target: str = "10.0.0.2", **chosen: object) -> Traffic:
    ends = Endpoints("a", "b", ip_address(source), ip_address(target), assets={"video-clip": Path("/clip")})
    return WORKLOAD.traffic(ends, options(**chosen))


def read(name: str, **chosen: object) -> Reading:
    return WORKLOAD.read(recorded(name), options(**chosen))


def changed(name: str, program: str, pattern: str, by: str, **chosen: object) -> Reading:
    """The reading of a recorded run with something else in the output of one program."""
    outputs = recorded(name)
    text = re.sub(pattern, by, outputs[program], flags=re.MULTILINE)
    assert text != outputs[program]
    return WORKLOAD.read(outputs | {program: text}, options(**chosen))


class TestWhatItStarts:
    def test_sends_from_source_to_target(self):
        started = traffic()
        recorder, receiver, sender = started.servers
        assert (recorder.node, receiver.node, sender.node, started.client.node) == ("b", "b", "a", "a")
        assert "rist://@10.0.0.2:40052?buffer=1000" in receiver.argv
        assert "rist://10.0.0.2:40052?buffer=1000&cname=tunnelmark" in sender.argv

    def test_ends_the_recorder_last_so_that_it_has_all_when_it_compares(self):
        assert [server.name for server in reversed(traffic().servers)] == ["sender", "receiver", "recorder"]

    def test_sends_the_clip_as_it_is_at_its_rate(self):
        argv = " ".join(traffic(rate="5 Mbit/s").client.argv)
        assert "-re -i /clip/clip.ts -c copy " in argv
        assert "-muxrate 5000000 " in argv
        assert "pkt_size=1316" in argv

    def test_brackets_an_ipv6_address(self):
        assert "rist://@[200::2]:40052?buffer=1000" in traffic("200::1", "200::2").servers[1].argv

    def test_compares_only_when_asked(self):
        assert "/clip/clip.ts" in traffic().servers[0].argv
        assert "/clip/clip.ts" not in traffic(picture=False).servers[0].argv

    def test_waits_until_the_buffer_is_empty(self):
        short, long = traffic(buffer="100 ms"), traffic(buffer="2 s")
        assert short.client.argv[5] == "0.85"
        assert long.client.argv[5] == "2.75"
        assert long.timeout == pytest.approx(short.timeout + 1.9)

    def test_sends_a_clip_made_for_its_length_and_rate(self):
        (asset,) = WORKLOAD.assets_with(options(duration="8 s", rate="2 Mbit/s"))
        (argv,) = asset.commands
        said = " ".join(argv)
        assert "-t 8 " in said
        assert "-muxrate 2000000 clip.ts" in said


class TestWhatItReads:
    def test_is_what_was_delivered_with_recovery_and_without(self):
        values = whole(read("video-loss"))
        assert values["quality"] == 100
        assert values["first_time"] == pytest.approx(100 * (PACKETS - 10) / PACKETS)
        assert values["recovered"] == values["retries"] == 10
        assert values["lost"] == values["late"] == 0

    def test_is_what_came_too_late(self):
        values = whole(read("video-late"))
        assert values["lost"] == 11
        assert values["late"] == 8
        assert values["reordered"] == 421
        assert values["quality"] == pytest.approx(100 * (PACKETS - 11) / PACKETS)

    def test_is_quality_over_time_as_the_tool_itself_prints_it(self):
        printed = re.findall(r'"quality":([0-9.]+),"received":[1-9]', recorded("video-late")["receiver"])
        found = [value for _, value in series(read("video-late"), "quality_shown")]
        assert found == pytest.approx([float(value) for value in printed], abs=0.011)  # it cuts off digits
        given_up = [value for _, value in series(read("video-late"), "given_up")]
        assert sum(given_up) == 10  # of the 11 that were lost: what no packet follows is not missed

    @pytest.mark.parametrize(("counted", "given_up"), [("0", 0), ("65537", 1), ("196609", 1), ("65530", 0)])
    def test_is_no_turn_of_the_receivers_ring(self, counted: str, given_up: int):
        # 65536, 65537 and 196609 were counted of clips of 400 packets that came out of order
        reading = changed("video-loss", "receiver", r'"lost":0,("avg_buffer_time":\d+)', rf'"lost": {counted},\1')
        values = [value for _, value in series(reading, "given_up")]
        assert values == [given_up] * len(values)

    def test_is_an_outage_though_the_sender_held_the_rest_back(self):
        values = whole(read("video-outage"))
        got = re.search(r"^got (\d+) bytes", recorded("video-outage")["recorder"])
        assert got is not None
        assert values["lost"] == PACKETS - int(got[1]) / 1316
        assert values["quality"] == pytest.approx(24.92, abs=0.01)

    def test_is_the_picture_as_sent_where_nothing_was_lost(self):
        values = whole(read("video-loss"))
        assert values["ssim"] == 1
        assert values["frozen"] == values["freezes"] == 0

    def test_counts_frames_before_the_first_picture_as_like_nothing(self):
        # 60 of 90 frames were seen, 0.900 like the clip
        values = whole(read("video-late"))
        assert values["ssim"] == pytest.approx(0.900269 * 60 / 90, abs=1e-5)
        assert values["frozen"] == pytest.approx(1)
        assert values["freezes"] == 1

    def test_is_a_freeze_that_lasts_to_the_end(self):
        values = whole(read("video-outage"))
        assert values["frozen"] == pytest.approx(1.4 + 3 - 2.03333)
        assert values["freezes"] == 1

    def test_is_a_freeze_that_ends(self):
        reading = changed("video-outage", "recorder", r"(.*)freeze_start: .*$", r"\g<0>\n\1freeze_end: 3.03333")
        assert whole(reading)["frozen"] == pytest.approx(1)

    def test_is_no_picture_at_all_where_nothing_could_be_decoded(self):
        values = whole(changed("video-outage", "recorder", r"^n:.*\n", ""))
        assert (values["ssim"], values["frozen"], values["freezes"]) == (0, 3, 1)

    def test_is_what_was_missing_over_time(self):
        points = series(read("video-loss"), "missing")
        assert sum(value for _, value in points) == 10
        assert points[0][0] == 0
        assert points[-1][0] == pytest.approx(3, abs=0.3)

    def test_is_the_time_that_sending_took(self):
        assert read("video-loss").window == pytest.approx(3.039)

    @pytest.mark.parametrize("picture", [True, False])
    def test_is_declared(self, picture):
        declared = {metric.name for metric in WORKLOAD.metrics_with(options(picture=picture))}
        assert {sample.metric for sample in read("video-loss", picture=picture).samples} == declared

    def test_is_judged_by_delivery_and_picture(self):
        assert [metric.name for metric in WORKLOAD.metrics if metric.primary] == ["quality", "ssim"]


class TestFailure:
    def test_is_a_clip_of_which_nothing_arrived(self):
        with pytest.raises(WorkloadFailed, match="not a packet"):
            changed("video-loss", "receiver", r'"received":\d+', '"received":0')

    def test_is_a_sender_that_ended_in_the_middle(self):
        outputs = recorded("video-loss")
        half = outputs["sender"][: len(outputs["sender"]) // 2]
        with pytest.raises(WorkloadFailed, match=r"sent \d+ packets, the clip has 947"):
            WORKLOAD.read(outputs | {"sender": half}, options())

    def test_is_an_ffmpeg_that_cannot_send(self):
        with pytest.raises(WorkloadFailed, match="ended with code 1"):
            changed("video-loss", "client", "code 0", "code 1")

    def test_is_not_a_clip_that_was_sent_late_of_which_the_run_asks_why(self):
        reading = changed("video-loss", "client", "for 3039 ms", "for 4500 ms")
        assert reading.starved == "sending the clip took 4.5 s instead of 3 s"
        assert whole(reading)["behind"] == pytest.approx(1.5)
        in_time = read("video-loss")
        assert in_time.starved == ""
        assert whole(in_time)["behind"] == pytest.approx(0.039)


class TestWhatItCannotRead:
    @pytest.mark.parametrize("program", ["client", "receiver", "recorder"])
    def test_is_nothing(self, program):
        with pytest.raises(OutputUnreadable):
            WORKLOAD.read(recorded("video-loss") | {program: ""}, options())

    def test_is_a_receiver_without_statistics(self):
        outputs = recorded("video-loss")
        with pytest.raises(OutputUnreadable, match="no statistics"):
            WORKLOAD.read(outputs | {"receiver": outputs["receiver"][:500]}, options())

    @pytest.mark.parametrize("name", ["received", "recovered_total", "retries"])
    def test_is_statistics_that_lack_a_figure(self, name):
        with pytest.raises(OutputUnreadable, match=name):
            changed("video-loss", "receiver", f'"{name}"', '"other"')

    def test_is_more_packets_than_were_sent(self):
        with pytest.raises(OutputUnreadable, match="of 10 that were sent"):
            changed("video-loss", "client", "clip .* bytes", "clip 13000 bytes")

    def test_is_a_comparison_without_frames_where_all_arrived(self):
        with pytest.raises(OutputUnreadable, match="compared 0 of 90 frames"):
            changed("video-loss", "recorder", r"^n:.*\n", "")

    def test_is_a_comparison_that_was_not_made(self):
        with pytest.raises(OutputUnreadable, match="did not compare"):
            changed("video-loss", "recorder", r"^compared[\s\S]*", "")

    def test_is_a_clip_of_another_length(self):
        with pytest.raises(OutputUnreadable, match="compared 90 of 60 frames"):
            changed("video-loss", "client", "for 3039 ms", "for 2039 ms", duration="2 s")


class TestOptions:
    @pytest.mark.parametrize(
        ("wrong", "right"),
        [
            ({"duration": "1 s"}, "greater than or equal to 2"),
            ({"duration": "2.5 s"}, "whole seconds"),
            ({"rate": "1 Gbit/s"}, "less than or equal to"),
            ({"buffer": "20 ms"}, "'50 ms' to '10 s'"),
            ({"buffer": "1 min"}, "'50 ms' to '10 s'"),
            ({"picture": 1}, "valid boolean"),
        ],
    )
    def test_that_are_wrong_are_refused(self, wrong, right):
        with pytest.raises(ValidationError, match=right):
            options(**wrong)

    def test_are_written_as_they_are_read(self):
        chosen = options(rate="5 Mbit/s", buffer="300 ms", picture=False)
        assert options(**chosen.model_dump(mode="json")) == chosen
