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


def test_a_bare_link_under_other_settings_is_compared_with_direct_alone_where_there_are_vpns() -> None:
    """As it was read: the bare link at another MTU was "ahead", and the VPNs that it had beaten were said to be behind."""
    study = replace(TWO, arms=("direct", "direct-again", "direct-1450", "nebula", "tinc"))
    found = judge(study.results())
    assert {(pair.arm, pair.against) for pair in found.pairs if "direct-1450" in (pair.arm, pair.against)} == {
        ("direct-1450", "direct")
    }
    assert ("nebula", "tinc") in {(pair.arm, pair.against) for pair in found.pairs}
    assert all({place.arm for place in ranking.places} == {"nebula", "tinc"} for ranking in found.rankings)


def test_bare_links_are_ranked_where_they_are_all_that_a_study_has() -> None:
    found = judge(replace(TWO, arms=("direct", "direct-again", "direct-1450", "direct-9000")).results())
    assert found.rankings
    assert all({place.arm for place in one.places} == {"direct-1450", "direct-9000"} for one in found.rankings)
