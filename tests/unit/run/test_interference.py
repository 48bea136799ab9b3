"""What the machine did besides the lab, from two looks at it."""

from __future__ import annotations

import pytest

from tunnelmark.run.interference import Glance, between

BEFORE = Glance(time=10.0, softirq=1.0, busy=4.0, stolen=0.0, lab=1.0, own=0.5)
AFTER = Glance(time=12.0, softirq=1.2, busy=6.2, stolen=0.1, lab=1.5, own=1.0)


def test_other_work_is_what_neither_lab_nor_command_nor_softirq_used() -> None:
    assert between(BEFORE, AFTER) == pytest.approx(
        {"steal": 0.05, "softirq_cpu": 0.1, "other_cpu": 0.5, "lab_cpu": 0.25}
    )


def test_where_only_the_lab_runs_the_kernel_s_work_is_the_lab_s() -> None:
    assert between(BEFORE, AFTER, alone=True) == pytest.approx(
        {"steal": 0.05, "softirq_cpu": 0.1, "other_cpu": 0.0, "lab_cpu": 0.75}
    )
