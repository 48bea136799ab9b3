"""Whether a machine carries a study's links: which load the study is, and what the looks are said to mean."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from tunnelmark import registry
from tunnelmark.doctor.capacity import CapacityLook, Lateness
from tunnelmark.plan.files import Files
from tunnelmark.plan.impairments import Trace
from tunnelmark.plan.load import load_profile, load_topology, parse_study
from tunnelmark.plan.model import Study
from tunnelmark.run import link_capacity
from tunnelmark.run.link_capacity import Fitness, StudyLoad, examine, load_of, seen

HEAD = """
[study]
name = "mine"
title = "Mine"
blocks = 1
profiles = ["fast-ethernet"]
topologies = ["pair"]
[[arm]]
name = "direct"
[[arm]]
name = "again"
same_as = "direct"
"""


def study(*workloads: str) -> Study:
    tables = "".join(f"[[workload]]\nworkload = {each}\n" for each in workloads)
    return parse_study(HEAD + tables, "mine.toml", Files.standard(), registry.catalogue())


@pytest.mark.parametrize(
    ("workloads", "load"),
    [
        (['"ping"'], StudyLoad(False)),
        (['"ping"', '"udp"\noptions = { rate = "20 Mbit/s" }'], StudyLoad(False, 20e6)),
        (['"udp"\noptions = { rate = "30 %" }'], StudyLoad(False, 29_531_900.0)),
        (['"ping"', '"tcp"'], StudyLoad(True)),
        (['"udp"', '"latency"'], StudyLoad(True)),
        (['"quic"'], StudyLoad(True)),
        (['"udp-search"'], StudyLoad(True)),
        (['"http"', '"kube-api"'], StudyLoad(False)),
    ],
)
def test_the_load_is_the_heaviest_that_a_study_makes(workloads, load):
    asked = study(*workloads)
    assert load_of(asked, registry.workloads(), asked.profiles[0]) == load


def test_a_share_of_the_rate_is_that_of_the_link_that_is_tried():
    both = HEAD.replace('["fast-ethernet"]', '["gigabit", "fast-ethernet"]')
    text = both + '[[workload]]\nworkload = "udp"\noptions = { rate = "30 %" }\n'
    asked = parse_study(text, "mine.toml", Files.standard(), registry.catalogue())
    assert load_of(asked, registry.workloads(), asked.profiles[1]) == StudyLoad(False, 29_531_900.0)
    assert load_of(asked, registry.workloads(), asked.profiles[0]).offered > 290e6


def test_no_lower_rate_is_tried_for_a_link_whose_rate_was_recorded():
    """As it was, the emulator refused a link of two rates, and the run ended before its first trial."""
    lan = load_profile("lan", Files.standard())
    recorded = replace(lan.forward, rate=None, rate_trace=Trace((1, 2, 3)))
    assert link_capacity._slower(replace(lan, forward=recorded)) == ()
    assert link_capacity._slower(load_profile("unshaped", Files.standard())) != ()


def test_a_link_that_is_not_filled_says_by_how_much():
    gigabit = load_profile("gigabit", Files.standard())
    said = seen(gigabit, [CapacityLook(0.83e9, 0.0), CapacityLook(0.93e9, 0.0)])
    assert said == "one TCP stream over the bare link reached 94.5, 84.3 % of 984.395 Mbit/s; 95 % is asked"


def test_a_link_that_is_late_says_by_how_much_and_what_is_allowed():
    bad = load_profile("wifi-bad", Files.standard())
    looks = [CapacityLook(1e7, 0.0, Lateness(500, 1e-5, late, 2 * late), "late") for late in (0.0031, 0.0012)]
    assert (
        seen(bad, looks) == "one packet in a hundred left the emulator 1.20, 3.10 ms late or more; 1.00 ms is the bound"
    )


def test_packets_that_were_dropped_are_told_first():
    bad = load_profile("wifi-bad", Files.standard())
    look = CapacityLook(1e7, 0.0, Lateness(500, 1e-5, 1e-4, 2e-4), "the emulator dropped 3 packets unasked")
    assert seen(bad, [look]).startswith("the emulator dropped 3 packets unasked; one packet in a hundred")


@pytest.mark.root
@pytest.mark.parametrize("offered", [0.0, 20e6])
def test_a_link_is_tried_with_the_light_load_of_a_study_that_sends_little(offered: float) -> None:
    """As it was: a study of pings over an emulated link ended before its first trial, as its rate was "4 Mbit/s" to iperf3."""
    from tunnelmark.lab.client import LabClient

    files = Files.standard()

    async def tried() -> Fitness:
        async with LabClient() as labs:
            return await examine(
                labs, load_topology("pair", files), load_profile("lan", files), StudyLoad(False, offered)
            )

    found = asyncio.run(tried())
    assert found.looks, "packets have passed"
    for look in found.looks:
        assert look.packets > 0
        assert look.late is not None
