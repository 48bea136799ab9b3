"""The accuracy benchmark lets a true link pass and sees small faults: of shares, delays, distributions and correlations."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from support.accuracy import DENSE, PERIOD, SPARSE, Look, Setting
from support.verdicts import Line, dependence, distance, judge, law, summary
from tunnelmark.analyse.link.simulation import simulate
from tunnelmark.analyse.link.statistics import Floats, ProbeRow
from tunnelmark.plan.impairments import Chance, Direction, GilbertElliott, Jitter, Reordering
from tunnelmark.units import Duration, Share

COUNT, APART = 60_000, 1e-4
SETTINGS = {setting.title: setting for pair in (*DENSE, SPARSE) for setting in pair}


def look(title: str, *, really: Direction | None = None, late: float = 0.0, seed: int = 2) -> Look:
    """What probes meet on a link that does `really` (else what was asked), with a path of some 40 us."""
    setting = SETTINGS[title]
    apart = 4e-3 if "apart" in title else APART
    random = np.random.default_rng(seed)
    sent: Floats = 0.02 + apart * np.arange(COUNT, dtype=np.float64)
    way = replace(really or setting.way, schedule=None)
    fates = simulate(way, "stated", sent, runs=1, seed=seed)
    lost, still = fates.lost[0], sent % PERIOD > PERIOD - setting.still + 0.03
    stated = np.ones(COUNT, dtype=bool) if not setting.still else sent % PERIOD < PERIOD - setting.still - 0.01
    path = 20e-6 + random.gamma(4, 5e-6, COUNT)
    delay = fates.delay[0] + path
    if setting.still:
        delay[still] = float(way.delay or 0.0) + path[still]
    if way.jitter is not None and way.jitter.keep_order:
        delay = np.maximum.accumulate(sent + delay) - sent
    delay[stated] += late
    delay[lost] = np.nan
    floor = float(way.delay or 0.0) / 2 if way.reordering else 0.0
    row = ProbeRow(sent, lost, fates.duplicated[0] & ~lost, np.zeros(COUNT, dtype=bool), delay, floor)
    said = {"dropped": {"loss": int(lost.sum())}, "realised": {"corrupted": 0}}
    return Look(setting, row, stated, still if setting.still else stated, said, 0, 0.0, COUNT)


def failed(seen: Look) -> set[str]:
    lines = list(judge(seen))
    return {line.what for line in lines if line.fails(summary(lines)[0])}


def plain() -> list[str]:
    return [title for title, setting in SETTINGS.items() if setting.way.corruption is None]


@pytest.mark.parametrize("title", plain())
def test_a_true_link_passes(title: str):
    assert failed(look(title)) == set()


@pytest.mark.parametrize(
    ("title", "change", "what"),
    [
        ("5 ms, loss 1 %", {"loss": Chance(Share(0.012))}, "lost"),
        ("5 ms, loss 1 %", {"loss": Chance(Share(0.01), Share(0.1))}, "losses, lag-1"),
        ("5 ms, loss 1 %", {"delay": Duration(0.00504)}, "mean delay"),
        ("20 ms, copies 1 %", {"duplication": Chance(Share(0.008))}, "copies"),
        ("20 ms, copies 1 %", {"loss": Chance(Share(0.0001))}, "lost"),
        ("uniform", {"loss": GilbertElliott(Share(0.005), Share(0.35))}, "losses, mean burst"),
        ("uniform", {"jitter": Jitter(Duration(0.0105), "uniform", keep_order=False)}, "distribution (KS)"),
        ("normal", {"jitter": Jitter(Duration(0.0053), "normal", keep_order=False)}, "distribution (KS)"),
        ("pareto", {"jitter": Jitter(Duration(0.02), "paretonormal", keep_order=False)}, "distribution (KS)"),
        ("uniform, correlated 25 %", {"jitter": Jitter(Duration(0.01), "uniform", Share(0.3), False)}, "delays, lag-1"),
        ("10 ms, reordering 1 %", {"reordering": Reordering(Share(0.012))}, "skipped the delay"),
        ("10 ms, reordering 5 %, correlated 50 %", {"reordering": Reordering(Share(0.05), Share(0.4))}, "skips, lag-1"),
        (
            "uniform, order kept, 4 ms apart",
            {"jitter": Jitter(Duration(0.008), "uniform", keep_order=False)},
            "out of order",
        ),
    ],
)
def test_a_link_that_does_something_else_fails(title: str, change: dict, what: str):
    assert what in failed(look(title, really=replace(SETTINGS[title].way, **change)))


def test_lateness_that_only_jittered_packets_have_shows():
    assert "distribution (KS)" in failed(look("normal, order kept, 4 ms apart", late=60e-6))


def test_packets_missing_that_no_stage_took_are_told():
    seen = look("5 ms, loss 1 %")
    said = {"dropped": {"loss": int(seen.row.lost.sum()) - 1}, "realised": {"corrupted": 0}}
    assert failed(replace(seen, said=said)) == {"lost or dropped unasked"}


def test_of_true_distributions_one_in_a_hundred_is_outside():
    setting: Setting = SETTINGS["normal"]
    below, random = law(setting.way, np.zeros(1)), np.random.default_rng(4)
    assert setting.way.jitter is not None
    n = 5000
    draws = [np.sort(0.04 + 0.005 * random.standard_normal(n)) for _ in range(400)]
    outside = sum(distance(each, below) * np.sqrt(n) > 1.6276 for each in draws)
    assert outside <= 12  # 4 are expected; more has a probability below 0.001


def test_dependence_widens_the_law_and_independence_does_not():
    assert dependence(0.0) == 1.0
    assert 1.2 < dependence(0.5) < np.sqrt(3)  # at most as for the mean of a sequence with this correlation


def test_a_test_fails_a_run_only_below_its_share_of_one_per_cent():
    line = Line("S", "W", "", "", "", False, 0.002)
    assert line.fails(1)
    assert not line.fails(20)
    assert Line("S", "W", "", "", "", False).fails(1000)
