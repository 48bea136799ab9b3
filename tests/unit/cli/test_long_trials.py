"""Before a run begins, users are given the reason of each long trial, by the path that its traffic takes."""

from __future__ import annotations

from pathlib import Path

from tunnelmark import registry
from tunnelmark.cli.progress import long_trials
from tunnelmark.plan.files import Files
from tunnelmark.plan.load import load_study
from tunnelmark.plan.order import order

STUDY = """
[study]
name = "far"
seed = 1
blocks = 2
title = "Near and far"
description = "TCP over the Internet, over one link and over a chain."
profiles = ["gigabit", "cascade-internet"]
topologies = [{topologies}]

[[arm]]
name = "direct"

[[arm]]
name = "direct-again"
same_as = "direct"

[[workload]]
workload = "tcp"
"""


def said(tmp_path: Path, *topologies: str) -> tuple[str, ...]:
    file = tmp_path / "far.toml"
    file.write_text(STUDY.format(topologies=", ".join(f'"{name}"' for name in topologies)))
    return long_trials(order(load_study(str(file), Files.standard(), registry.catalogue())))


def test_a_chain_is_longer_than_one_of_its_links(tmp_path: Path) -> None:
    assert said(tmp_path, "pair") == ()
    assert said(tmp_path, "chain-3") == ("a trial of tcp over cascade-internet lasts 9 s: a loss comes every 800 ms",)


def test_where_paths_differ_the_topology_is_named_once_for_all_arms(tmp_path: Path) -> None:
    assert said(tmp_path, "pair", "chain-3") == (
        "a trial of tcp over cascade-internet on chain-3 lasts 9 s: a loss comes every 800 ms",
    )
