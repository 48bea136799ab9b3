"""The text of a small study file: direct, direct again and some VPNs, by TCP alone."""

from __future__ import annotations

from collections.abc import Sequence


def study_text(
    *vpns: str, seconds: float = 2.0, profiles: Sequence[str] = ("gigabit",), settings: str = "blocks = 8"
) -> str:
    """A study "mine" of trials of so many seconds after one of warm-up; `settings` are further lines of its head."""
    arms = "".join(f'\n[[arm]]\nname = "{vpn}"\n' for vpn in vpns)
    names = ", ".join(f'"{name}"' for name in profiles)
    return f"""
[study]
name = "mine"
title = "Mine"
{settings}
profiles = [{names}]
topologies = ["pair"]

[[arm]]
name = "direct"

[[arm]]
name = "direct-again"
same_as = "direct"
{arms}
[[workload]]
workload = "tcp"
options = {{ duration = "{seconds:g} s", warmup = "1 s" }}
"""
