"""The data in the page are the analysis and the store: every cell, every attempt, every value, within the room that a page has."""

from __future__ import annotations

import json
import zlib
from base64 import b64decode
from dataclasses import replace

import pytest

from tunnelmark.analyse import judge
from tunnelmark.analyse.model import Analysis
from tunnelmark.record.results import Results
from tunnelmark.report import formatting, web_data, web_series
from unit.builders import PING, TCP, Study
from unit.conditions import STUDY, analysed

SERIES = Study(series=True, blocks=3, arms=("direct", "direct-again", "tinc"), fails=(("tinc", "tcp", 2),))


@pytest.fixture(scope="module")
def lossy() -> Analysis:
    return analysed(STUDY, {("tinc", "lossy", None): 0.2}, frozenset({("openvpn", "lossy", 2)}))


@pytest.fixture(scope="module")
def analysis() -> Analysis:
    return judge(SERIES.results())


def read(analysis: Analysis) -> dict:
    return json.loads(web_data.script(analysis))


def rows(columns: dict) -> list[dict]:
    names = [name for name, column in columns.items() if len(column) == len(columns["arm"])]
    return [{name: columns[name][place] for name in names} for place in range(len(columns["arm"]))]


def test_every_cell_with_a_value_is_there_with_its_effect_verdict_and_text(lossy):
    found = read(lossy)
    by = {}
    for one in rows(found["cells"]):
        metric, condition = found["metrics"][one["metric"]], found["conditions"][one["condition"]]
        key = (found["arms"][one["arm"]]["name"], condition["profile"], metric["workload"], metric["name"])
        by[key] = one
    shown = [cell for cell in lossy.cells if cell.spread or cell.metric.primary]
    assert len(by) == len(shown)
    for cell in shown:
        one = by[cell.arm, cell.setting.profile, cell.setting.workload, cell.metric.name]
        assert one["verdict"] == formatting.VERDICTS[cell.verdict]
        if cell.spread is not None:
            assert one["median"] == pytest.approx(cell.spread.median, rel=1e-5)
        if cell.against_direct is not None and cell.against_direct.interval is not None:
            assert one["effect"] == pytest.approx(cell.against_direct.estimate, rel=1e-5)
            assert one["effect_low"] == pytest.approx(cell.against_direct.interval.low, rel=1e-5)
            assert formatting.effect(cell.metric, cell.against_direct) in one["effect_text"]


def test_counts_say_what_became_of_each_trial(lossy):
    found = read(lossy)
    arm = [each["name"] for each in found["arms"]].index("openvpn")
    where = [each["profile"] for each in found["conditions"]].index("lossy")
    one = next(
        each for each in rows(found["cells"]) if (each["arm"], each["condition"], each["metric"]) == (arm, where, 0)
    )
    assert (one["good"], one["failed"], one["void"]) == (7, 1, 0)


def test_every_attempt_leads_to_its_files(analysis):
    found = read(analysis)["attempts"]
    assert len(found["block"]) == len(analysis.results.trials)
    for place, row in enumerate(analysis.results.trials):
        folder = f"raw/{found['trial'][place] or row.trial}/"
        assert tuple(folder + name for name in found["file_lists"][found["files"][place]]) == row.raw
        assert found["texts"][found["said"][place]] == (row.message or "")


def tail_is_void() -> Results:
    """The results of pings where the machine spoilt the tail of one trial of tinc, and nothing else of it."""
    tails = replace(
        PING,
        metrics=tuple(replace(one, feels="tail") if one.name in ("rtt_p99", "rtt") else one for one in PING.metrics),
    )
    found = replace(SERIES, workloads=(tails,), fails=()).results()
    trials = tuple(
        replace(row, grade="good", grades={"tail": "void"}) if (row.arm, row.block) == ("tinc", 2) else row
        for row in found.trials
    )
    return replace(found, trials=trials)


def test_every_result_has_its_grade_for_each_metric():
    results = tail_is_void()
    found = read(judge(results))
    attempts = found["attempts"]
    grades = [attempts["grade_lists"][place] for place in attempts["grades"]]
    assert [{"tail": "void"} if row.grades else {} for row in results.trials] == grades
    assert {one["name"]: one["feels"] for one in found["metrics"]} == {
        "rtt_p50": "transfer",
        "rtt_p99": "tail",
        "loss": "transfer",
        "rtt": "tail",
    }


def test_what_is_void_for_a_metric_is_in_none_of_its_series():
    results = tail_is_void()
    found = read(judge(results))
    (series,) = found["series"]
    left = {(row.arm, row.block) for row in (results.trials[at] for at in found["attempt_lists"][series["attempts"]])}
    assert found["metrics"][series["metric"]]["name"] == "rtt"
    assert left == {(row.arm, row.block) for row in results.trials} - {("tinc", 2)}


def test_a_file_elsewhere_keeps_its_whole_path():
    results = SERIES.results()
    first, *others = results.trials
    moved = replace(first, raw=("raw/link/probe.out",))
    found = read(judge(replace(results, trials=(moved, *others))))["attempts"]
    assert found["file_lists"][found["files"][0]] == ["/raw/link/probe.out"]


def test_every_value_is_the_stores(analysis):
    found = read(analysis)
    stored = {
        (place, row.workload, sample.metric): sample.value
        for place, row in enumerate(analysis.results.trials)
        for sample in row.samples
        if sample.time is None
    }
    shown = {
        (place, found["metrics"][one["metric"]]["workload"], found["metrics"][one["metric"]]["name"]): value
        for one in found["values"]
        for place, value in zip(found["attempt_lists"][one["attempts"]], one["values"], strict=True)
    }
    assert shown == pytest.approx(stored, rel=1e-5)


def test_series_are_means_of_equal_steps(analysis):
    found = read(analysis)
    goodput = [each["name"] for each in found["metrics"]].index("goodput")
    series = next(one for one in found["series"] if one["metric"] == goodput)
    place, values = found["attempt_lists"][series["attempts"]][0], series["values"][0]
    points = [sample.value for sample in analysis.results.trials[place].samples if sample.time is not None]
    assert (series["step"], len(values)) == (0.1, len(points))
    assert values == pytest.approx(points, rel=1e-3)


def test_series_become_coarser_where_there_are_many(analysis, monkeypatch):
    fine, _ = web_series.series(analysis, web_data._metrics(analysis))
    count = sum(len(values) for one in fine for values in one["values"])
    monkeypatch.setattr(web_series, "MOST_POINTS", count // 2)
    coarse, _ = web_series.series(analysis, web_data._metrics(analysis))
    assert [one["metric"] for one in coarse] == [one["metric"] for one in fine]
    assert sum(len(values) for one in coarse for values in one["values"]) <= count // 2
    monkeypatch.setattr(web_series, "MOST_POINTS", 3)
    assert web_series.series(analysis, web_data._metrics(analysis))[0] == []


def test_series_that_find_no_room_are_named_and_smaller_ones_after_them_are_there(monkeypatch):
    """One trial alone has pings here, so that theirs are fewer points than those of TCP, which come first."""
    results = replace(SERIES, workloads=(TCP, PING), fails=()).results()
    trials = tuple(row for row in results.trials if row.workload == "tcp" or (row.arm, row.block) == ("tinc", 1))
    found = judge(replace(results, trials=trials))
    (tcp, _), none = web_series.series(found, web_data._metrics(found))
    assert none == []
    monkeypatch.setattr(web_series, "FINENESS", (60,))
    monkeypatch.setattr(web_series, "MOST_POINTS", sum(map(len, tcp["values"])) - 1)
    page = read(found)
    assert [page["metrics"][one["metric"]]["name"] for one in page["series"]] == ["rtt"]
    assert page["series_left_out"] == ["TCP goodput (tcp)"]


def test_values_that_find_no_room_are_named(analysis, monkeypatch):
    monkeypatch.setattr(web_data, "MOST_VALUES", 30)
    found = read(analysis)
    assert "retransmitted segments (tcp)" in found["left_out"]
    primary = [place for place, metric in enumerate(found["metrics"]) if metric["role"] == "primary"]
    assert {one["metric"] for one in found["values"]} >= set(primary)


def test_a_metric_that_finds_no_room_takes_none_from_a_smaller_one(monkeypatch):
    """35 values of primary metrics, then 9 of rtt_p99, for which there is no room, and one of jitter, for which there is."""
    results = SERIES.results()
    few = [
        replace(row, samples=tuple(one for one in row.samples if one.metric != "jitter" or row.position == first))
        for first in [next(row.position for row in results.trials if row.workload == "udp" and row.outcome == "ok")]
        for row in results.trials
    ]
    monkeypatch.setattr(web_data, "MOST_VALUES", 36)
    found = read(judge(replace(results, trials=tuple(few))))
    shown = {found["metrics"][one["metric"]]["name"] for one in found["values"]}
    assert "jitter" in shown
    assert "rtt_p99" not in shown


def test_the_document_cannot_end_its_element():
    results = SERIES.results()
    plan = replace(results.plan, title="</script><b>x</b> <!--")
    text = web_data.script(judge(replace(results, plan=plan)))
    assert "<" not in text
    assert json.loads(text)["title"] == "</script><b>x</b> <!--"


def test_a_large_document_is_packed(analysis, monkeypatch):
    plain = read(analysis)
    monkeypatch.setattr(web_data, "PACKED", 1000)
    packed = web_data.script(analysis)
    assert json.loads(zlib.decompress(b64decode(packed))) == plain
    assert len(packed) < len(json.dumps(plain)) / 2


def test_what_json_cannot_say_is_null():
    """A ratio to a direct that carried nothing is infinite."""
    results = SERIES.results()
    trials = tuple(
        replace(row, samples=tuple(replace(one, value=0.0) if one.metric == "goodput" else one for one in row.samples))
        if row.arm == "direct"
        else row
        for row in results.trials
    )
    effects = read(judge(replace(results, trials=trials)))["cells"]["effect"]
    assert None in effects
    assert web_data.figure(float("nan")) is None


def test_figures_are_as_short_as_they_can_be():
    assert web_data.figure(0.123456789) == 0.123457
    assert str(web_data.figure(612345678.9)) == "612346000"
