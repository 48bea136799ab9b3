"""The workload `churn`, read from what the probes really printed, and from what they might."""

import json
import random
from itertools import accumulate
from typing import Any

import pytest
from pydantic import ValidationError

from tunnelmark.errors import OutputUnreadable, TrialVoid, WorkloadFailed
from tunnelmark.workloads.base import Event, Reading
from tunnelmark.workloads.churn import WORKLOAD, ChurnOptions
from unit.workloads.recorded import ends, recorded, series, whole

RECORDED = {
    "events": ["restart", "restart-fresh", "link-flap", "change-address"],
    "duration": "15 s",
    "every": "3500 ms",
    "outage": "500 ms",
    "recover": "3 s",
    "seed": 3,
    "rate": 20,
}
LISTED = {
    "schedule": [{"at": "0 s", "event": "restart"}, {"at": "5 s", "event": "link-flap", "node": "source"}],
    "outage": "1 s",
    "recover": "4 s",
    "duration": "10 s",
    "rate": 100,
}
MIB = 1 << 20


def options(**chosen: object) -> ChurnOptions:
    return ChurnOptions.model_validate(chosen)


def held(files: int, memory: int = 10 * MIB, processes: int = 1) -> dict[str, Any]:
    return {
        "a": {"processes": processes, "memory": memory, "files": files},
        "b": {"processes": 1, "memory": MIB, "files": 5},
    }


def line(kind: str, node: str, begun: float, ended: float | None, **more: Any) -> dict[str, Any]:
    return {"kind": kind, "node": node, "begun": begun, "ended": ended, **more}


EVENTS = [
    line("count-holdings", "", 1.8, 1.81, held=held(7)),
    line("restart", "b", 2.0, 2.2),
    line("count-holdings", "", 6.8, 6.81, held=held(9)),
    line("link-down", "a", 7.0, 7.01),
    line("link-up", "a", 8.0, 8.01),
    line("count-holdings", "", 12.0, 12.01, held=held(12, 12 * MIB, 3)),
]
"""Two events: the stream begins at 1 s, the window at 2 s."""


def outputs(
    missing: set[int], events: list[dict[str, Any]] | None = None, late: int = 0, sent: int = 1100
) -> dict[str, str]:
    """Both ends sent a probe each 10 ms from 1 s on, and saw those arrive 1 ms later that are not missing."""
    said = {
        "start": 10**9,
        "interval_ns": 10**7,
        "sent": sent,
        "latest_us": late,
        "arrivals": [(n, 10_000 * n, 10_000 * n + 1000) for n in range(sent) if n not in missing],
    }
    lines = [{"kind": "deployed", "first_packet": {"a>b": 0.1}}, *(EVENTS if events is None else events)]
    return {"client": json.dumps(said), "server": json.dumps(said), "events": "\n".join(map(json.dumps, lines))}


def arriving(order: list[int]) -> dict[str, str]:
    """Of the same probes those arrive at both ends, in that order, each 1 ms after it and all before it were sent."""
    came = [(n, 10_000 * n, 10_000 * last + 1000) for n, last in zip(order, accumulate(order, max), strict=True)]
    plain = outputs(set())
    ends_ = {end: json.dumps(json.loads(plain[end]) | {"arrivals": came}) for end in ("client", "server")}
    return plain | ends_


def read(missing: set[int], **more: Any) -> Reading:
    return WORKLOAD.read(outputs(missing, **more), options(**LISTED))


def at(begin: float, end: float) -> set[int]:
    """The probes that were sent between two times, in seconds of the clock."""
    return {n for n in range(1100) if begin <= 1 + n / 100 < end}


class TestWhatItStarts:
    def test_is_a_stream_from_before_the_first_event_until_after_the_last(self):
        traffic = WORKLOAD.traffic(ends(), options(**LISTED))
        argv = traffic.client.argv
        assert argv[argv.index("--seconds") + 1] == "11"
        assert argv[argv.index("--rate") + 1] == "100"
        assert (traffic.warmup, traffic.window) == (1, 10)
        assert traffic.timeout > 13

    def test_does_what_is_listed_and_counts_what_is_held_before_each_and_at_the_end(self):
        events = WORKLOAD.traffic(ends(), options(**LISTED)).events
        assert events == (
            Event(0.8, "count-holdings", ""),
            Event(1.0, "restart", "b"),
            Event(5.8, "count-holdings", ""),
            Event(6.0, "link-down", "a"),
            Event(7.0, "link-up", "a"),
            Event(11.0, "count-holdings", ""),
        )

    def test_gives_a_listed_event_the_outage_that_it_asks_for(self):
        listed = [
            {"at": "0 s", "event": "restart-control", "outage": "60 s"},
            {"at": "76 s", "event": "reboot", "node": "all"},
        ]
        traffic = WORKLOAD.traffic(ends(), options(schedule=listed, duration="95 s"))
        assert [(one.at, one.kind, one.node) for one in traffic.events if one.kind != "count-holdings"] == [
            (1.0, "stop-control", "b"),
            (61.0, "start-control", "b"),
            (77.0, "power-off", "*"),
            (79.0, "power-on", "*"),
        ]

    def test_is_the_same_for_every_arm(self):
        first, second = (WORKLOAD.traffic(ends(target=address), options()) for address in ("10.0.0.2", "10.9.0.2"))
        assert first.events == second.events
        assert len(first.events) > 20

    def test_is_another_with_another_seed(self):
        assert WORKLOAD.traffic(ends(), options(seed=2)).events != WORKLOAD.traffic(ends(), options()).events


class TestEachGap:
    def test_belongs_to_the_event_that_it_began_with(self):
        values = whole(read(at(2.0, 2.3) | at(7.0, 8.1)))
        assert values["gap"] == values["gap_link_flap"] == pytest.approx(1.1)
        assert values["gap_restart"] == pytest.approx(0.3)
        assert values["gap_median"] == pytest.approx(0.7)
        assert values["gap_total"] == pytest.approx(1.4)
        assert values["back"] == pytest.approx(1.1, abs=0.02)
        assert values["lost_events"] == 2 * (30 + 110)
        assert values["lost_else"] == values["unaccounted"] == values["not_back"] == 0
        assert values["arrived"] == pytest.approx(100 * (1 - 140 / 1100))

    def test_is_listed_by_the_time_of_its_event(self):
        reading = read(at(2.0, 2.3) | at(7.0, 8.1))
        assert [(time, pytest.approx(value)) for time, value in series(reading, "gap")] == [(0.0, 0.3), (5.0, 1.1)]
        assert series(reading, "lost_events") == [(0.0, 60), (5.0, 220)]

    def test_that_begins_while_the_path_recovers_is_the_event_s(self):
        values = whole(read(at(2.0, 2.3) | at(4.0, 4.2)))
        assert values["lost_events"] == 2 * 50
        assert values["unaccounted"] == 0

    def test_that_no_event_explains_is_reported(self):
        values = whole(read(at(6.5, 6.7)))
        assert values["unaccounted"] == 2  # one each way
        assert values["unaccounted_time"] == pytest.approx(0.4)
        assert (values["lost_events"], values["lost_else"]) == (0, 40)
        assert values["gap"] == 0

    def test_before_the_first_event_is_no_event_s(self):
        assert whole(read(at(1.5, 1.7)))["unaccounted"] == 2

    def test_that_lasts_beyond_the_next_event_is_the_first_one_s(self):
        values = whole(read(at(2.0, 7.5)))
        assert values["gap_restart"] == pytest.approx(5.5)
        assert values["gap_link_flap"] == 0
        assert values["not_back"] == 1

    def test_of_one_probe_is_loss_unless_it_is_at_an_event(self):
        values = whole(read({101, 450}))
        assert (values["lost_events"], values["lost_else"]) == (2, 2)
        assert values["unaccounted"] == 0

    def test_counts_a_lost_probe_once_though_others_come_late(self):
        """Of 100 to 299 only 105 arrives, behind 300."""
        values = whole(WORKLOAD.read(arriving([*range(100), 300, 105, *range(301, 1100)]), options(**LISTED)))
        assert (values["lost_events"], values["lost_else"]) == (2 * 199, 0)

    @pytest.mark.parametrize("seed", range(20))
    def test_and_other_losses_are_all_that_was_lost_in_whatever_order_the_rest_arrives(self, seed):
        source = random.Random(seed)
        there = [n for n in range(1100) if n > 1080 or source.random() > 0.3]
        order = sorted(there, key=lambda n: n + source.choice((0, 0, 5, 300)) * source.random())
        reading = WORKLOAD.read(arriving(order), options(**LISTED))
        values = whole(reading)
        assert sum(lost for _, lost in series(reading, "lost_events")) == values["lost_events"]
        assert values["lost_events"] + values["lost_else"] == 2 * (1100 - len(there))
        assert min(values["lost_events"], values["lost_else"]) >= 0

    def test_shows_in_the_series_of_what_arrived(self):
        passing = dict(series(read(at(7.0, 8.0)), "passing"))
        assert passing[5.0] == 0
        assert {value for time, value in passing.items() if time != 5.0} == {100}


class TestWhatIsHeld:
    def test_is_what_all_nodes_held_and_how_much_more_at_the_end(self):
        values = whole(read(set()))
        assert (values["files"], values["files_more"]) == (12, 5)
        assert (values["memory"], values["memory_more"]) == (11, 2)
        assert (values["files_second_half"], values["memory_second_half"]) == (3, 2)
        assert (values["processes"], values["processes_more"]) == (2, 2)

    def test_is_a_series(self):
        assert series(read(set()), "files") == [(4.8, 14), (10.0, 17)]

    def test_must_have_been_counted_after_the_last_event(self):
        with pytest.raises(OutputUnreadable, match="was not counted after the last event"):
            read(set(), events=[one for one in EVENTS[:-1] if one["begun"] > 1.9])


class TestWhichWay:
    LOOKS = ((1.5, 0.0), (2.1, 90.0), (3.0, 100.0), (6.0, 100.0), (7.5, 50.0), (9.0, 0.0), (11.0, 0.0))

    def test_is_that_before_each_event_and_after_the_last(self):
        looks = [{"time": time, "path_direct": 100 - share, "path_relayed": share} for time, share in self.LOOKS]
        outputs_ = outputs(at(2.0, 2.4) | at(7.0, 8.0)) | {"path-looks": json.dumps({"looks": looks})}
        reading = WORKLOAD.read(outputs_, options(**LISTED))
        assert series(reading, "relayed") == [(0.0, 0.0), (5.0, 100.0), (10.0, 0.0)]
        assert whole(reading)["relayed"] == pytest.approx(100 / 3)
        assert whole(reading)["path_changes"] == 2

    def test_is_not_said_where_it_was_not_watched(self):
        assert "relayed" not in whole(read(set()))


class TestAPathThatStaysDead:
    def test_is_a_failure_that_says_after_which_event(self):
        with pytest.raises(WorkloadFailed, match="did not come back after restart on b"):
            read(at(2.0, 99.0))

    def test_is_one_that_was_never_there(self):
        with pytest.raises(WorkloadFailed, match="not a probe arrived"):
            read(at(0.0, 99.0))

    def test_is_not_one_of_which_the_last_probes_were_lost(self):
        assert whole(read(at(11.7, 99.0)))["lost_else"] == 2 * 30


class TestWhatItCannotRead:
    def test_is_an_event_without_an_end(self):
        with pytest.raises(WorkloadFailed, match=r"the event restart on b did not finish"):
            read(set(), events=[EVENTS[0], line("restart", "b", 2.0, None)])

    def test_is_one_that_began_and_was_not_ended(self):
        with pytest.raises(
            WorkloadFailed, match=r"the event link-down on a, 5\.0 s after the first event, did not finish"
        ):
            read(set(), events=[one for one in EVENTS if one["kind"] != "link-up"])

    def test_may_come_in_any_order(self):
        mixed = [EVENTS[place] for place in (0, 3, 4, 2, 1, 5)]
        assert whole(read(at(7.0, 8.0), events=mixed))["gap_link_flap"] == pytest.approx(1.0)

    def test_is_a_trial_in_which_nothing_was_done(self):
        with pytest.raises(OutputUnreadable, match="no event took place"):
            read(set(), events=[EVENTS[0], EVENTS[-1]])

    def test_is_a_sender_that_paused_for_longer_than_any_gap(self):
        with pytest.raises(TrialVoid, match=r"paused for 1\.50 s"):
            read(at(7.0, 8.0), late=1_500_000)
        read(at(7.0, 8.0), late=900_000)

    @pytest.mark.parametrize("end", ["client", "server"])
    @pytest.mark.parametrize("keep", [0, 1, 300])
    def test_is_output_that_was_cut_short(self, end, keep):
        real = recorded("churn")
        with pytest.raises(OutputUnreadable) as caught:
            WORKLOAD.read({**real, end: real[end][:keep]}, options(**RECORDED))
        assert caught.value.hint


class TestARealTrial:
    def test_has_an_account_of_every_event(self):
        values = whole(WORKLOAD.read(recorded("churn"), options(**RECORDED)))
        assert values["events"] == 4
        assert 0.4 < values["gap_link_flap"] < 0.7
        assert 1.2 < values["gap_change_address"] < 1.8  # Nebula takes no address back within 2 s
        assert values["unaccounted"] == values["lost_else"] == values["processes_more"] == 0

    def test_says_what_is_declared(self):
        declared = {metric.name for metric in WORKLOAD.metrics_with(options(**RECORDED))} - {"relayed", "path_changes"}
        assert {sample.metric for sample in WORKLOAD.read(recorded("churn"), options(**RECORDED)).samples} == declared


class TestOptions:
    @pytest.mark.parametrize(
        ("wrong", "right"),
        [
            ({"events": ["earthquake"]}, "Input should be 'restart'"),
            ({"events": []}, "at least 1 item"),
            ({"events": ["restart", "restart"]}, "once"),
            ({"every": "5 s"}, "an `every` of at least"),
            ({"duration": "5 s"}, "a `duration` of at least"),
            ({**LISTED, "seed": 2}, "no `seed` with a `schedule`"),
            ({**LISTED, "recover": "5 s"}, "in the order of its times"),
            ({**LISTED, "schedule": LISTED["schedule"][::-1]}, "in the order of its times"),  # type: ignore[index]
            ({"schedule": [{"event": "restart"}]}, "Field required"),
            ({"schedule": [{"at": "0 s", "event": "restart", "node": "all"}]}, "'all' with the event 'reboot' only"),
            ({"node": "c"}, "Input should be 'source', 'target', 'both' or 'relay'"),
            ({"rate": 5}, "greater than or equal to 10"),
        ],
    )
    def test_that_are_wrong_are_refused(self, wrong, right):
        with pytest.raises(ValidationError, match=right):
            options(**wrong)

    @pytest.mark.parametrize("chosen", [RECORDED, LISTED, {"duration": "1 h"}])
    def test_are_written_as_they_are_read(self, chosen):
        made = options(**chosen)
        assert options(**made.model_dump(mode="json", exclude_unset=True)) == made
