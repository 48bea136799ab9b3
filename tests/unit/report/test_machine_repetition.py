"""A report over machines names the publication that its runs repeat, how each machine measured it, and on which machines claims hold."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from rich.console import Console

from tunnelmark import analyse
from tunnelmark.analyse.meta_analysis import Merged, merge
from tunnelmark.claims.across_machines import of_machines
from tunnelmark.report import machine_repetition, meta_report
from tunnelmark.report.machine_repetition import MachineRepetition
from unit import repeated
from unit.report.test_machines_shown import machine
from unit.report.test_repetition import ENVIRONMENT, MACHINE


def environment(model: int, kernel: str) -> dict[str, Any]:
    return {**ENVIRONMENT, **machine(model), "machine": MACHINE | {"kernel": kernel}}


@cache
def two() -> tuple[Merged, MachineRepetition]:
    runs = {
        name: repeated.results("cascade", environment=environment(model, kernel))
        for name, model, kernel in (("01", 1, "6.1.0"), ("02", 2, "6.2.0"))
    }
    verdicts = of_machines(runs)
    assert verdicts is not None
    return merge({name: analyse.judge(each) for name, each in runs.items()}), machine_repetition.of(verdicts)


def test_each_machine_has_a_column_next_to_the_source_s() -> None:
    _, repeats = two()
    assert repeats.setups.columns == ("what", "there", "machine A", "machine B")
    (kernel,) = [row for row in repeats.setups.rows if row[0] == "kernel"]
    assert kernel[2:] == ("Linux 6.1.0", "Linux 6.2.0")
    assert len(set(repeats.otherwise)) == len(repeats.otherwise) > 0
    assert len(repeats.claims.rows) == 48


def test_every_form_of_the_report_names_the_source_and_what_came_of_its_claims() -> None:
    merged, repeats = two()
    console = Console(width=200, color_system=None)
    with console.capture() as captured:
        console.print(meta_report.terminal(merged, repeats))
    for text in (captured.get(), meta_report.markdown(merged, repeats), meta_report.html(merged, repeats)):
        assert "S. Pahl, F. Adamsky" in text and "48 claims on 2 machines" in text
    page = meta_report.html(merged, repeats)
    for target in re.findall(r'href="#([^"]+)"', page):
        assert f'id="{target}"' in page
    assert page.count("<tr>") > 48


def test_a_study_that_repeats_nothing_has_no_such_part() -> None:
    merged, _ = two()
    assert "What these runs repeat" not in meta_report.markdown(merged) + meta_report.html(merged)
