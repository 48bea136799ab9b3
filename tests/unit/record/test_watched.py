"""What collectors saw is kept beside a workload's own samples: metrics with their collector, units, notes, tables."""

from __future__ import annotations

from dataclasses import replace

from tunnelmark import registry
from tunnelmark.model.attempt import PHASES, Attempt
from tunnelmark.model.metrics import Sample
from tunnelmark.plan.files import Files
from tunnelmark.plan.load import load_study
from tunnelmark.plan.order import order
from tunnelmark.record import describe, store
from tunnelmark.record.environment import socket_buffer_limit
from tunnelmark.record.results import Results
from tunnelmark.run.collection import COST
from tunnelmark.run.collectors import collectors
from tunnelmark.run.runner import RunContext

WATCHING = (collectors()["cpu"], collectors()["wire"])


def test_a_watchers_metrics_follow_the_workloads_own():
    found = describe.metrics(registry.workload("ping").metrics, WATCHING)
    own = [metric.name for metric in registry.workload("ping").metrics]
    assert [metric.name for metric in found[: len(own)]] == own
    assert not any(metric.watcher for metric in found[: len(own)])
    assert {metric.watcher for metric in found[len(own) :]} == {"cpu", "wire", "cost"}
    assert not any(metric.primary for metric in found[len(own) :])
    assert found[-1].name == COST.name


def test_nothing_is_added_where_nobody_watches():
    assert len(describe.metrics(registry.workload("ping").metrics, ())) == len(registry.workload("ping").metrics)


def test_a_workload_that_declares_a_watchers_metric_keeps_its_own_words():
    found = {metric.name: metric for metric in describe.metrics(registry.workload("idle").metrics, WATCHING)}
    assert found["cpu_source"].primary
    assert found["cpu_source"].watcher == ""
    assert found["cpu_kernel_source"].watcher == "cpu"


def test_the_plan_says_who_watches_and_the_rows_have_units_and_notes(tmp_path):
    study = load_study("quick", Files.standard(), registry.catalogue(), blocks=1, watch=("cpu",))
    plan = order(study)
    context = RunContext(registry.vpns(), registry.workloads(), socket_buffer_limit())
    info = describe.describe(plan, context.drivers, context.workloads, lambda w: context.watching(study.watch, w))
    assert info.watch == ("cpu",)
    assert all(any(metric.watcher == "cpu" for metric in use.metrics) for use in info.workloads)
    attempt = Attempt(
        plan.trials[0],
        "ok",
        "a>b",
        0.0,
        dict.fromkeys(PHASES, 0.0),
        samples=(Sample("cpu_source", 12.0), Sample("cpu_source", 11.0, 0.5)),
        notes={"cpu_softirq": "shared"},
    )
    workload = context.workloads[plan.trials[0].use.workload]
    row = describe.row_of(attempt, workload, context.watching(study.watch, workload))
    assert [sample.unit for sample in row.samples] == ["ms/s", "ms/s"]
    assert row.notes == {"cpu_softirq": "shared"}
    samples, trials = store.tables(Results(tmp_path, info, {}, (row,), ()))
    assert samples.column("metric").to_pylist() == ["cpu_source", "cpu_source"]
    assert trials.column("notes").to_pylist() == [[("cpu_softirq", "shared")]]


def test_the_trials_of_idle_have_its_watchers_whatever_was_chosen():
    context = RunContext(registry.vpns(), registry.workloads(), 212992)
    assert [one.name for one in context.watching((), registry.workload("idle"))] == ["cpu", "wire"]
    assert [one.name for one in context.watching(("wire", "tcp"), registry.workload("idle"))] == ["wire", "tcp", "cpu"]
    assert context.watching((), replace(registry.workload("idle"), watch=())) == ()
