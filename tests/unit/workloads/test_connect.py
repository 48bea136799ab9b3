"""The workload `connect`, read from what the probes really printed."""

import json
from dataclasses import replace
from typing import Any

import pytest
from pydantic import ValidationError

from tunnelmark.errors import OutputUnreadable, TrialVoid, WorkloadFailed
from tunnelmark.model.steps import UdpPort
from tunnelmark.workloads.base import EVERY_NODE, Event, Reading
from tunnelmark.workloads.connect import WORKLOAD, ConnectOptions
from unit.workloads.recorded import ends, recorded, series, whole

FLAP = {"event": "link-flap", "outage": "0.5 s", "duration": "1 s", "rate": 50}
RESTART = {"event": "restart", "duration": "2 s", "rate": 100}
LOST = {"event": "change-address", "duration": "1 s", "rate": 50}
IDLE = {"event": "none", "idle": "1 s", "rate": 50}


def options(**chosen: object) -> ConnectOptions:
    return ConnectOptions.model_validate(chosen)


def read(name: str, chosen: dict[str, Any]) -> Reading:
    return WORKLOAD.read(recorded(name), options(**chosen))


def changed(name: str, end: str, **what: Any) -> dict[str, str]:
    """Recorded output of which one end says something else."""
    outputs = recorded(name)
    return {**outputs, end: json.dumps(json.loads(outputs[end]) | what)}


def stamped(times: list[tuple[int, int, int]], sent: int, **what: Any) -> dict[str, str]:
    """Output of two ends of which both saw the same: number, sent and arrived in ms since 1 s before the event."""
    said = {
        "start": 10**9,
        "interval_ns": 10**7,
        "sent": sent,
        "latest_us": 0,
        "refused": {},
        "arrivals": [(number, left * 1000, arrived * 1000) for number, left, arrived in times],
    } | what
    events = [
        {"kind": "deployed", "first_packet": {"a>b": 0.1, "b>a": 0.2}},
        {"kind": "restart", "node": "b", "begun": 2.0, "ended": 2.3},
    ]
    return {
        "client": json.dumps(said),
        "server": json.dumps(said),
        "events": "\n".join(json.dumps(line) for line in events),
    }


class TestARebootOfAll:
    def read(self, back: dict[str, float]) -> Reading:
        """A lab of three nodes, and after how many seconds which carried traffic again."""
        outputs = stamped([(n, 10 * n, 10 * n + 1) for n in range(400) if n < 100 or n > 250], 400)
        lines = [json.loads(line) for line in outputs["events"].splitlines()]
        lines[0]["first_packet"] = {"a>b": 0.1, "b>a": 0.2, "a>c": 0.1, "c>a": 0.2}
        lines[1] |= {"kind": "power-off", "node": EVERY_NODE}
        lines += [
            {"kind": "answered", "node": node, "begun": 2.0 + after, "ended": 2.0 + after}
            for node, after in back.items()
        ]
        text = "\n".join(json.dumps(line) for line in lines)
        return WORKLOAD.read({**outputs, "events": text}, options(event="reboot", node="all", duration="2 s", rate=100))

    def test_tells_when_nodes_were_back_first_median_last_and_in_the_mean(self):
        values = whole(self.read({"b": 1.6, "a": 1.0, "c": 1.9}))
        found = [values[f"node_back_{which}"] for which in ("first", "median", "last", "mean")]
        assert found == pytest.approx([1.0, 1.6, 1.9, 1.5])

    @pytest.mark.parametrize("away", ["b", "c"])
    def test_is_a_failure_if_a_node_does_not_come_back_which_would_else_shorten_the_mean(self, away):
        with pytest.raises(WorkloadFailed, match=rf"did not come back within 2 s: {away}$"):
            self.read({node: 1.5 for node in "abc" if node != away})


class TestWhatItStarts:
    def test_is_a_stream_each_way(self):
        traffic = WORKLOAD.traffic(ends(), options())
        (server,) = traffic.servers
        stream = ("tunnelmark-probe", "stream", "--to")
        schedule = ("--port", "5210", "--rate", "200", "--seconds", "16")
        assert server.argv == (*stream, "10.0.0.1:5210", *schedule, "--wait")
        assert traffic.client.argv == (*stream, "10.0.0.2:5210", *schedule, "--linger", "1")
        assert (server.node, traffic.client.node) == ("b", "a")
        assert server.ready == UdpPort(5210)
        assert server.long_running

    def test_writes_ipv6_addresses_as_they_are_read(self):
        traffic = WORKLOAD.traffic(ends("200::1", "200::2"), options())
        assert "[200::2]:5210" in traffic.client.argv

    @pytest.mark.parametrize("kind", ["restart", "restart-fresh", "restart-control", "change-address"])
    def test_does_one_thing_to_the_target(self, kind):
        assert WORKLOAD.traffic(ends(), options(event=kind)).events == (Event(1.0, kind, "b"),)

    def test_does_it_to_the_source_where_that_is_asked(self):
        assert WORKLOAD.traffic(ends(), options(node="source")).events == (Event(1.0, "restart", "a"),)

    def test_takes_a_link_away_for_the_outage_and_watches_it_beyond(self):
        traffic = WORKLOAD.traffic(ends(), options(event="link-flap", outage="2 s", duration="5 s"))
        assert traffic.events == (Event(1.0, "link-down", "b"), Event(3.0, "link-up", "b"))
        assert traffic.window == 7
        assert traffic.timeout > 1 + 7 + 1

    @pytest.mark.parametrize(
        ("kind", "begin", "end"),
        [
            ("restart", "stop", "start"),
            ("restart-fresh", "stop", "start-fresh"),
            ("restart-control", "stop-control", "start-control"),
            ("reboot", "power-off", "power-on"),
            ("partition", "partition", "partition-heal"),
            ("udp-cut", "udp-cut", "udp-heal"),
            ("udp-blocked", "udp-blocked", "udp-open"),
        ],
    )
    def test_does_what_lasts_and_undoes_it(self, kind, begin, end):
        traffic = WORKLOAD.traffic(ends(), options(event=kind, outage="2 s", duration="5 s"))
        assert traffic.events == (Event(1.0, begin, "b"), Event(3.0, end, "b"))
        assert traffic.window == 7

    @pytest.mark.parametrize(("kind", "seconds"), [("reboot", 1), ("partition", 1), ("udp-cut", 1), ("restart", 0)])
    def test_lasts_a_second_unless_it_can_be_over_at_once(self, kind, seconds):
        assert WORKLOAD.traffic(ends(), options(event=kind)).window == 15 + seconds

    def test_does_it_to_the_relay_or_to_all(self):
        there = replace(ends(), relay="r")
        (event,) = WORKLOAD.traffic(there, options(node="relay")).events
        assert event.node == "r"
        assert {one.node for one in WORKLOAD.traffic(there, options(event="reboot", node="all")).events} == {EVERY_NODE}

    def test_pauses_where_nothing_happens(self):
        traffic = WORKLOAD.traffic(ends(), options(event="none", idle="3 s"))
        assert traffic.events == ()
        words = traffic.client.argv
        assert words[words.index("--pause-after") :][:4] == ("--pause-after", "1", "--pause", "3")
        assert (traffic.warmup, traffic.window) == (4, 1)


class TestAGap:
    def test_is_as_long_as_the_link_was_away(self):
        values = whole(read("connect-flap", FLAP))
        assert values["gap"] == pytest.approx(0.5, abs=0.01)
        assert values["gap_to_target"] == pytest.approx(0.5, abs=0.01)
        assert values["gap_to_source"] == pytest.approx(0.5, abs=0.01)
        assert values["event"] == pytest.approx(0.5, abs=0.01)
        assert values["gap"] <= values["back"] < 0.53
        assert values["lost"] == 50
        assert values["gap_before"] < 0.02

    def test_is_as_long_as_a_daemon_was_away(self):
        values = whole(read("connect-restart", RESTART))
        assert 0.03 < values["gap"] < 0.1
        assert values["gap"] == max(values["gap_to_target"], values["gap_to_source"])
        assert values["gap"] < values["back"] < 0.2
        assert values["lost"] == 11

    def test_shows_in_the_series(self):
        passing = series(read("connect-flap", FLAP), "passing")
        assert [value for time, value in passing if 0.15 < time < 0.35] == [0, 0]
        assert [value for time, value in passing if 0.65 < time < 1.35] == [100] * 7
        assert passing[0][0] == 0

    def test_is_nothing_without_one(self):
        values = whole(WORKLOAD.read(stamped([(n, 10 * n, 10 * n + 1) for n in range(300)], 300), options(**RESTART)))
        assert values["gap"] == pytest.approx(0)
        assert values["back"] == values["lost"] == 0
        assert values["event"] == pytest.approx(0.3)

    def test_is_not_what_the_sender_did_not_send(self):
        late = [(n, 10 * n + (90 if n == 150 else 0), 10 * n + 1 + (90 if n == 150 else 0)) for n in range(300)]
        values = whole(WORKLOAD.read(stamped(late, 300), options(**RESTART)))
        assert values["gap"] == pytest.approx(0)

    def test_is_what_was_kept_and_came_late(self):
        kept = [(n, 10 * n, max(10 * n, 1700) + 1 if n > 120 else 10 * n + 1) for n in range(300)]
        values = whole(WORKLOAD.read(stamped(kept, 300), options(**RESTART)))
        assert values["gap"] == pytest.approx(1.701 - 1.201 - 0.01)
        assert values["back"] == pytest.approx(0.701)
        assert values["lost"] == 0

    def test_is_not_a_pause_long_after_the_event_in_which_nothing_is_lost(self):
        def kept(until: int) -> list[tuple[int, int, int]]:
            """All that was sent in the 200 ms before `until` came then."""
            return [(n, 10 * n, (until if until - 200 < 10 * n < until else 10 * n) + 1) for n in range(600)]

        assert whole(WORKLOAD.read(stamped(kept(1600), 600), options(**RESTART)))["gap"] == pytest.approx(0.19)
        assert whole(WORKLOAD.read(stamped(kept(5000), 600), options(**RESTART)))["gap"] == pytest.approx(0)

    def test_is_one_long_after_the_event_if_probes_are_lost(self):
        hole = [(n, 10 * n, 10 * n + 1) for n in range(600) if not 500 <= n < 520]
        values = whole(WORKLOAD.read(stamped(hole, 600), options(**RESTART)))
        assert values["gap"] == pytest.approx(0.2)
        assert values["back"] == pytest.approx(4.201)

    def test_counts_a_probe_that_came_twice_once(self):
        twice = [(n, 10 * n, 10 * n + 1) for n in range(300) for _ in range(2)]
        assert whole(WORKLOAD.read(stamped(twice, 300), options(**RESTART)))["lost"] == 0

    def test_before_the_event_is_told_apart(self):
        hole = [(n, 10 * n, 10 * n + 1) for n in range(300) if not 40 <= n < 60]
        values = whole(WORKLOAD.read(stamped(hole, 300), options(**RESTART)))
        assert values["gap"] == pytest.approx(0)
        assert values["gap_before"] == pytest.approx(0.2)


class TestAPathThatStaysDead:
    def test_is_a_failure_that_says_for_how_long_it_was_watched(self):
        with pytest.raises(WorkloadFailed, match="did not come back within 1 s"):
            read("connect-lost", LOST)

    def test_is_one_that_came_back_and_went_again(self):
        again = [(n, 10 * n, 10 * n + 1) for n in range(300) if n < 100 or 150 <= n < 240]
        with pytest.raises(WorkloadFailed, match=r"the last arrived 1\.39 s after"):
            WORKLOAD.read(stamped(again, 300), options(**RESTART))

    def test_is_one_that_went_again_for_less_time_than_before(self):
        again = [(n, 10 * n, 10 * n + 1) for n in range(800) if n < 100 or 400 <= n < 600]
        with pytest.raises(WorkloadFailed, match=r"the last arrived 4\.99 s after"):
            WORKLOAD.read(stamped(again, 800), options(**RESTART))

    def test_is_not_one_of_which_the_last_probes_were_lost(self):
        some = [(n, 10 * n, 10 * n + 1) for n in range(297)]
        assert whole(WORKLOAD.read(stamped(some, 300), options(**RESTART)))["lost"] == 6

    def test_never_carried_a_probe(self):
        with pytest.raises(WorkloadFailed, match="not a probe arrived from source to target"):
            WORKLOAD.read(changed("connect-flap", "server", arrivals=[]), options(**FLAP))


class TestTheFirstPacket:
    def test_is_timed_cold_and_warm(self):
        reading = read("connect-idle", IDLE)
        values = whole(reading)
        assert set(values) == {"cold", "warm", "usual"}
        assert 0 < values["cold"] < 5
        assert 0 < values["warm"] < 50
        assert 0 < values["usual"] < 50

    def test_is_timed_from_the_one_that_was_lost(self):
        lost = [(n, 10 * n + (1000 if n >= 100 else 0), 10 * n + (1001 if n >= 100 else 1)) for n in range(200)]
        del lost[100:103]
        values = whole(WORKLOAD.read(stamped(lost, 200), options(event="none", idle="1 s", rate=100)))
        assert values["warm"] == pytest.approx(31)
        assert values["usual"] == pytest.approx(1)
        assert values["cold"] == 0.2

    def test_is_timed_without_a_usual_one_where_none_came_before_the_pause(self):
        after = [(n, 10 * n + 1000, 10 * n + 1001) for n in range(100, 200)]
        values = whole(WORKLOAD.read(stamped(after, 200), options(event="none", idle="1 s", rate=100)))
        assert values == {"warm": pytest.approx(1), "cold": 0.2}

    def test_that_never_comes_is_a_failure(self):
        none = [(n, 10 * n, 10 * n + 1) for n in range(100)]
        with pytest.raises(WorkloadFailed, match="no probe arrived in 1 s after 1 idle seconds"):
            WORKLOAD.read(stamped(none, 200), options(event="none", idle="1 s", rate=100))


class TestWhatItCannotRead:
    @pytest.mark.parametrize("end", ["client", "server"])
    @pytest.mark.parametrize("keep", [0, 1, 300])
    def test_is_output_that_was_cut_short(self, end, keep):
        outputs = recorded("connect-flap")
        with pytest.raises(OutputUnreadable) as caught:
            WORKLOAD.read({**outputs, end: outputs[end][:keep]}, options(**FLAP))
        assert caught.value.hint

    def test_is_a_trial_whose_event_never_began(self):
        outputs = recorded("connect-flap")
        deployed = outputs["events"].splitlines()[0]
        with pytest.raises(OutputUnreadable, match="the event never began"):
            WORKLOAD.read({**outputs, "events": deployed}, options(**FLAP))

    def test_is_a_trial_of_which_nobody_knows_what_happened(self):
        outputs = recorded("connect-flap")
        del outputs["events"]
        with pytest.raises(OutputUnreadable):
            WORKLOAD.read(outputs, options(**FLAP))

    def test_is_a_stream_that_paused_for_longer_than_the_gap(self):
        with pytest.raises(TrialVoid, match=r"paused for 0\.30 s"):
            WORKLOAD.read(changed("connect-restart", "server", latest_us=300_000), options(**RESTART))

    def test_is_not_an_event_that_had_no_end(self):
        outputs = stamped([(n, 10 * n, 10 * n + 1) for n in range(300)], 300)
        outputs["events"] = outputs["events"].replace('"ended": 2.3', '"ended": null')
        assert "event" not in whole(WORKLOAD.read(outputs, options(**RESTART)))


@pytest.mark.parametrize(("name", "chosen"), [("connect-flap", FLAP), ("connect-idle", IDLE)])
def test_what_it_says_is_declared(name, chosen):
    declared = {metric.name for metric in WORKLOAD.metrics_with(options(**chosen))}
    assert {sample.metric for sample in read(name, chosen).samples} == declared


class TestOptions:
    @pytest.mark.parametrize(
        ("wrong", "right"),
        [
            ({"event": "earthquake"}, "Input should be 'none', 'restart'"),
            ({"event": "change-address", "outage": "1 s"}, "with the events .* only"),
            ({"event": "restart", "idle": "1 s"}, "with the event 'none' only"),
            ({"event": "none", "duration": "1 s"}, "nothing happens"),
            ({"node": "c"}, "Input should be 'source', 'target', 'relay' or 'all'"),
            ({"node": "all"}, "the node 'all' with the event 'reboot' only"),
            ({"rate": 1}, "greater than or equal to 50"),
            ({"rate": 5000}, "less than or equal to 2000"),
            ({"duration": "long"}, "a duration above zero"),
            ({"seconds": 1}, "not permitted"),
        ],
    )
    def test_that_are_wrong_are_refused(self, wrong, right):
        with pytest.raises(ValidationError, match=right):
            options(**wrong)

    def test_are_written_as_they_are_read(self):
        chosen = options(**FLAP)
        assert options(**chosen.model_dump(mode="json", exclude_unset=True)) == chosen
