"""Traffic between other nodes of a topology than its first and last, on a real lab and VPN."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.trials import measured
from tunnelmark import registry
from tunnelmark.plan.files import Files
from tunnelmark.plan.load import load_study
from tunnelmark.plan.order import order

pytestmark = pytest.mark.root

STUDY = """
[study]
name = "turns"
title = "Each link in turn"
blocks = 1
watch = []
profiles = ["edge-delay-50+gigabit"]
topologies = ["lan-3+b-to-c", "lan-3+c-to-a"]

[[arm]]
name = "direct"

[[arm]]
name = "direct-again"
same_as = "direct"

[[arm]]
name = "nebula"

[[workload]]
workload = "ping"
options = { duration = "2 s" }
"""


@pytest.mark.parametrize(("topology", "link"), [("lan-3+b-to-c", "b>c"), ("lan-3+c-to-a", "c>a")])
@pytest.mark.parametrize("arm", ["direct", "nebula"])
def test_a_delay_one_way_is_met_once_whoever_the_ends_are(arm: str, topology: str, link: str, tmp_path: Path) -> None:
    (tmp_path / "turns.toml").write_text(STUDY)
    plan = order(load_study(str(tmp_path / "turns.toml"), Files.standard(), registry.catalogue()))
    trial = next(one for one in plan.trials if (one.arm.name, one.topology.name) == (arm, topology))
    attempt, _ = measured(plan, trial, tmp_path)
    assert attempt.link == link
    assert attempt.outcome == "ok", attempt.failure
    values = {sample.metric: sample.value for sample in attempt.samples if sample.time is None}
    assert 50 <= values["rtt_min"] < 90, "not there and back"
