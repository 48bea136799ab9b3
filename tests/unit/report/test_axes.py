"""An axis of a figure has places for all of its values, whatever they are, and leaves room for the names of its rows."""

from __future__ import annotations

import re
from dataclasses import replace
from math import isfinite

import pytest

from tunnelmark.analyse import judge
from tunnelmark.report.figures import effects, svg
from unit.builders import TCP, Study
from unit.conditions import SECOND, STUDY, analysed


@pytest.mark.parametrize("values", [(0.0, 0.0), (0.0,), (-0.0, 0.0), (3.0, 3.0), (-2.0,), (0.0, 5.0), (1e-9, 1e9)])
@pytest.mark.parametrize("zero", [False, True])
@pytest.mark.parametrize("may_be_log", [False, True])
def test_every_value_and_every_tick_has_a_place(values: tuple[float, ...], zero: bool, may_be_log: bool) -> None:
    axis = svg.axis(values, 10.0, 110.0, zero=zero, may_be_log=may_be_log)
    for value in (*values, *axis.ticks()):
        assert isfinite(axis(value)) and 10 <= axis(value) <= 110
    assert axis.ticks()


def test_a_ratio_of_zero_is_drawn_at_zero_however_near_to_each_other_the_others_are() -> None:
    found = analysed(replace(STUDY, tcp={}), {("tinc", SECOND, 5): 0.0})
    setting = next(one for one in found.settings() if one.profile == SECOND)
    drawn = str(effects.effects(found, setting, TCP.metrics[0])).replace("\N{NO-BREAK SPACE}", " ")
    (ring,) = re.findall(r'<circle cx="([\d.]+)"[^>]*><title>block 5: 0</title>', drawn)
    (nothing,) = re.findall(r'<text x="([\d.]+)"[^>]*>0 %</text>', drawn)
    assert ring == nothing
    assert re.search(r'<text x="[\d.]+"[^>]*>100 %</text>', drawn)


def test_a_long_name_of_an_arm_has_its_room() -> None:
    name = "wireguard-go-with-a-name-of-many-letters"
    found = judge(Study(arms=("direct", "direct-again", name), workloads=(TCP,)).results())
    drawn = str(effects.effects(found, found.settings()[0], TCP.metrics[0]))
    (end,) = re.findall(rf'<text x="([\d.]+)"[^>]*>{name}</text>', drawn)
    assert float(end) > 8 * len(name)
    (wide,) = re.findall(r'viewBox="0 0 ([\d.]+) ', drawn)
    assert max(float(x) for x in re.findall(r'<text x="([\d.]+)"', drawn)) < float(wide)
