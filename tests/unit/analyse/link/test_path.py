"""The path of processes in time: the published answers of its random numbers, its shape, and what the emulator does in virtual time."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace

import numpy as np
import pytest

from tunnelmark.analyse.link import simulation
from tunnelmark.analyse.link.judge import judge
from tunnelmark.analyse.link.path import MARGIN, LinkPath, philox, telling_seed
from tunnelmark.analyse.link.processes import wandering
from tunnelmark.analyse.link.simulation import simulate
from tunnelmark.analyse.link.statistics import Floats
from tunnelmark.errors import MissingPart
from tunnelmark.lab import emulator
from tunnelmark.lab.emulator_config import configuration
from tunnelmark.model.probe_plan import Pace
from tunnelmark.plan.files import Files
from tunnelmark.plan.impairments import Blackout, Bursts, Chance, Direction, Jitter
from tunnelmark.plan.load import load_profile
from tunnelmark.plan.model import Profile
from tunnelmark.plan.struck import drawn
from tunnelmark.units import Duration, Share
from unit.made_looks import ZERO, flow, observation, profile

EVERY, COUNT = 200e-6, 100_000
TIMES: Floats = EVERY * np.arange(COUNT, dtype=np.float64)
BURSTS = Bursts(Duration(0.02), Duration(0.3), Share(1.0), Share(0.0))


@pytest.mark.parametrize(
    ("counter", "key", "answer"),
    [
        ([0] * 4, (0, 0), [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]),
        ([0xFFFFFFFF] * 4, (0xFFFFFFFF, 0xFFFFFFFF), [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]),
        (
            [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344],
            (0xA4093822, 0x299F31D0),
            [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1],
        ),
    ],
)
def test_philox_gives_the_known_answers_of_random123(counter: list[int], key: tuple[int, int], answer: list[int]):
    columns = np.array([counter, counter], dtype=np.uint64).T
    assert philox(columns, key).T.tolist() == [answer, answer]


def test_it_wanders_as_the_process_is_defined():
    """Over seeds: standard normal, and correlated like the process that has each run draw its own."""
    times = np.linspace(0, 0.03, 31)
    found = np.array([LinkPath(seed, 0, 1).wandering(times, 0.01) for seed in range(4000)])
    other = wandering(times / 0.01, 4000, np.random.default_rng(1))
    assert abs(found.mean()) < 0.05
    assert found.std() == pytest.approx(1, abs=0.03)
    assert (found[:, 0] * found[:, 10]).mean() == pytest.approx(np.exp(-1), abs=0.06)
    assert (found[:, 0] * found[:, 10]).mean() == pytest.approx((other[:, 0] * other[:, 10]).mean(), abs=0.08)


def test_bursts_and_cuts_have_their_share():
    times = np.arange(0, 30, 0.01)
    on = np.mean([LinkPath(seed, 0, 1).in_burst(BURSTS, times).mean() for seed in range(60)])
    assert on == pytest.approx(BURSTS.share, rel=0.1)
    drawn = Blackout(None, Duration(0.05), Duration(0.7))
    cut = np.mean([LinkPath(seed, 0, 1).black((drawn,), times).mean() for seed in range(60)])
    assert cut == pytest.approx(0.05 / 0.7, rel=0.05)
    stated = Blackout(Duration(1.0), Duration(0.5), None)
    assert LinkPath(1, 0, 1).black((stated,), np.array([0.9, 1.0, 1.49, 1.5])).tolist() == [False, True, True, False]


def rehearsed(profile: Profile, seed: int, place: int) -> dict:
    try:
        program = emulator.program()
    except MissingPart as missing:
        pytest.skip(str(missing.hint))
    said = subprocess.run(
        [program, "--config", "-", "--rehearse", f"{round(EVERY * 1e9)},242,1,{COUNT},1"],
        input=json.dumps(configuration(profile, {"a": "a.0", "b": "b.0"}, seed=seed, link=0)) + "\n",
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    return json.loads(said.splitlines()[place])["realised"]


@pytest.mark.parametrize("seed", [0, 7, 2**33 + 5])
@pytest.mark.parametrize("place", [0, 1])
def test_the_emulator_takes_the_same_bursts_and_cuts(seed: int, place: int):
    cut = Blackout(None, Duration(0.05), Duration(0.9))
    way = Direction(loss=BURSTS, blackouts=(cut,), delay=Duration(0.01))
    found = rehearsed(Profile("p", "T", "S", way, way), seed, place)["dropped"]
    path = LinkPath(seed, 0, place)
    lost, black = path.in_burst(BURSTS, TIMES), path.black((cut,), TIMES)
    # At the edge of a burst a nanosecond decides.
    assert found["loss"] + found["blackout"] == pytest.approx((lost | black).sum(), abs=3)


@pytest.mark.parametrize("seed", [0, 7, 2**33 + 5])
@pytest.mark.parametrize("place", [0, 1])
def test_the_emulator_loses_the_same_packets(seed: int, place: int):
    """Of a loss that strikes each packet alone nothing is left to chance: not one packet more or fewer."""
    way = Direction(loss=Chance(Share(0.003)), delay=Duration(0.01))
    assert drawn(way, "stated", "wire") == 0.003
    found = rehearsed(Profile("p", "T", "S", way, way), seed, place)
    assert found["offered"] == COUNT
    (follow,) = LinkPath(seed, 0, place).lost(COUNT, 0.003)
    assert found["dropped"]["loss"] == follow > 0


@pytest.mark.parametrize("name", ["wifi-bad", "wifi-good", "leo-satellite", "train"])
@pytest.mark.parametrize("place", [0, 1])
def test_the_emulator_takes_the_same_delays(name: str, place: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(simulation, "_ON_THE_WAY", 0.0)  # virtual time
    shipped = load_profile(name, Files.standard())
    ways = [Direction(delay=way.delay, jitter=way.jitter) for way in (shipped.forward, shipped.back)]
    found = rehearsed(Profile("p", "T", "S", ways[0], ways[1]), 11, place)["delay_us"]
    own = simulate(ways[1 - place], "stated", TIMES, runs=1, seed=1, path=LinkPath(11, 0, place)).delay[0]
    assert found["mean"] == pytest.approx(1e6 * own.mean(), abs=0.01)
    assert found["max"] == pytest.approx(1e6 * own.max(), rel=1e-3)


def test_a_look_has_a_seed_under_which_it_meets_what_it_is_to_show():
    train = load_profile("train", Files.standard())
    pace = Pace(2400, 0.001)
    seed = telling_seed(train, pace, 2, 5)
    times: Floats = MARGIN + pace.interval * np.arange(pace.count, dtype=np.float64)
    for way, place in ((train.forward, 1), (train.back, 0)):
        cut = LinkPath(seed, 0, place).black(way.blackouts, times)
        assert isinstance(way.loss, Bursts)
        assert 12 <= cut.sum() <= 1200
        assert (LinkPath(seed, 0, place).in_burst(way.loss, times) & ~cut).sum() >= 12
    assert telling_seed(train, None, 2, 5) == 5
    assert telling_seed(load_profile("lan", Files.standard()), pace, 2, 5) == 5


@pytest.mark.parametrize(("share", "verdict"), [(1.0, "verified"), (0.7, "outside"), (0.85, "outside")])
def test_on_a_path_that_is_known_a_smaller_jitter_is_found(share: float, verdict: str):
    stated = Direction(delay=Duration(0.01), jitter=Jitter(Duration(0.002), correlation_time=Duration(0.04)))
    assert stated.jitter is not None
    truth = replace(stated, jitter=replace(stated.jitter, size=Duration(share * 0.002)))
    names = ("b to a", "a to b")
    quiet = {"lateness_us": {"count": 9, "p50": 1.0, "p99": 5.0, "max": 9.0}, "dropped": {"memory": 0, "loss": 0}}
    report = {"directions": [{"name": name, **quiet} for name in names], "ports": []}
    forward, back = (
        flow(truth, source, 1, late=20e-6, path=LinkPath(3, 0, place)) for source, place in (("a", 1), ("b", 0))
    )
    seen = replace(observation(forward, back, (report,)), seed=3, begun=ZERO)
    assert judge(profile(stated), seen, "alone").verdict == verdict
