"""What a plan keeps of lengths is by path: by profile, and by topology where a study has several."""

from __future__ import annotations

from tunnelmark import registry
from tunnelmark.plan.files import Files
from tunnelmark.plan.load import load_study
from tunnelmark.plan.order import order
from tunnelmark.record.describe import describe
from tunnelmark.record.results import PlanInfo, path_key

STUDY = """
[study]
name = "short"
seed = 1
blocks = 2
title = "Two topologies"
description = "One second of TCP over the Internet."
profiles = ["gigabit", "cascade-internet"]
topologies = [{topologies}]

[[arm]]
name = "direct"

[[arm]]
name = "direct-again"
same_as = "direct"

[[workload]]
workload = "tcp"
{options}
"""


def plan(tmp_path, *topologies: str, options: str = "") -> PlanInfo:
    named = ", ".join(f'"{name}"' for name in topologies)
    (tmp_path / "short.toml").write_text(STUDY.format(topologies=named, options=options))
    study = load_study(str(tmp_path / "short.toml"), Files.standard(), registry.catalogue())
    return describe(order(study), registry.vpns(), registry.workloads())


def test_a_stated_length_is_short_by_the_path_that_is_longer(tmp_path):
    stated = 'options = { duration = "8 s", warmup = "3700 ms" }'
    use = plan(tmp_path, "pair", "chain-3", options=stated).workloads[0]
    assert dict(use.short) == {
        path_key("cascade-internet", "chain-3"): "17.9 round trips are measured, 20 are needed",
    }
    alone = plan(tmp_path, "chain-3", options=stated).workloads[0]
    assert list(alone.short) == ["cascade-internet"]


def test_windows_are_by_path_where_they_differ(tmp_path):
    use = plan(tmp_path, "pair", "chain-3").workloads[0]
    far = use.window_over("cascade-internet", "chain-3")
    assert far >= 20 * 0.24
    assert use.window == use.window_over("gigabit", "chain-3") < use.window_over("cascade-internet", "pair") < far
    alone = plan(tmp_path, "chain-3").workloads[0]
    assert alone.window_over("cascade-internet", "chain-3") == far
