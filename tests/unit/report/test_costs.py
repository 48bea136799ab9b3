"""What it cost stands in a section of its own, in all reports, and not among the results."""

from __future__ import annotations

import json
from dataclasses import replace
from io import StringIO

from rich.console import Console

from tunnelmark.analyse import judge
from tunnelmark.analyse.model import Analysis
from tunnelmark.record.results import MetricInfo, SampleRow, WorkloadInfo
from tunnelmark.report import costs, html, markdown, terminal
from tunnelmark.report import json_export as as_json
from unit.builders import PING, TCP, Study

SEEN = (
    MetricInfo("cpu_per_gb_source", "s/GB", "CPU per gigabyte, sender", "lower", "ratio", False, "cpu"),
    MetricInfo("memory_load_source", "MiB", "memory under load, sender", "lower", "ratio", False, "memory"),
    MetricInfo("wire_bytes_per_byte", "", "bytes outside per byte inside", "lower", "ratio", False, "wire"),
    MetricInfo("switches_source", "1/s", "context switches, sender", "lower", "ratio", False, "switches"),
)


def watched(workload: WorkloadInfo) -> WorkloadInfo:
    return replace(workload, metrics=workload.metrics + SEEN)


def analysis(**study: object) -> Analysis:
    results = Study(workloads=(watched(TCP), watched(PING)), **study).results()  # type: ignore[arg-type]
    trials = []
    for row in results.trials:
        cost = {"direct": 0.5, "direct-again": 0.5}.get(row.arm, 4.0)
        extra = [SampleRow("wire_bytes_per_byte", "", 1.05)]
        if row.workload == "tcp":
            extra += [SampleRow("cpu_per_gb_source", "s/GB", cost), SampleRow("cpu_per_gb_source", "s/GB", cost, 0.5)]
        notes = {}
        if row.arm.startswith("direct"):
            notes = {"memory": "no daemon runs on the node"}
        else:
            extra += [SampleRow("memory_load_source", "MiB", 12.5), SampleRow("switches_source", "1/s", 9000.0)]
        trials.append(replace(row, samples=(*row.samples, *extra), notes=notes))
    return judge(replace(results, trials=tuple(trials)))


def on_a_terminal(found: Analysis, *shown: str) -> str:
    stream = StringIO()
    Console(file=stream, width=120).print(terminal.render(found, shown))
    return stream.getvalue()


def test_the_few_that_matter_are_columns_and_the_rest_is_kept_apart():
    tcp, ping = costs.costs(analysis())
    assert [metric.name for metric, _ in tcp.columns] == [
        "cpu_per_gb_source",
        "memory_load_source",
        "wire_bytes_per_byte",
    ]
    assert [metric.name for metric, _ in ping.columns] == ["memory_load_source", "wire_bytes_per_byte"]
    assert tcp.absent == ("memory (direct and direct-again): no daemon runs on the node",)


def test_markdown_has_the_section_and_main_tables_have_nothing_of_it():
    text = markdown.render(analysis())
    results, _, cost = text.partition("## What it cost")
    assert "CPU per GB" not in results
    assert "CPU per GB, sender" in cost
    assert "4.00\N{NO-BREAK SPACE}s/GB<br>8.00×" in cost
    assert "no daemon runs on the node" in cost


def test_the_terminal_has_it_on_request_where_something_passed():
    found = analysis()
    assert "What it cost" not in on_a_terminal(found)
    text = on_a_terminal(found, "costs")
    assert "What it cost: tcp" in text
    assert "What it cost: ping" not in text
    assert "12.5" in text


def test_the_page_has_it_with_everything_that_was_watched():
    text = html.render(analysis())
    results, _, rest = text.partition('id="cost"')
    cost, _, after = rest.partition("<script")[0].partition('id="effects"')
    assert "4.00\N{NO-BREAK SPACE}s/GB" in cost
    assert "context switches, sender" in cost
    assert "context switches, sender" not in results
    assert "context switches, sender" not in after
    assert "no daemon runs on the node" in cost
    assert "<td>–</td>" in cost, "what was not seen is a dash, and no verdict"
    assert "too few blocks" not in cost


def test_less_outside_than_inside_is_explained_where_it_is_shown():
    found = analysis()
    assert costs.explained(found) == costs.EXPLAINED
    tinc = next(cell for cell in found.cells if (cell.arm, cell.metric.name) == ("tinc", "wire_bytes_per_byte"))
    assert tinc.spread is not None
    less = replace(tinc, spread=replace(tinc.spread, median=0.891))
    shown = replace(found, cells=tuple(less if cell is tinc else cell for cell in found.cells))
    for text in (markdown.render(shown), html.render(shown), " ".join(on_a_terminal(shown, "costs").split())):
        assert "Less outside than inside (tinc): the VPN took bytes" in text


def test_programs_get_who_saw_what():
    cells = json.loads(as_json.render(analysis()))["cells"]
    assert {cell["watcher"] for cell in cells} == {None, "cpu", "memory", "switches", "wire"}


def test_without_collectors_there_is_no_section():
    bare = judge(Study().results())
    assert costs.costs(bare) == ()
    assert "What it cost" not in markdown.render(bare) + html.render(bare) + on_a_terminal(bare, "costs")


def test_nothing_of_it_is_judged_or_ranked():
    found = analysis()
    assert not any(ranking.metric in {metric.name for metric in SEEN} for ranking in found.rankings)
    assert found.same.standing == "agrees"
