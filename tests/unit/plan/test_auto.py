"""A rate that is left to the machine, an offer as a share of the link: what is asked, fixed and kept."""

from __future__ import annotations

import dataclasses

import pytest
from pydantic import Field

from tunnelmark.errors import PlanError
from tunnelmark.plan import auto
from tunnelmark.plan.auto import Auto, Fixed
from tunnelmark.plan.fields import OfLink
from tunnelmark.plan.files import Files
from tunnelmark.plan.load import fix, load_profile, load_study, parse_study, save_inputs
from tunnelmark.plan.model import Study
from tunnelmark.plan.order import order
from tunnelmark.units import Rate
from unit.plan.studies import ARMS, CATALOGUE, FILES, STUDY, PingOptions


class Offers(PingOptions):
    rate: OfLink = Field(default=Rate(100_000_000))


OFFERING = dataclasses.replace(CATALOGUE, workloads={**CATALOGUE.workloads, "udp": Offers})
UDP = '\n[[workload]]\nworkload = "udp"\noptions = { rate = "30 %" }\n'
SLOW = Fixed(Rate.parse("200 Mbit/s"), 'half of "what" it carries')


def study(profiles: str = '"auto"') -> Study:
    return parse_study(STUDY.replace('"gigabit"', profiles) + ARMS + UDP, "mine.toml", FILES, OFFERING)


class TestWhatIsAsked:
    @pytest.mark.parametrize(
        ("text", "found"),
        [
            ("auto", Auto()),
            ("auto, at most 1 Gbit/s", Auto(Rate.parse("1 Gbit/s"))),
            ("20 Mbit/s", Rate.parse("20 Mbit/s")),
        ],
    )
    def test_is_read_and_written(self, text, found):
        assert Auto.parse(text) == found
        assert str(found) == text

    @pytest.mark.parametrize("text", ["auto 5", "auto, at most", "automatic", "at most 1 Gbit/s", 5])
    def test_is_refused_where_it_says_nothing(self, text):
        with pytest.raises(ValueError, match="should be"):
            Auto.parse(text)


class TestSteps:
    def test_are_figures_to_keep_in_mind(self):
        found = [str(rate) for rate in auto.steps(1_000_000_000, 10_000_000)]
        assert found == [f"{n} Mbit/s" if n < 1000 else "1 Gbit/s" for n in (1000, 500, 200, 100, 50, 20, 10)]

    def test_begin_at_what_is_allowed_and_never_above(self):
        assert next(auto.steps(480_000_000)) == 200_000_000
        assert next(auto.steps(999_999_999)) == 500_000_000
        assert list(auto.steps(500_000)) == []


class TestAProfile:
    def test_says_that_its_rate_is_open_and_how_high_it_may_be(self):
        found = load_profile("auto", FILES)
        assert found.auto == found.rate == 1_000_000_000

    def test_has_its_rate_when_it_is_fixed(self):
        found = load_profile("auto", FILES, SLOW)
        assert (found.auto, found.rate, found.queue) == (None, 200_000_000, 512 * 1024)
        assert found.forward == found.back
        assert "rate 200 Mbit/s: half of" in found.source

    def test_is_never_above_its_own_bound(self):
        assert load_profile("auto", FILES, Fixed(Rate.parse("5 Gbit/s"), "fast")).rate == 1_000_000_000

    def test_can_be_joined(self):
        found = load_profile("wifi-good+auto", FILES, SLOW)
        assert found.rate == 200_000_000
        assert found.forward.delay is not None

    def test_that_is_slower_has_the_same_buffer(self):
        found = auto.at(load_profile("gigabit", FILES), SLOW.rate)
        assert (found.rate, found.back.rate, found.queue) == (200_000_000, 200_000_000, 512 * 1024)

    def test_that_is_slower_already_stays(self):
        assert auto.at(load_profile("fast-ethernet", FILES), SLOW.rate) == load_profile("fast-ethernet", FILES)

    def test_without_a_rate_gets_one_and_a_queue_of_ten_milliseconds(self):
        found = auto.at(load_profile("wifi-bad", FILES), SLOW.rate)
        assert (found.rate, found.queue) == (200_000_000, 250_000)


class TestAStudy:
    def test_offers_a_share_of_the_rate_of_each_link(self):
        fixed = fix(study('"auto", "fast-ethernet"'), {"auto": SLOW})
        offered = {(t.profile.name, t.use.options["rate"]) for t in order(fixed).trials}
        # Of what the link carries in full frames: 1514 of each 1538 bytes on Ethernet.
        assert offered == {("auto", "59.0637 Mbit/s"), ("fast-ethernet", "29.5319 Mbit/s")}

    def test_cannot_offer_a_share_of_a_link_without_a_rate(self):
        with pytest.raises(PlanError, match="30 % of what") as caught:
            study('"unshaped"')
        assert "unshaped+fast-ethernet" in caught.value.hint

    def test_has_one_rate_for_all_arms(self):
        trials = order(fix(study(), {"auto": SLOW})).trials
        assert {(t.profile.rate, t.use.options["rate"]) for t in trials} == {(200_000_000, "59.0637 Mbit/s")}

    def test_that_is_fixed_is_the_same_when_it_is_read_again(self, tmp_path):
        fixed = fix(study(), {"auto": SLOW})
        save_inputs(fixed, tmp_path)
        assert load_study("mine", Files((tmp_path,)), OFFERING) == fixed
        assert auto.read((tmp_path / auto.FILE).read_text(), auto.FILE) == {"auto": SLOW}

    def test_without_an_auto_keeps_no_word_of_it(self):
        plain = study('"gigabit"')
        assert fix(plain, {"auto": SLOW}) == plain
        assert auto.FILE not in plain.inputs
