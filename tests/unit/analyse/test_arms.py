"""Arms over their trials."""

from __future__ import annotations

from dataclasses import replace

from tunnelmark.analyse import judge
from tunnelmark.analyse.arms import in_settings
from unit.builders import PROFILE, Study

TWO = Study(profiles=(PROFILE, replace(PROFILE, name="slow")))


def test_a_first_packet_over_one_link_is_not_told_of_another() -> None:
    results = TWO.results()
    trials = tuple(replace(row, first_packet={"a>b": 5.0 if row.profile == "slow" else 0.02}) for row in results.trials)
    analysis = judge(replace(results, trials=trials))
    fast = [setting for setting in analysis.settings() if setting.profile != "slow"]
    slow = [setting for setting in analysis.settings() if setting.profile == "slow"]
    for settings, seconds in ((fast, 0.02), (slow, 5.0)):
        found = in_settings(analysis, settings)
        assert [summary.arm for summary in found] == [arm.name for arm in results.plan.arms]
        assert {summary.first_packet.median for summary in found if summary.first_packet} == {seconds}
        assert {summary.success.total for summary in found} == {15}
