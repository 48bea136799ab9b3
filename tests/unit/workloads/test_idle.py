"""The workload that does nothing leaves its metrics to collectors, which see exactly those."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from tunnelmark import registry
from tunnelmark.run.collectors import collectors
from tunnelmark.workloads.idle import WORKLOAD, IdleOptions
from unit.workloads.recorded import ends


def test_the_client_sleeps_and_nothing_else_runs():
    traffic = WORKLOAD.traffic(ends(), IdleOptions.model_validate({"duration": "3 s"}))
    assert traffic.client.argv == ("sleep", "3")
    assert traffic.servers == ()
    assert (traffic.window, traffic.warmup) == (3.0, 0.0)
    assert traffic.timeout > 3


def test_it_prints_nothing_and_that_is_a_whole_reading():
    reading = WORKLOAD.read({"client": ""}, IdleOptions())
    assert reading.samples == ()
    assert reading.window == 10.0


def test_its_metrics_are_those_of_the_collectors_that_it_asks_for():
    seen = {metric.name: metric for name in WORKLOAD.watch for metric in collectors()[name].metrics}
    for metric in WORKLOAD.metrics:
        assert seen[metric.name].unit == metric.unit
        assert metric.primary


@pytest.mark.parametrize("duration", ["0 s", "500 ms", 3])
def test_durations_that_make_no_sense_are_refused(duration: object):
    with pytest.raises(ValidationError):
        IdleOptions.model_validate({"duration": duration})


def test_it_is_found():
    assert registry.workload("idle") is WORKLOAD
