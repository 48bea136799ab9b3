"""A profile becomes the emulator's configuration: every stage with its unit, each direction by its target."""

from __future__ import annotations

import json
import subprocess

import pytest

from tunnelmark.errors import MissingPart
from tunnelmark.lab import emulator
from tunnelmark.lab.addressing import specs_of
from tunnelmark.lab.backends import backend_of
from tunnelmark.lab.emulator_config import configuration
from tunnelmark.plan.files import Files
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
    Schedule,
    ScheduleStep,
    Trace,
)
from tunnelmark.plan.load import load_profile
from tunnelmark.plan.model import Link, Profile, Topology
from tunnelmark.units import Duration, Rate, Share, Size

PORTS = {"a": "a.0", "b": "b.0"}
PAIR = Topology("pair", "two nodes", ("a", "b"), (Link("link", ("a", "b")),))


def made(forward: Direction, back: Direction = Direction(), ports: dict[str, str] = PORTS, **more) -> dict:  # noqa: B008
    return configuration(Profile("p", "T", "S", forward, back, **more), ports, seed=7, link=1)


def stages(way: Direction, **more) -> dict:
    found = made(way, **more)["directions"]
    return next(direction["stages"] for direction in found if direction["to"] == "b.0")


def test_each_direction_is_told_apart_by_where_packets_go():
    found = made(Direction(delay=Duration(0.01)), Direction(delay=Duration(0.02)))
    assert (found["seed"], found["link"]) == (7, 1)
    by_target = {direction["to"]: direction for direction in found["directions"]}
    assert by_target["b.0"]["name"] == "a to b"
    assert by_target["b.0"]["stages"] == {"delay_us": 10_000.0}
    assert by_target["a.0"]["stages"] == {"delay_us": 20_000.0}


def test_on_a_switch_all_that_go_to_the_first_node_go_back():
    ports = {"a": "a.0", "b": "b.0", "c": "c.0"}
    found = made(Direction(delay=Duration(0.01)), Direction(delay=Duration(0.02)), ports)
    delays = {direction["to"]: direction["stages"]["delay_us"] for direction in found["directions"]}
    assert delays == {"a.0": 20_000.0, "b.0": 10_000.0, "c.0": 10_000.0}


def test_times_are_round_microseconds():
    assert stages(Direction(delay=Duration(0.0001)))["delay_us"] == 100.0
    assert stages(Direction(delay=Duration.parse("1.7 ms")))["delay_us"] == 1700.0


@pytest.mark.parametrize(
    ("loss", "plain"),
    [
        (Chance(Share(0.01), Share(0.25)), {"kind": "independent", "probability": 0.01, "correlation": 0.25}),
        (
            GilbertElliott(Share(0.01), Share(0.3), Share(0.1), Share(0.99)),
            {"kind": "gilbert-elliott", "p": 0.01, "r": 0.3, "h": 0.1, "k": 0.99},
        ),
        (
            FourState(Share(0.01), Share(0.3), Share(0.1), Share(0.9), Share(0.02)),
            {"kind": "four-state", "p13": 0.01, "p31": 0.3, "p32": 0.1, "p23": 0.9, "p14": 0.02},
        ),
        (Pattern("001", repeat=False), {"kind": "pattern", "pattern": "001", "repeat": False}),
    ],
)
def test_loss(loss, plain):
    assert stages(Direction(loss=loss)) == {"loss": plain}


def test_the_other_stages():
    way = Direction(
        delay=Duration(0.02),
        jitter=Jitter(Duration(0.002), "normal", Share(0.25)),
        duplication=Chance(Share(0.001)),
        corruption=Chance(Share(0.002), Share(0.1)),
        reordering=Reordering(Share(0.01), Share(0.5), 3),
        rate=Rate(10**8),
        queue=Size(65536),
        queue_packets=50,
        codel=Codel(),
        overhead=24,
    )
    assert stages(way) == {
        "delay_us": 20_000.0,
        "jitter": {"jitter_us": 2000.0, "distribution": "normal", "correlation": 0.25, "keep_order": True},
        "duplication": {"probability": 0.001, "correlation": 0.0},
        "corruption": {"probability": 0.002, "correlation": 0.1},
        "reordering": {"probability": 0.01, "correlation": 0.5, "gap": 3},
        "rate": {
            "rate_bps": 100_000_000,
            "queue_bytes": 65536,
            "queue_packets": 50,
            "codel": {"target_us": 5000, "interval_us": 100_000},
            "overhead_bytes": 24,
        },
    }


def test_a_trace_blackouts_and_a_schedule():
    step = ScheduleStep(Duration(1), Direction(delay=Duration(0.03)), ("delay", "loss"), down=True)
    way = Direction(
        rate_trace=Trace((1, 2, 2), 1514),
        queue=Size(1000),
        blackouts=(Blackout(Duration(1), Duration(0.5)), Blackout(Duration(0), Duration(0.1), Duration(2))),
        schedule=Schedule((step,), Duration(10)),
    )
    found = next(direction for direction in made(way)["directions"] if direction["to"] == "b.0")
    assert found["stages"]["rate"] == {"trace": {"at_ms": [1, 2, 2], "bytes": 1514}, "queue_bytes": 1000}
    assert found["blackouts"] == [
        {"start_us": 1_000_000, "length_us": 500_000},
        {"start_us": 0, "length_us": 100_000, "every_us": 2_000_000},
    ]
    assert found["schedule"] == {
        "repeat_us": 10_000_000,
        "steps": [{"at_us": 1_000_000, "set": {"delay_us": 30_000.0}, "clear": ["delay_us", "loss"], "down": True}],
    }


def test_the_propagation_is_of_the_direction_and_no_stage():
    found = made(Direction(propagation=Duration(0.0002)))["directions"][1]
    assert (found["propagation_us"], found["stages"]) == (200.0, {})


class TestNetemsModel:
    def test_states_no_order_because_netem_keeps_none(self):
        way = Direction(delay=Duration(0.002), jitter=Jitter(Duration(0.002), keep_order=False), limit=500)
        found = made(way, model="netem", unit="gso")
        assert found["directions"][1]["limit_packets"] == 500
        assert (found["directions"][1]["model"], found["directions"][1]["unit"]) == ("netem", "gso")
        assert "keep_order" not in stages(way, model="netem")["jitter"]

    def test_has_its_own_rate_where_no_queue_is_stated(self):
        assert stages(Direction(rate=Rate(8000)), model="netem")["rate"] == {"rate_bps": 8000}

    def test_leaves_a_rate_with_a_queue_to_a_shaper_behind_it(self):
        way = Direction(delay=Duration(0.002), rate=Rate(10**8), queue=Size(65536))
        assert "rate" not in stages(way, model="netem")
        (link,) = specs_of(PAIR, Profile("p", "T", "S", way, way, model="netem"))
        assert link.emulated
        assert {node: (shaper.rate, shaper.queue) for node, shaper in link.shapers.items()} == dict.fromkeys(
            ("a", "b"), (10**8, 65536)
        )


@pytest.mark.parametrize("name", Files.standard().names("profile"))
def test_the_emulator_accepts_every_profile_of_ours(name, tmp_path):
    try:
        program = emulator.program()
    except MissingPart as missing:
        pytest.skip(missing.hint)
    profile = load_profile(name, Files.standard())
    if backend_of(profile) == "netem":
        return
    file = tmp_path / "link.json"
    file.write_text(json.dumps(configuration(profile, PORTS, seed=1, link=0)))
    done = subprocess.run([program, "--config", file, "--check"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
