"""Profiles state jitter, bursts and cuts in time; per packet only by name, and never both."""

from __future__ import annotations

import pytest

from tunnelmark.plan.impairments import Blackout, Bursts, Jitter
from tunnelmark.units import Duration, Share
from unit.plan.test_profiles import profile, refused

DELAY = 'delay = "20 ms"\n'


def jitter(folder, text: str, more: str = "") -> Jitter | None:
    return profile(folder, f"{more}{DELAY}jitter = {text}\n").forward.jitter


def test_jitter_is_in_time_and_its_correlation_time_can_be_stated(tmp_path):
    assert jitter(tmp_path, '"2 ms"') == Jitter(Duration(0.002), correlation_time=Duration(0.04))
    stated = '{ size = "2 ms", distribution = "normal", correlation_time = "100 ms" }'
    assert jitter(tmp_path, stated) == Jitter(Duration(0.002), "normal", correlation_time=Duration(0.1))


@pytest.mark.parametrize(
    ("text", "more", "expected"),
    [
        ('{ size = "2 ms", per = "packet" }', "", Jitter(Duration(0.002))),
        ('{ size = "2 ms", correlation = "50 %" }', "", Jitter(Duration(0.002), correlation=Share(0.5))),
        ('{ size = "2 ms", keep_order = false }', "", Jitter(Duration(0.002), keep_order=False)),
        ('"2 ms"', 'model = "netem"\n', Jitter(Duration(0.002), keep_order=False)),
    ],
)
def test_what_only_packets_have_makes_it_one_of_packets(tmp_path, text, more, expected):
    assert jitter(tmp_path, text, more) == expected


def test_bursts_and_cuts(tmp_path):
    found = profile(tmp_path, 'loss = { kind = "bursts", burst = "20 ms", every = "1 s" }\n').forward.loss
    assert found == Bursts(Duration(0.02), Duration(1))
    assert isinstance(found, Bursts)
    assert found.share == pytest.approx(0.02)
    more = 'loss = { kind = "bursts", burst = "20 ms", every = "1 s", probability = "50 %", outside = "1 %" }\n'
    assert profile(tmp_path, more).forward.loss == Bursts(Duration(0.02), Duration(1), Share(0.5), Share(0.01))
    cuts = profile(tmp_path, 'blackouts = [{ length = "60 ms", every = "15 s" }]\n').forward.blackouts
    assert cuts == (Blackout(None, Duration(0.06), Duration(15)),)


@pytest.mark.parametrize(
    ("text", "key", "says"),
    [
        (DELAY + 'jitter = { size = "2 ms", correlation_time = "10 ms" }', "jitter.correlation_time", "20 ms or more"),
        (
            DELAY + 'jitter = { size = "2 ms", correlation_time = "100 ms", correlation = "10 %" }',
            "jitter.correlation_time",
            "state one",
        ),
        (DELAY + 'jitter = { size = "2 ms", per = "time", correlation = "10 %" }', "jitter.per", "state one"),
        (
            'model = "netem"\n' + DELAY + 'jitter = { size = "2 ms", correlation_time = "100 ms" }',
            "jitter.correlation_time",
            "state one",
        ),
        ('loss = { kind = "bursts", burst = "20 ms" }', "loss.every", "needs it"),
        ('loss = { kind = "bursts", burst = "20 ms", every = "20 ms" }', "loss.every", "longer than `burst`"),
        ('model = "netem"\nloss = { kind = "bursts", burst = "20 ms", every = "1 s" }', "loss.kind", "stated"),
        ('blackouts = [{ length = "60 ms" }]', "blackouts[0].start", "drawn for each block"),
    ],
)
def test_what_cannot_be_in_time_is_refused(tmp_path, text, key, says):
    error = refused(tmp_path, text + "\n")
    assert error.key == f"profile.{key}"
    assert says in (error.hint or "")
