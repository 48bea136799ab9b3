"""What bound a trial: each kind of bottleneck is named, and without evidence nothing is."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest

from tunnelmark.analyse.analysis import judge
from tunnelmark.analyse.bottleneck import apart, apart_from_direct, of_cell, of_trial
from tunnelmark.analyse.model import Bottleneck, Scenario
from tunnelmark.record.results import MetricInfo, SampleRow, TrialRow, WorkloadInfo
from unit.builders import RATE, TCP, UDP, Study

QUIET = {
    **{f"core_{end}": 0.5 for end in ("source", "target")},
    **{f"thread_{end}": 0.4 for end in ("source", "target")},
    "wire_source": 0.5e9,
    "wire_target": 0.01e9,
    "out_source": 100_000.0,
    "out_target": 10_000.0,
    "sent_source": 100_000.0,
    "got_target": 99_990.0,
    "emulator": 0.3,
    "tcp_busy_source": 0.99,
    "tcp_window_source": 0.0,
    "tcp_buffer_source": 0.01,
}
"""Half of the link and half of both cores in use: nothing that binds."""

SWAP = {"source": "target", "target": "source"}


def row(use: WorkloadInfo = TCP, value: float = 0.4e9, **limits: float) -> TrialRow:
    metric = next(metric for metric in use.metrics if metric.primary)
    return TrialRow(
        *("001.tinc.gigabit.pair.tcp", 0, 1, "tinc", "gigabit", "pair", use.name, "a>b", "ok", 0.0, {}),
        samples=(SampleRow(metric.name, metric.unit, value),),
        limits=QUIET | limits,
    )


def said(**limits: float) -> str:
    bound = of_trial(replace(row(), limits=QUIET | limits), TCP, RATE)
    assert bound is not None
    return bound.text


@pytest.mark.parametrize("again", ["sndbuf", "tun"])
def test_what_the_senders_own_queue_refuses_is_lost_once(again: str):
    """As netem on a sending host refuses it: the socket of a program, or the kernel's WireGuard, counts it, too."""
    twice = {"drop_link_source": 1000.0, f"drop_{again}_source": 1000.0}
    assert not said(**twice).endswith("the link's queue")
    assert said(**twice, drop_refused_source=1000.0).endswith("the link's queue")
    more = {"drop_sndbuf_source": 1000.0, "drop_tun_source": 3000.0, "drop_link_source": 1000.0}
    assert said(**more, drop_refused_source=1000.0).endswith("the sender's tunnel interface")


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        ({}, "unknown"),
        ({"core_source": 0.97}, "the sender's core"),
        ({"core_target": 0.97}, "the receiver's core"),
        ({"core_source": 0.96, "core_target": 0.99}, "the receiver's core"),
        ({"thread_source": 0.98}, "the sender's core"),
        ({"thread_target": 0.98}, "the receiver's core"),
        ({"wire_source": 0.98e9}, "the link"),
        ({"emulator": 0.97}, "the emulator"),
        ({"tcp_window_source": 0.8}, "the window"),
        ({"tcp_buffer_source": 0.8}, "the window"),
        ({"tcp_window_source": 0.45, "tcp_buffer_source": 0.4}, "the window"),
        ({"tcp_busy_source": 0.5}, "the generator"),
        ({"drop_tun_source": 500.0}, "loss: the sender's tunnel interface"),
        ({"drop_sndbuf_source": 500.0}, "loss: a send buffer of the sender"),
        ({"drop_card_source": 500.0}, "loss: the sender's network interface"),
        ({"drop_card_target": 500.0}, "loss: the receiver's network interface"),
        ({"drop_link_source": 500.0}, "loss: the link's queue"),
        ({"drop_lossy_source": 500.0}, "loss: the link, as its profile says"),
        ({"drop_rcvbuf_target": 500.0}, "loss: the VPN's receive buffer"),
        ({"drop_rcvbuf_app_target": 500.0}, "loss: the workload's receive buffer"),
        ({"got_target": 99_000.0}, "loss: inside the VPN"),
        ({"drop_rcvbuf_target": 4.0}, "unknown"),  # fewer than anybody would call a loss
        ({"drop_rcvbuf_source": 500.0}, "unknown"),  # on the way back: acknowledgements
    ],
)
def test_each_bottleneck_is_named(limits: dict[str, float], expected: str) -> None:
    assert said(**limits) == expected


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        ({"core_target": 0.99, "drop_rcvbuf_target": 500.0}, "the receiver's core"),  # its program came too late
        ({"core_source": 0.99, "tcp_buffer_source": 0.9}, "the sender's core"),
        ({"core_target": 0.99, "tcp_window_source": 0.9}, "the receiver's core"),
        ({"tcp_window_source": 0.9, "drop_link_source": 500.0}, "the window"),
        ({"tcp_busy_source": 0.01, "drop_rcvbuf_target": 500.0}, "the generator"),
        ({"tcp_busy_source": 0.3, "drop_rcvbuf_target": 500.0}, "the generator"),  # and some time-outs
        (  # its program did not get all of its turns
            {"tcp_busy_source": 0.5, "drop_rcvbuf_target": 500.0},
            "loss: the VPN's receive buffer",
        ),
        ({"wire_source": 0.99e9, "core_source": 0.99, "drop_link_source": 900.0}, "the link"),
        (  # on two cores, the link's programs take most of the receiver's
            {"core_target": 1.0, "used_target": 0.07, "waited_target": 0.92, "emulator": 0.92},
            "the emulator",
        ),
        (  # other programs of the lab do
            {"core_target": 1.0, "used_target": 0.07, "waited_target": 0.92, "emulator": 0.1},
            "the receiver's core",
        ),
        ({"core_target": 1.0, "used_target": 0.7, "waited_target": 0.3, "emulator": 0.3}, "the receiver's core"),
        (  # a flood over a short queue: its core is busy with datagrams that find no room
            {"core_source": 1.0, "core_target": 0.96, "drop_link_source": 370_000.0, "out_source": 12_000.0},
            "loss: the link's queue",
        ),
        ({"core_source": 1.0, "drop_link_source": 6_800.0, "out_source": 52_000.0}, "the sender's core"),
        (  # what left the queue was lost behind it
            {"core_target": 1.0, "drop_link_source": 90_000.0, "drop_rcvbuf_target": 9_000.0},
            "the receiver's core",
        ),
        (
            {"drop_tun_source": 50.0, "drop_rcvbuf_target": 500.0},
            "loss: the VPN's receive buffer",
        ),
    ],
)
def test_what_follows_from_a_bottleneck_is_not_taken_for_it(limits: dict[str, float], expected: str) -> None:
    assert said(**limits) == expected


def test_losses_alone_do_not_limit_a_stream_that_had_nothing_to_send_while_its_core_was_always_busy() -> None:
    """As it was read: a ring of six streams on two full cores was bound by "loss: the link's queue"."""
    full = row(core_source=0.964, used_source=0.8, waited_source=0.1)
    places = ("drop_link_source", "drop_rcvbuf_target")
    for place, (busy, what) in product(places, ((0.67, "unknown"), (0.95, "loss"))):
        ring = replace(full, limits={**full.limits, place: 710.0, "tcp_busy_source": busy}, host={"other_cpu": 0.13})
        bound = of_trial(ring, TCP, RATE)
        assert bound is not None and bound.what == what


def test_a_core_that_others_took_is_no_bottleneck_of_the_arm_and_one_that_it_took_itself_is() -> None:
    busy = replace(row(core_source=1.0), host={"other_cpu": 0.8, "steal": 0.1})
    bound = of_trial(busy, TCP, RATE)
    assert bound is not None
    assert bound.what == "unknown"
    for own, core, what in ((0.97, 0.97, "sender's core"), (0.9, 1.0, "sender's core"), (0.9, 0.93, "unknown")):
        taken = replace(busy, limits={**busy.limits, "used_source": own, "core_source": core})
        bound = of_trial(taken, TCP, RATE)
        assert bound is not None
        assert bound.what == what, (own, core)


def test_a_core_that_the_arm_wanted_whenever_others_had_it_is_its_bottleneck() -> None:
    """With another program of the same weight on its core it gets half of that, and would use all of it."""
    busy = replace(row(core_source=1.0, tcp_window_source=0.8), host={"other_cpu": 1.0})
    for own, waited, what in ((0.6, 0.38, "sender's core"), (0.6, 0.1, "window"), (0.1, 0.1, "window")):
        taken = replace(busy, limits={**busy.limits, "used_source": own, "waited_source": waited})
        bound = of_trial(taken, TCP, RATE)
        assert bound is not None
        assert bound.what == what, (own, waited)


def test_a_download_is_told_of_the_end_that_sends() -> None:
    back = {name.replace(end, SWAP[end]): value for name, value in QUIET.items() for end in SWAP if name.endswith(end)}
    bound = of_trial(replace(row(), limits=back | {"core_target": 0.99}), TCP, RATE)
    assert bound is not None
    assert bound.what == "sender's core"


def test_lost_inside_is_not_told_of_super_packets_or_fragments() -> None:
    assert said(got_target=90_000.0, out_source=200_000.0) == "unknown"


def test_lost_inside_is_not_told_of_packets_that_the_vpn_has_merged() -> None:
    alike = {"got_target": 90_000.0, "sent_size_source": 1280.0}
    assert said(**alike, got_size_target=1283.0) == "loss: inside the VPN"
    assert said(**alike, got_size_target=1420.0) == "unknown"


def test_a_link_without_a_rate_is_never_full() -> None:
    bound = of_trial(row(wire_source=9e9), TCP, None)
    assert bound is not None
    assert bound.what == "unknown"


def test_the_load_is_named_where_all_of_it_arrived_however_busy_the_cores_were() -> None:
    for value, expected in ((199e6, "load"), (150e6, "receiver's core")):
        bound = of_trial(row(UDP, value, core_target=1.0), UDP, RATE)
        assert bound is not None
        assert bound.what == expected


def flooded(**limits: float) -> str:
    """What is said of a link that was full, behind which the receiver had no room for most datagrams."""
    bare = {name: count for name, count in QUIET.items() if not name.startswith(("sent_", "got_", "tcp_"))}
    lost = {"wire_source": 0.99e9, "core_source": 1.0, "drop_rcvbuf_app_target": 90_000.0}
    trial = replace(row(UDP, value=0.03e9), limits=bare | lost | limits)
    trial = replace(trial, samples=(*trial.samples, SampleRow("offered", "bit/s", UDP.offers("gigabit") or 0.0)))
    bound = of_trial(trial, UDP, RATE)
    assert bound is not None
    return bound.text


def test_a_slow_stream_of_which_links_took_some_packets_is_not_held_by_its_program() -> None:
    slow = {"tcp_busy_source": 0.85, "out_source": 450.0, "sent_source": 450.0, "got_target": 450.0}
    assert said(**slow) == "the generator"
    assert said(**slow, drop_lossy_source=3.0) == "unknown", "too few for a cause, too many for another"
    assert said(**slow, drop_lossy_source=9.0) == "loss: the link, as its profile says"


@pytest.mark.parametrize(
    ("by_tcp", "more", "expected"),
    [
        (100.0, {}, "loss: inside the VPN, whose own TCP was slower"),
        (0.0, {}, "the sender's core"),  # by UDP what it could not send may be what it had no time for
        (100.0, {"core_target": 0.99}, "the sender's core"),  # nor may the receiver have had any
        (100.0, {"got_target": 200_000.0}, "the sender's core"),
    ],
)
def test_a_vpn_over_tcp_that_throws_a_flood_away_is_not_held_by_its_core(
    by_tcp: float, more: dict[str, float], expected: str
) -> None:
    seen = {"core_source": 1.0, "sent_source": 260_000.0, "got_target": 1_000.0, "out_source": 4_400.0} | more
    trial = replace(row(UDP, value=2e6), limits=QUIET | seen)
    trial = replace(trial, samples=(*trial.samples, SampleRow("path_tcp", "%", by_tcp)))
    bound = of_trial(trial, UDP, RATE)
    assert bound is not None
    assert bound.text == expected
    assert bound.processor == (expected == "the sender's core")


def test_a_full_link_is_not_the_limit_where_most_is_lost_behind_it() -> None:
    assert flooded(core_target=0.99) == "the receiver's core"
    assert "the workload's receive buffer" in flooded()
    assert flooded(core_target=0.99, drop_rcvbuf_app_target=2_000.0) == "the link", "few were lost"
    assert flooded(sent_source=100_000.0) == "the sender's core", "what a tunnel was given may not have left"


def test_a_generator_that_says_it_was_at_its_end_is_believed() -> None:
    metric = MetricInfo("requests", "1/s", "requests", "higher", "ratio", True, limited_by="exhausted")
    use = replace(TCP, metrics=(metric,))
    for exhausted, expected in ((1.0, "generator"), (0.0, "unknown")):
        one = replace(row(use), samples=(SampleRow("requests", "1/s", 5.0), SampleRow("exhausted", "", exhausted)))
        bound = of_trial(one, use, RATE)
        assert bound is not None
        assert bound.what == expected


def test_nothing_is_said_of_a_trial_that_nobody_watched_or_that_failed() -> None:
    assert of_trial(replace(row(), limits={}), TCP, RATE) is None
    assert of_trial(replace(row(), outcome="failed"), TCP, RATE) is None
    assert of_cell([None, None]) is None


def test_a_cell_is_bound_by_what_bound_more_than_half_of_its_trials() -> None:
    window, loss, link = Bottleneck("window"), Bottleneck("loss", "the link's queue"), Bottleneck("link")
    found = of_cell([window, window, loss, None])
    assert found is not None
    assert (found.what, found.count, found.total) == ("window", 2, 3)
    mixed = of_cell([window, loss, link])
    assert mixed is not None
    assert mixed.what == "unknown"
    assert "link 1" in mixed.why


def test_losses_are_one_bottleneck_and_it_names_every_place_that_lost_many() -> None:
    """As it was: "it differs from trial to trial: loss 6", where each trial lost about as many packets in two places."""
    both = [{"drop_lossy_source": link, "drop_rcvbuf_target": 100.0} for link in (90.0, 110.0, 130.0)]
    trials = [of_trial(replace(row(), limits=QUIET | one), TCP, RATE) for one in both]
    assert {one.place for one in trials if one is not None} == {
        "the link, as its profile says",
        "the VPN's receive buffer",
    }
    found = of_cell(trials)
    assert found is not None
    assert found.text == "loss: the link, as its profile says, and the VPN's receive buffer"
    assert (found.count, found.total, found.processor) == (3, 3, False)
    assert sum(found.lost.values()) == pytest.approx(1)
    assert found.lost["the VPN's receive buffer"] == pytest.approx(0.478, abs=0.01)
    assert found.lost_by_trial["the VPN's receive buffer"] == pytest.approx((100 / 230, 100 / 190))
    few = of_cell(
        [of_trial(replace(row(), limits=QUIET | {"drop_lossy_source": 900.0, "drop_rcvbuf_target": 100.0}), TCP, RATE)]
    )
    assert few is not None
    assert few.text == "loss: the link, as its profile says"


def test_cores_of_now_the_one_and_now_the_other_end_are_a_core_still() -> None:
    found = of_cell(
        [Bottleneck("sender's core"), Bottleneck("receiver's core"), Bottleneck("receiver's core"), Bottleneck("link")]
    )
    assert found is not None
    assert (found.what, found.count) == ("receiver's core", 3)


def test_two_sides_are_apart_only_if_both_are_known_and_differ() -> None:
    core, other, link = Bottleneck("sender's core"), Bottleneck("receiver's core"), Bottleneck("link")
    assert apart(core, link)
    assert not apart(core, other), "either is the processor"
    assert not apart(core, None)
    assert not apart(core, Bottleneck("unknown"))
    assert apart(Bottleneck("loss", "inside the VPN"), Bottleneck("loss", "the link's queue"))
    assert not apart(Bottleneck("loss", "inside the VPN"), core), "the processor, both"


def test_a_buffer_that_its_program_came_to_too_late_is_the_processor_s_and_a_link_s_loss_is_not() -> None:
    assert Bottleneck("loss", "the VPN's receive buffer").processor
    assert not Bottleneck("loss", "the link's queue").processor
    assert not Bottleneck("window").processor


def test_the_analysis_says_beside_a_ratio_that_its_sides_are_bound_by_different_things() -> None:
    results = Study(tcp={"tinc": 0.3}).results()
    watched = tuple(
        replace(one, limits=QUIET | ({"wire_source": 1e9} if one.arm == "direct" else {"core_source": 1.0}))
        for one in results.trials
    )
    analysis = judge(replace(results, trials=watched))
    setting = Scenario("gigabit", "pair", "tcp")
    told = apart_from_direct(analysis, analysis.cell("tinc", setting, "goodput"))
    assert told == "bound by the sender's core, while direct is bound by the link"
    assert not apart_from_direct(analysis, analysis.cell("tinc", setting, "retransmits")), (
        "a difference has no two sides"
    )
    assert not apart_from_direct(analysis, analysis.cell("direct", setting, "goodput"))
    assert not judge(results).bound_by, "results of before have no such evidence"


def test_a_loss_before_the_window_is_told_as_such() -> None:
    lossy = row(drop_link_source=500.0)
    again = SampleRow("retransmits", "segments", 0.0)
    quiet = of_trial(replace(lossy, samples=(*lossy.samples, again)), TCP, RATE)
    busy = of_trial(replace(lossy, samples=(*lossy.samples, replace(again, value=3.0))), TCP, RATE)
    assert quiet is not None and busy is not None
    assert quiet.text == busy.text == "loss: the link's queue"
    assert "all before the window" in quiet.why and "before the window" not in busy.why


def test_what_flows_back_is_held_against_the_rate_of_that_direction() -> None:
    down = replace(row(), limits=QUIET | {"wire_source": 0.2e6, "wire_target": 9.9e6})
    bound = of_trial(down, TCP, 50_000_000, 10_000_000)
    assert bound is not None and bound.what == "link"
    alike = of_trial(down, TCP, 50_000_000, None)
    assert alike is not None and alike.what != "link"
