"""What a run says of links that this machine does not carry: a warning, or the end before it starts, with what fits."""

from __future__ import annotations

import asyncio
import io
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from tunnelmark import registry
from tunnelmark.cli import link_capacities
from tunnelmark.errors import UsageError
from tunnelmark.plan.auto import Fixed
from tunnelmark.plan.files import Files
from tunnelmark.plan.load import load_profile, load_topology, parse_study
from tunnelmark.plan.model import Study
from tunnelmark.run.link_capacity import Fitness
from tunnelmark.units import Rate
from unit.study_text import study_text

FILES = Files.standard()


def study(*profiles: str) -> Study:
    text = study_text(profiles=profiles, settings="blocks = 1")
    return parse_study(text, "mine.toml", FILES, registry.catalogue())


def told(found: Study, *fits: Fitness) -> str:
    out = io.StringIO()
    link_capacities._tell(found, fits, Console(file=out, width=1000))
    return out.getvalue()


LATE = Fitness("wifi-bad", "late", "3 ms late")
DROPS = Fitness("wifi-bad", "drops", "the emulator dropped 7 packets unasked")
SHORT = Fitness("gigabit", "short", "83 %", Rate.parse("200 Mbit/s"))


def test_what_fits_is_not_mentioned():
    assert told(study("gigabit"), Fitness("gigabit", "fits", "95.6 %")) == ""


def test_a_study_of_which_no_link_is_carried_ends_before_it_starts_and_says_what_would_do():
    with pytest.raises(UsageError, match="does not carry wifi-bad: the emulator dropped 7 packets") as caught:
        told(study("wifi-bad"), DROPS)
    for words in ("--backend vm", "doctor --measure", "--no-measure"):
        assert words in caught.value.hint


def test_a_study_with_another_link_goes_on_with_a_warning():
    said = told(study("wifi-bad", "gigabit"), DROPS, Fitness("gigabit", "fits", "95.6 %"))
    assert said.startswith(
        "warning: wifi-bad: the emulator dropped 7 packets unasked; trials on it will be void. What fits: "
    )


def test_a_late_link_is_a_warning_for_not_every_metric_feels_it():
    said = told(study("wifi-bad"), LATE)
    assert said.startswith(
        "warning: wifi-bad: 3 ms late; metrics that this affects will be disturbed, or void. What fits: "
    )


def test_a_link_that_is_not_filled_is_a_warning_with_the_rate_that_is():
    said = told(study("gigabit"), SHORT)
    assert 'filled here: rate = "200 Mbit/s" in the profile; or --profile auto' in said


@pytest.mark.parametrize(
    ("profile", "rate", "words"),
    [
        ("wifi-bad", "100 Mbit/s", "in time here: wifi-bad+fast-ethernet"),
        ("wifi-bad", "10 Mbit/s", 'in time here: rate = "10 Mbit/s" in the profile'),
        ("home-fibre", "20 Mbit/s", 'in time here: rate = "20 Mbit/s" in the profile'),
    ],
)
def test_a_rate_that_was_in_time_is_offered_as_it_can_be_asked_for(profile, rate, words):
    fit = Fitness(profile, "late", "late", Rate.parse(rate))
    assert link_capacities.instead(fit, load_profile(profile, FILES)).startswith(words)


def test_what_is_offered_can_be_loaded():
    assert load_profile("wifi-bad+fast-ethernet", FILES).rate == link_capacities._FAST_ETHERNET
    assert load_profile("auto", FILES).auto


def test_a_stated_rate_above_a_profile_s_bound_is_refused():
    assert link_capacities.stated(study("auto"), Rate.parse("1 Gbit/s")).profiles[0].rate == 10**9
    with pytest.raises(UsageError, match=r"--rate 2 Gbit/s is above what the profile auto allows: at most 1 Gbit/s"):
        link_capacities.stated(study("auto"), Rate.parse("2 Gbit/s"))


def test_a_profile_that_is_named_by_its_path_gets_its_rate(tmp_path, monkeypatch):
    async def measured(_labs, _known, _topology, _profile):
        return Fixed(Rate.parse("200 Mbit/s"), "measured")

    monkeypatch.setattr(link_capacities, "rate_of", measured)
    head = '[profile]\ntitle = "mine"\nsource = "mine"\n'
    (tmp_path / "mine.toml").write_text(f'{head}rate = "auto"\nqueue = "512 KiB"\n')
    files, name = FILES.with_paths("profile", str(tmp_path / "mine.toml"))
    labs: Any = SimpleNamespace(here=False)
    made = asyncio.run(link_capacities.closed(labs, load_profile(name, files), load_topology("pair", files), files))
    assert (made.name, made.rate, made.auto) == ("mine", 200_000_000, None)


def test_what_was_measured_with_another_card_is_measured_again():
    profile, topology = load_profile("gigabit", FILES), load_topology("pair", FILES)
    assert profile.card == "offloads"
    other = replace(profile, card="none")
    assert link_capacities._mark(profile, topology, 1) != link_capacities._mark(other, topology, 1)
