"""What a reader must know before any number: links that the machine or its emulator did not carry."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tunnelmark.analyse import judge
from tunnelmark.analyse.model import Bottleneck
from tunnelmark.report.cautions import cautions
from unit.builders import Study

LATE = {
    "state": "late",
    "said": "one packet in a hundred left the emulator 11.27 ms late or more; 2.50 ms is the bound",
    "instead": 200_000_000,
}


def said(measured: object) -> str:
    return " ".join(cautions(judge(replace(Study(), environment={"measured": measured}).results())))


def test_a_link_that_the_machine_did_not_carry_is_told_with_what_it_does():
    profile = Study().results().plan.profiles[0].name
    text = said({"links": {profile: LATE}})
    assert (
        f"than this machine carries over {profile} on time: one packet in a hundred left the emulator 11.27 ms late"
        in text
    )
    assert "At 200 Mbit/s it was on time." in text
    assert "it was on time" not in said({"links": {profile: LATE | {"instead": None}}})


@pytest.mark.parametrize("measured", [None, {}, {"links": {}}, {"links": {"elsewhere": LATE}}])
def test_links_that_were_kept_or_not_looked_at_are_not_told(measured: object):
    assert "than this machine carries" not in said(measured)


def test_a_bare_link_that_the_emulator_held_is_told():
    """A VPN's share of 131 % of it was a first answer: the bare link had lost 80 % of its flood in the emulator."""
    found = judge(Study().results())
    assert found.reference is not None
    setting = found.settings()[0]

    def said_of(arm: str) -> str:
        return " ".join(cautions(replace(found, bound_by={(arm, setting): Bottleneck("emulator")})))

    where = f"{setting.workload} over {setting.profile} ({setting.topology})"
    assert f"The link emulator, and not the link, was the limit of direct by {where}: " in said_of(found.reference)
    assert "The link emulator" not in said_of(next(each.arm for each in found.arms if each.arm != found.reference))
