"""Trials are as long as their link asks for: slow start behind them, twenty round trips, a whole period of cuts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tunnelmark import registry
from tunnelmark.errors import PlanError
from tunnelmark.model.options import Options
from tunnelmark.plan import lengths
from tunnelmark.plan.fields import OfPath
from tunnelmark.plan.files import Files
from tunnelmark.plan.impairments import Blackout, Bursts, Chance, Direction
from tunnelmark.plan.load import load_study
from tunnelmark.plan.model import Profile, WorkloadUse
from tunnelmark.plan.problems import Problems
from tunnelmark.plan.routes import crossed
from tunnelmark.units import Duration, Rate, Share, Size
from tunnelmark.workloads.mtu import MtuOptions
from tunnelmark.workloads.ping import PingOptions
from tunnelmark.workloads.tcp import TcpOptions


def link(trip: float = 0.0, rate: float | None = None, queue: int | None = None, **more: object) -> Profile:
    each = Duration(trip / 2) if trip else None
    way = Direction(delay=each, rate=Rate(rate) if rate else None, queue=Size(queue) if queue else None, **more)  # type: ignore[arg-type]
    return Profile("p", "T", "S", way, Direction(delay=each))


def use(workload: str = "tcp", **options: str) -> WorkloadUse:
    kinds: dict[str, type[Options]] = {"tcp": TcpOptions, "ping": PingOptions, "mtu": MtuOptions}
    kind = kinds[workload]
    return WorkloadUse(workload, workload, options, {}, lengths.open_lengths(kind.model_validate(options)))


def test_on_a_short_path_nothing_is_longer_than_the_default():
    over = use().over(link(0.003, 1e9, 2**19))
    assert dict(over.options) == {}


def test_slow_start_doubles_from_ten_segments_until_the_link_is_full():
    # 144.8 MB/s x 100 ms are 10,000 segments: ten doublings of 10, and the handshake. A queue as large keeps it full.
    full = link(0.1, 8 * 144_800_000, 20_000_000)
    needed = lengths.needed([full])
    assert (needed.warmup, needed.window, needed.period) == (pytest.approx(1.1), pytest.approx(2.0), 0.0)
    assert dict(use().over(full).options) == {"warmup": "1.1 s", "duration": "4 s"}


def test_each_stream_of_mtu_is_as_long_as_a_stream_of_tcp():
    full = link(0.1, 8 * 144_800_000, 20_000_000)
    assert dict(use("mtu").over(full).options) == {"warmup": "1.1 s", "duration": "4 s"}
    assert dict(use("mtu").over(link(0.003, 1e9, 2**19)).options) == {}


def test_a_short_queue_costs_the_way_back_of_cubic_or_of_reno():
    # 0.3 of 10,000 segments: cbrt(3000 / 0.4) s.
    long = link(0.1, 8 * 144_800_000, 1)
    assert lengths.needed([long]).warmup == pytest.approx(1.1 + 19.574, abs=0.01)
    # A millisecond: 100 segments, 3.3 doublings; Reno needs 30 / 0.529 round trips.
    near = link(0.001, 8 * 144_800_000, 1)
    assert lengths.needed([near]).warmup == pytest.approx(0.005 + 0.0567, abs=0.001)


def test_bursts_of_loss_bring_the_window_down_before_it_is_measured():
    # Ten round trips up to 2,896 segments (4 MiB). A burst each second leaves 0.7 of them, and CUBIC regains little, until
    # Reno's 33 segments in the 62 round trips of a second are a large share: 2,213, 1,704 ... 169, 152, 139, the last 0.91.
    free = link(0.016, loss=Bursts(Duration(0.01), Duration(1)))
    needed = lengths.needed([free])
    assert needed.warmup == pytest.approx(0.16 + 14)
    assert needed.window == 5.0
    assert float(Duration.parse(use().over(free).options["duration"])) >= needed.warmup + needed.window
    # 20 Mbit/s hold 28 segments, which Reno regains before the next burst.
    slow = link(0.016, 2e7, 100_000, loss=Bursts(Duration(0.01), Duration(1)))
    assert lengths.needed([slow]).warmup < 0.1
    said = lengths.too_short(use(duration="2 s", warmup="500 ms"), [free], TcpOptions)
    assert "1.5 losses are met on average, 5 are needed" in said
    assert "until TCP's window settles (slow start and the losses after it)" in said


def test_of_bursts_that_lose_a_whole_window_only_the_first_is_waited_for():
    # What timeouts leave of a window is the kernel's: on the real link it went from 3,911 to 115 KiB and back in 30 s.
    needed = lengths.needed([link(0.016, loss=Bursts(Duration(0.02), Duration(1)))])
    assert (needed.warmup, needed.window) == (pytest.approx(0.16 + 1), 5.0)


def test_a_user_is_given_the_reason_of_a_long_trial():
    free = link(0.016, loss=Bursts(Duration(0.01), Duration(1)))
    assert lengths.reason(use(), [free]) == "29 s: TCP's window takes 14.2 s to settle"
    assert lengths.reason(use(duration="29 s"), [free]) == "", "the user has stated it"
    assert lengths.reason(use("ping"), [free]) == "", "pings do not wait for TCP's window"
    rare = link(0.04, 1e8, 10**6, loss=Bursts(Duration(0.02), Duration(5)), blackouts=(CUT,))
    assert lengths.reason(use(), [rare]) == "16 s: a cut comes every 15 s"
    assert lengths.reason(use(), [link(0.56, 30e6, 2_000_000)]) == "17 s: round trips are long"


def test_where_losses_bound_the_window_it_is_measured_after_they_have_brought_it_down():
    # One packet in 400 is lost: slow start ends at 400 segments of 4 ms, after seven round trips, and nine losses leave 30.
    lossy = link(0.004, 8 * 1_048_628_000, 1, loss=Chance(Share(0.0025)))
    needed = lengths.needed([lossy])
    assert needed.warmup == pytest.approx(0.004 * 7 + 0.1844, abs=0.001)
    assert needed.window == pytest.approx(5 * 0.004 / 0.0025 / 30, rel=0.02), "five losses"
    # A link of 50 Mbit/s is full with 17 segments, which are there again before the next loss.
    slow = link(0.004, 5e7, 100_000, loss=Chance(Share(0.0025)))
    assert (lengths.needed([slow]).warmup, lengths.needed([slow]).window) == (pytest.approx(0.008), pytest.approx(0.08))


def test_over_several_links_delays_add_up_losses_join_and_the_slowest_has_the_rate():
    # Four links of 30 ms: 600 segments of 57.92 Mbit/s, six doublings of ten, and the handshake.
    slow, fast = link(0.03, 8 * 7_240_000, 20_000_000), link(0.03, 1e9)
    needed = lengths.needed([fast, slow, fast, fast])
    assert (needed.warmup, needed.window) == (pytest.approx(0.12 * 7), pytest.approx(2.4))
    # Four times 0.25 % over 120 ms are 0.996 %: slow start ends at 100 segments, after five round trips.
    lossy = link(0.03, 1e9, 1, loss=Chance(Share(0.0025)))
    one = link(0.12, 1e9, 1, loss=Chance(Share(1 - 0.9975**4)))
    assert lengths.needed([lossy] * 4) == lengths.needed([one])
    assert 0.12 * 5 < lengths.needed([one]).warmup < 0.12 * 5 + 5
    assert "15.0 round trips are measured" in lengths.too_short(
        use(duration="2 s", warmup="200 ms"), [fast] * 4, TcpOptions
    )


def test_the_trials_of_a_chain_are_as_long_as_the_whole_path_asks_for():
    study = load_study("cascade", Files.standard(), registry.catalogue())
    far = next(one for one in study.profiles if one.forward.delay)
    paths = {topology.name: crossed(topology, far) for topology in study.topologies}
    assert {name: len(path) for name, path in paths.items()} == {"chain-1": 2, "chain-3": 4}
    assert lengths.round_trip(paths["chain-3"]) == pytest.approx(0.24)
    asked = use().over(far, paths["chain-3"]).options
    assert float(Duration.parse(asked["duration"])) >= 20 * 0.24


def test_what_a_study_states_is_kept_and_said_to_be_short():
    far = link(0.56, 30e6, 2_000_000)
    stated = use(duration="2 s").over(far)
    assert stated.options == {"duration": "2 s", "warmup": "1 s"}
    assert "1.8 round trips are measured, 20 are needed" in lengths.too_short(use(duration="2 s"), [far], TcpOptions)
    assert lengths.too_short(use(duration="60 s"), [far], TcpOptions) == ""
    assert lengths.too_short(use(), [far], TcpOptions) == ""
    assert lengths.too_short(use("ping", duration="2 s"), [far], PingOptions) == ""
    own = use(warmup="300 ms").over(far)
    assert float(Duration.parse(own.options["duration"])) >= 0.3 + 20 * 0.56


CUT = Blackout(None, Duration(0.06), Duration(15))


def test_a_trial_that_states_no_length_meets_every_cut():
    cut = link(0.04, 1e8, 10**6, blackouts=(CUT,))
    assert dict(use("ping").over(cut).options) == {"duration": "15 s"}
    assert float(Duration.parse(use().over(cut).options["duration"])) >= 15.3


def refused(cut: Blackout, duration: str, blocks: int) -> str:
    with pytest.raises(PlanError) as caught:
        lengths.meet_cuts(
            [(0, use("ping", duration=duration), link(0.04, blackouts=(cut,)))], blocks, Problems("s.toml")
        )
    return str(caught.value) + (caught.value.hint or "")


def test_a_trial_that_will_not_meet_a_cut_is_refused_with_what_would_be_right():
    said = refused(CUT, "2 s", 5)
    assert "2 s will not meet the cut of 60 ms" in said
    assert "3 s or more" in said
    assert "8 s or more" in refused(Blackout(Duration(7), Duration(0.06), Duration(15)), "5 s", 50)
    lengths.meet_cuts([(0, use("ping", duration="2 s"), link(0.04, blackouts=(CUT,)))], 8, Problems("s.toml"))
    words = lengths.too_short(use("ping", duration="2 s"), [link(0.04, blackouts=(CUT,))], PingOptions)
    assert words == "its cut every 15 s is met in 14 % of the blocks"


def test_a_cut_in_the_warm_up_is_not_met():
    """As it was, half of a trial counted that was not measured."""
    short = use(duration="2 s", warmup="1 s")
    words = lengths.too_short(short, [link(0.04, blackouts=(CUT,))], TcpOptions)
    assert "its cut every 15 s is met in 7 % of the blocks" in words
    with pytest.raises(PlanError, match="2 s will not meet the cut"):
        lengths.meet_cuts([(0, short, link(0.04, blackouts=(CUT,)))], 8, Problems("s.toml"))
    lengths.meet_cuts([(0, short, link(0.04, blackouts=(CUT,)))], 15, Problems("s.toml"))
    early = Blackout(Duration(0.5), Duration(0.06), None)
    with pytest.raises(PlanError, match="2 s will not meet the cut"):
        lengths.meet_cuts([(0, short, link(0.04, blackouts=(early,)))], 8, Problems("s.toml"))
    lengths.meet_cuts([(0, short, link(0.04, blackouts=(replace(early, start=Duration(1)),)))], 8, Problems("s.toml"))


def test_a_cut_that_begins_at_a_stated_time_is_met_in_every_block_or_in_none():
    known = Blackout(Duration(7), Duration(0.06), Duration(15))
    assert "is met in" not in lengths.too_short(
        use("ping", duration="8 s"), [link(0.04, blackouts=(known,))], PingOptions
    )


def test_only_marked_options_follow_the_link():
    assert set(lengths.open_lengths(TcpOptions())) == {"duration", "warmup"}
    assert lengths.open_lengths(PingOptions()) == {"duration": OfPath("cuts", 2.0)}
    assert lengths.open_lengths(PingOptions.model_validate({"duration": "3 s"})) == {}
