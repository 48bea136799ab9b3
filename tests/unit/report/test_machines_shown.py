"""A merged report shows each machine, and what they say together, apart from what holds for these machines alone."""

from __future__ import annotations

import io
import json
import re
import tarfile
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter

from tunnelmark import analyse, cli
from tunnelmark.analyse.meta_analysis import Merged, merge
from tunnelmark.record.gathered import GatheredRuns
from tunnelmark.record.results import PlanInfo, Results
from tunnelmark.report import meta_report, meta_tables
from unit.builders import PING, TCP, Study

ARMS = ("direct", "direct-again", "tinc", "nebula")


def machine(model: int) -> dict[str, Any]:
    cpu = {
        "vendor": "AuthenticAMD",
        "family": "25",
        "model": str(model),
        "stepping": "1",
        "name": "AMD EPYC",
        "mhz": 2445.0,
    }
    return {"fingerprint": {"cpu": cpu, "cores": 2, "kernel": "6.18", "hypervisor": "KVM", "boot": str(model)}}


def measured(model: int, speed: float, *numbers: int) -> Results:
    """What one machine of a cluster has measured of the study: blocks of these numbers."""
    study = Study(
        arms=ARMS,
        workloads=(TCP, PING),
        blocks=8,
        tcp={"tinc": speed, "nebula": 1.4 * speed},
        seed=model,
        environment=machine(model),
    )
    found = study.results()
    trials = tuple(trial for trial in found.trials if trial.block in numbers)
    plan = replace(found.plan, seed=1, blocks=len(numbers), trials=tuple(trial.trial for trial in trials))
    return replace(found, plan=plan, trials=trials)


def gathered(*runs: Results) -> Merged:
    return merge({f"{number:02d}": analyse.judge(each) for number, each in enumerate(runs, start=1)})


@pytest.fixture(scope="module")
def five() -> Merged:
    return gathered(
        measured(1, 0.53, 1, 6),
        measured(2, 0.23, 2, 7),
        measured(3, 0.40, 3, 8),
        measured(4, 0.35, 4),
        measured(5, 0.48, 5),
    )


def columns(found: Merged) -> tuple[str, ...]:
    return meta_tables.outcome(found)[0].columns


def test_a_metric_of_two_workloads_has_a_table_for_each():
    def run(model: int) -> Results:
        uses = (TCP, replace(TCP, name="tcp-again"))
        return Study(arms=ARMS, workloads=uses, blocks=5, seed=model, environment=machine(model)).results()

    found = gathered(run(1), run(2))
    assert [table.heading for table in meta_tables.outcome(found)] == ["TCP goodput (tcp)", "TCP goodput (tcp-again)"]
    assert all(len(table.rows) == 3 for table in meta_tables.outcome(found))
    page = meta_report.html(found)
    assert "Whether such a ratio holds from machine to machine shows in its standard deviation" in page
    assert "hold from machine to machine where those" not in page


def test_machines_like_these_and_these_machines_have_a_column_each(five: Merged):
    assert columns(five)[:5] == (
        "arm",
        "ok",
        "machines like these [95 %]",
        "one more machine",
        "these 5 machines [95 %]",
    )
    assert "it says nothing of another machine" in meta_tables.legend(five)


def test_two_machines_have_an_interval_of_their_own_alone():
    found = gathered(measured(1, 0.53, 1, 3, 5, 7), measured(2, 0.23, 2, 4, 6, 8))
    assert columns(found)[:3] == ("arm", "ok", "these 2 machines [95 %]")
    row = next(row for row in meta_tables.outcome(found)[0].rows if row[0] == "tinc")
    assert re.fullmatch(r"3\d(\.\d)?\s% \[.*\]", row[2])
    assert "Fewer than three machines give no interval for others" in meta_tables.legend(found)


def test_machines_of_one_block_have_no_interval_of_their_own_and_it_is_said():
    found = gathered(*(measured(number, 0.5, number) for number in (1, 2, 3, 4)))
    assert not any(name.startswith("these") or name == "sd blocks" for name in columns(found))
    assert "machines like these [95 %]" in columns(found)
    assert "cannot be separated" in meta_tables.legend(found)


def test_json_has_each_machine_and_variances_that_are_not_cut_off(five: Merged):
    found = json.loads(meta_tables.render_json(five))
    row = next(each for each in found["rows"] if (each["arm"], each["metric"]) == ("tinc", "goodput"))
    assert [each["name"] for each in row["by_unit"]] == ["A", "B", "C", "D", "E"]
    assert row["here_low"] < row["here"] < row["here_high"]
    assert row["here_high"] - row["here_low"] < row["high"] - row["low"] < row["next_high"] - row["next_low"]
    assert row["variance_machines"] == pytest.approx(row["sd_machines"] ** 2)
    assert [len(each["values"]) for each in row["each"]] == [2, 2, 2, 1, 1]
    assert row["by_unit"][0]["low"] < 0.53 < row["by_unit"][0]["high"]


def test_the_page_draws_each_machine_for_each_arm(five: Merged):
    page = meta_report.html(five)
    pictures = re.findall(r"<svg.*?</svg>", page, re.DOTALL)
    assert len(pictures) == 2  # goodput and round-trip time
    goodput = pictures[0]
    for arm in ("direct-again", "tinc", "nebula"):
        assert f'class="arm">{arm}<' in goodput
    assert [goodput.count(f">{name}</text>") for name in ("A", "E", "like these", "these", "one more")] == [3] * 5
    assert goodput.count('class="block"') == 3 * 8
    assert re.search(r"tinc: A 5\d(\.\d)?\s% \[", goodput)
    assert '<h2 id="apart">Each machine</h2>' in page


def test_a_folder_that_blocks_of_machines_are_gathered_in_is_reported_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    runs = GatheredRuns.begin(tmp_path / "all", {}, {"study": "quick"})
    (tmp_path / "all" / "sessions" / "01" / "raw").mkdir(parents=True)  # left by a kill before its machine was noted
    with io.BytesIO() as nothing:
        tarfile.open(fileobj=nothing, mode="w").close()
        raw = nothing.getvalue()
    for model, numbers in {1: (1, 5), 2: (2,), 3: (3,), 4: (4,)}.items():
        for number in numbers:
            found = measured(model, 0.1 * model, number)
            lines: list[dict[str, object]] = [{"begun": found.trials[0].started - 1, "boot": str(model)}]
            lines += [{"trial": asdict(trial)} for trial in found.trials]
            lines.append({"wall": sum(sum(trial.phases.values()) + 0.1 for trial in found.trials)})
            plan, machine_ = TypeAdapter(PlanInfo).dump_json(found.plan).decode(), json.dumps(found.environment)
            assert runs.keep(str(model), number, plan, machine_, [json.dumps(line) for line in lines], raw)
    assert cli.main(["report", str(tmp_path / "all"), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert not any("same seed" in caution for caution in said["cautions"])
    assert not any("blocks" in why for why in said["not_joined"])
    row = next(each for each in said["rows"] if (each["arm"], each["metric"]) == ("tinc", "goodput"))
    assert (row["unit"], row["units"], [each["blocks"] for each in row["each"]]) == ("machine", 4, [2, 1, 1, 1])
    assert [round(each["estimate"], 1) for each in row["by_unit"]] == [0.1, 0.2, 0.3, 0.4]
    assert row["sd_blocks"] < row["sd_machines"]


def test_what_lies_far_outside_is_cut_off_with_a_sign():
    far = gathered(measured(1, 0.05, 1), measured(2, 0.9, 2), measured(3, 0.3, 3))
    picture = re.findall(r"<svg.*?</svg>", meta_report.html(far), re.DOTALL)[0]
    places = [float(x) for x in re.findall(r'(?:cx|x1|x2)="([-\d.]+)"', picture)]
    assert min(places) >= 0 and max(places) <= 760


def test_a_single_machine_in_one_session_has_no_picture():
    assert "<svg" not in meta_report.html(gathered(measured(1, 0.5, 1, 2, 3, 4)))
