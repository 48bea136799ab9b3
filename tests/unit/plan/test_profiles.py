"""Profile files with impairments: what they may state, what is refused with which key, and how several are joined."""

from __future__ import annotations

from pathlib import Path

import pytest

from tunnelmark.errors import PlanError, UnknownName
from tunnelmark.plan.files import PACKAGED, Files
from tunnelmark.plan.impairments import (
    Blackout,
    Chance,
    Codel,
    Direction,
    FourState,
    GilbertElliott,
    Jitter,
    Pattern,
    Reordering,
    Trace,
)
from tunnelmark.plan.load import load_profile, parse_study
from tunnelmark.plan.model import CARD, Profile
from tunnelmark.plan.struck import overtakes_undelayed
from tunnelmark.units import Duration, Share
from unit.plan.studies import ARMS, CATALOGUE, FILES, STUDY, WORKLOADS, write

HEAD = '[profile]\ntitle = "T"\nsource = "S"\n'


def profile(folder: Path, text: str, name: str = "mine") -> Profile:
    write(folder, HEAD + text, f"profiles/{name}.toml")
    return load_profile(name, Files((PACKAGED, folder)))


def refused(folder: Path, text: str) -> PlanError:
    with pytest.raises(PlanError) as caught:
        profile(folder, text)
    assert caught.value.hint
    return caught.value


class TestAProfileStates:
    def test_a_backend_and_a_loss_by_their_former_names_with_a_warning(self, tmp_path, caplog):
        text = 'loss = { kind = "state4", p13 = "1 %" }\nbackend = "wire"\n'
        found = profile(tmp_path, text)
        assert found.backend == "emulator"
        assert isinstance(found.forward.loss, FourState)
        assert "'wire' is called 'emulator' now" in caplog.text
        assert "'state4' is called 'four-state' now" in caplog.text

    def test_each_impairment_for_both_directions(self, tmp_path):
        found = profile(
            tmp_path,
            """
            delay = "20 ms"
            jitter = { size = "2 ms", distribution = "normal", correlation = "25 %", keep_order = false }
            loss = { probability = "1 %", correlation = "10 %" }
            duplication = "0.1 %"
            corruption = { probability = "0.01 %" }
            reordering = { probability = "0.5 %", correlation = "25 %", gap = 5 }
            blackouts = [{ start = "0 s", length = "50 ms", every = "15 s" }]
            rate = "50 Mbit/s"
            queue = "256 KiB"
            queue_packets = 100
            codel = {}
            overhead = 24
            """,
        )
        assert found.forward == found.back
        assert found.forward == Direction(
            delay=Duration(0.02),
            jitter=Jitter(Duration(0.002), "normal", Share(0.25), keep_order=False),
            loss=Chance(Share(0.01), Share(0.1)),
            duplication=Chance(Share(0.001)),
            corruption=Chance(Share(0.0001)),
            reordering=Reordering(Share(0.005), Share(0.25), 5),
            rate=found.rate,
            queue=found.queue,
            queue_packets=100,
            codel=Codel(),
            overhead=24,
            blackouts=(Blackout(Duration(0), Duration(0.05), Duration(15)),),
        )
        assert (found.rate, found.queue) == (50_000_000, 262_144)
        assert not found.only_shaped

    def test_one_direction_apart_from_the_other(self, tmp_path):
        found = profile(tmp_path, 'delay = "8 ms"\n[profile.back]\nloss = "1 %"\n')
        assert (found.forward.delay, found.back.delay) == (0.008, 0.008)
        assert (found.forward.loss, found.back.loss) == (None, Chance(Share(0.01)))

    @pytest.mark.parametrize(
        ("text", "loss"),
        [
            ('loss = "5 %"', Chance(Share(0.05))),
            ('loss = { kind = "gilbert-elliott", p = "1 %" }', GilbertElliott(Share(0.01), Share(0.99))),
            ('loss = { kind = "four-state", p13 = "1 %", p31 = "30 %" }', FourState(Share(0.01), Share(0.3))),
            ('loss = { kind = "pattern", pattern = "0010", repeat = false }', Pattern("0010", repeat=False)),
        ],
    )
    def test_four_kinds_of_loss(self, tmp_path, text, loss):
        assert profile(tmp_path, text).forward.loss == loss

    def test_a_recorded_rate(self, tmp_path):
        found = profile(tmp_path, 'rate_trace = { at_ms = [1, 2, 2, 5] }\nqueue = "1 MiB"\n')
        assert found.forward.rate_trace == Trace((1, 2, 2, 5), 1514)

    def test_a_schedule(self, tmp_path):
        steps = '{ at = "1 s", down = true }, { at = "2 s", down = false, set = { loss = "2 %" }, clear = ["delay"] }'
        found = profile(tmp_path, f'delay = "1 ms"\nschedule = {{ repeat = "5 s", steps = [{steps}] }}\n')
        assert found.forward.schedule is not None
        first, second = found.forward.schedule.steps
        assert (first.at, first.down) == (1.0, True)
        assert second.set.loss == Chance(Share(0.02))
        assert second.clear == ("delay",)

    def test_that_netems_jitter_reorders_and_the_stated_one_does_not(self, tmp_path):
        for model, kept in (("netem", False), ("stated", True)):
            found = profile(tmp_path, f'model = "{model}"\ndelay = "5 ms"\njitter = "1 ms"\n')
            assert found.forward.jitter is not None
            assert found.forward.jitter.keep_order is kept


@pytest.mark.parametrize(
    ("text", "key", "says"),
    [
        ('loss = "101 %"', "profile.loss.probability", "100 %"),
        ('loss = { probability = "1 %", correlation = "125 %" }', "profile.loss.correlation", "100 %"),
        ('loss = { probability = "1 %", correlation = "100 %" }', "profile.loss.correlation", "below 100 %"),
        ("loss = 1", "profile.loss", "that alone as text"),
        ('loss = "1"', "profile.loss.probability", "%"),
        ('loss = { kind = "four-state", p13 = "60 %", p14 = "50 %" }', "profile.loss.p14", "at most 100 %"),
        ('loss = { kind = "gilbert-elliott" }', "profile.loss.p", "needs it"),
        ('loss = { kind = "gilbert-elliott", p = "1 %", p13 = "1 %" }', "profile.loss.p13", "right kind"),
        ('loss = { kind = "pattern", pattern = "0012" }', "profile.loss.pattern", "0 (delivered)"),
        ('reordering = "1 %"', "profile.reordering", "state a delay"),
        ('jitter = "2 ms"', "profile.jitter.size", "delay of 2 ms"),
        ('delay = "1 ms"\njitter = "2 ms"', "profile.jitter.size", "2 ms"),
        ('delay = "0 ms"', "profile.delay", "above zero"),
        ('rate = "0.4 bit/s"\nqueue = "1 kB"', "profile.rate", "above zero"),
        ('rate = "1 Mbit/s"\nqueue = "0.3 B"', "profile.queue", "above zero"),
        ('rate = "1 Mbit/s"\nqueue = "1 kB"\noverhead = -1514', "profile.overhead", "-14 or more"),
        ('rate = "1 Mbit/s"\nqueue = "1 kB"\noverhead = -1600', "profile.overhead", "-14 or more"),
        ('blackouts = [{ start = "1 s", length = "2 s", every = "1 s" }]', "profile.blackouts[0].every", "longer"),
        ('schedule = { steps = [{ at = "2 s" }, { at = "1 s" }] }', "profile.schedule.steps[1].at", "order"),
        ('schedule = { steps = [{ at = "1 s", clear = ["los"] }] }', "profile.schedule.steps[0].clear[0]", "loss"),
        (
            'schedule = { steps = [{ at = "1 s", set = { reordering = "1 %" } }] }',
            "profile.schedule.steps[0].set.reordering",
            "delay",
        ),
        ('rate_trace = { at_ms = [3, 1] }\nqueue = "1 kB"', "profile.rate_trace.at_ms", "Mahimahi"),
        ('rate = "1 Mbit/s"\nqueue = "1 kB"\nrate_trace = { at_ms = [1] }', "profile.rate_trace", "one of them"),
        ("codel = {}", "profile.rate", "codel"),
        ("limit = 10", "profile.limit", "queue"),
        (
            'model = "netem"\ndelay = "5 ms"\njitter = { size = "1 ms", keep_order = true }',
            "profile.jitter.keep_order",
            "",
        ),
        ('model = "netem"\nloss = { kind = "pattern", pattern = "01" }', "profile.loss.kind", "stated"),
        ('model = "netem"\nrate = "1 Mbit/s"\ncodel = {}', "profile.codel", "stated"),
        ('backend = "shaper"\ndelay = "1 ms"', "profile.backend", "auto"),
        ('backend = "netem"\ndelay = "1 ms"', "profile.model", "netem"),
        ('place = "sender"', "profile.place", "netem"),
        ('delay = "1 ms"\n[profile.back]\ndelay = "2 ms"', "profile.back.delay", "once"),
        ('[profile.forward]\nrate = "1 Mbit/s"', "profile.queue", "queue ="),
    ],
)
def test_what_cannot_be_is_refused_with_its_key_and_what_would_be_right(tmp_path, text, key, says):
    error = refused(tmp_path, text)
    assert error.key == key
    assert says in error.hint


class TestJoinedProfiles:
    def test_state_what_each_states(self):
        found = load_profile("wifi-good+gigabit", FILES)
        good, gigabit = load_profile("wifi-good", FILES), load_profile("gigabit", FILES)
        assert found.name == "wifi-good+gigabit"
        assert found.forward.jitter == good.forward.jitter
        assert found.rate == gigabit.rate
        assert gigabit.source in found.source

    def test_refuse_what_both_state_otherwise_and_say_who(self):
        with pytest.raises(PlanError) as caught:
            load_profile("vdsl+gigabit", FILES)
        assert caught.value.key == "profile.rate"
        assert "'vdsl' states another rate" in caught.value.message

    @pytest.mark.parametrize(
        ("name", "near"),
        [
            ("thesis-medium+netem-on-sender", True),
            ("thesis-medium+thesis-round-trip+gso", False),
            ("thesis-medium-in-time", False),
            ("thesis-medium-order-kept", False),
            ("edge-delay-50", False),
        ],
    )
    def test_say_where_packets_overtake_others_without_any_delay(self, name: str, near: bool):
        assert overtakes_undelayed(load_profile(name, FILES).forward) == near

    def test_may_state_the_same(self):
        found = load_profile("thesis-low+netem-on-sender", FILES)
        assert (found.model, found.backend, found.place, found.unit) == ("netem", "netem", "sender", "gso")

    def test_take_the_unit_of_what_they_repeat(self):
        assert load_profile("thesis-low+gso", FILES).unit == "gso"

    def test_take_the_card_of_what_they_repeat_or_the_one_that_fits(self):
        assert load_profile("gigabit+offloads", FILES).card == "offloads"
        assert load_profile("gigabit+no-offloads", FILES).card == "none"
        assert load_profile("gigabit", FILES).card == CARD
        assert load_profile("thesis-low+gso", FILES).card == "none"
        assert load_profile("thesis-low+netem-on-sender", FILES).card == "none"

    @pytest.mark.parametrize("other", ["gso", "netem-on-sender"])
    def test_refuse_a_card_where_super_packets_are_decided_on(self, other: str):
        with pytest.raises(PlanError) as caught:
            load_profile(f"thesis-low+{other}+offloads", FILES)
        assert caught.value.key == "profile.card"

    def test_are_checked_together(self, tmp_path):
        write(tmp_path, HEAD + 'jitter = { size = "2 ms" }\nmodel = "netem"\n', "profiles/one.toml")
        write(
            tmp_path, HEAD + 'blackouts = [{ start = "1 s", length = "1 s" }]\nbackend = "netem"\n', "profiles/two.toml"
        )
        with pytest.raises(PlanError) as caught:
            load_profile("one+two", Files((tmp_path,)))
        assert caught.value.file == "one+two"
        assert caught.value.key == "profile.blackouts"

    def test_must_all_exist(self):
        with pytest.raises(UnknownName) as caught:
            load_profile("wifi-good+gigabyte", FILES)
        assert "gigabit" in caught.value.hint

    def test_go_into_a_study_with_each_file_kept(self):
        text = STUDY.replace('"gigabit"', '"wifi-good+gigabit"') + ARMS + WORKLOADS
        study = parse_study(text, "s.toml", FILES, CATALOGUE)
        assert [found.name for found in study.profiles] == ["wifi-good+gigabit"]
        assert {"profiles/wifi-good.toml", "profiles/gigabit.toml"} <= set(study.inputs)

    def test_are_refused_in_a_study_where_one_does_not_exist(self):
        text = STUDY.replace('"gigabit"', '"wifi-god+gigabit"') + ARMS + WORKLOADS
        with pytest.raises(PlanError) as caught:
            parse_study(text, "s.toml", FILES, CATALOGUE)
        assert caught.value.key == "study.profiles[0]"
        assert "wifi-good" in caught.value.hint


@pytest.mark.parametrize("name", ["thesis-low", "thesis-medium", "thesis-high", "cascade-internet", "edge-loss-5"])
def test_published_impairments_follow_netem(name):
    assert load_profile(name, FILES).model == "netem"


@pytest.mark.parametrize(("milliseconds", "mbits"), [(50, 188.5), (250, 37.7), (350, 26.9)])
def test_a_published_delay_bounds_the_rate_by_netem_s_own_limit(milliseconds, mbits):
    """V. Kjorveziroski et al. ran `tc ... netem delay 50ms`: of datagrams of 1,178 bytes, 187.3, 37.2 and 26.6 Mbit/s arrived."""
    way = load_profile(f"edge-delay-{milliseconds}", FILES).forward
    assert way.delay is not None
    assert way.limit == 1000
    assert way.limit * 1178 * 8 / float(way.delay) / 1e6 == pytest.approx(mbits, abs=0.05)
