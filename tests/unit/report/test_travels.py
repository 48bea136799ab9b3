"""What is said first of a cell stands in every report, with what bound it, and ratios whose sides are apart are marked."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from io import StringIO

from rich.console import Console

from tunnelmark.analyse import judge
from tunnelmark.analyse.model import VPN_BUFFER, Analysis, Bottleneck
from tunnelmark.report import html, markdown, terminal, travels
from tunnelmark.report import json_export as as_json
from unit.analyse.test_anchor_multiples import BUSY, DELAY, analysed, study
from unit.builders import TCP, Study

FULL = {"wire_source": 1e9}
MARKED = "20.0\N{NO-BREAK SPACE}% ≠"


def bound() -> Analysis:
    """Without noise: tinc and the anchor are bound by a core, direct by the link."""
    return analysed(study(noise=0.0), direct=FULL, direct_again=FULL, tinc=BUSY, anchor_chacha20=BUSY)


def on_a_terminal(found: Analysis, *shown: str) -> str:
    stream = StringIO()
    Console(file=stream, width=150).print(terminal.render(found, shown))
    return stream.getvalue()


def row(found: Analysis, arm: str, metric: str) -> dict[str, str]:
    table = next(one for one in travels.tables(found) if one.metric.name == metric)
    return next(dict(zip(table.head, each, strict=True)) for each in table.rows if each[0] == arm)


def test_a_row_says_first_what_travels() -> None:
    found = row(bound(), "tinc", "goodput")
    assert tuple(found) == travels.HEAD
    assert found["result"].startswith("0.40×")
    assert found["result"].endswith("anchor-chacha20")
    assert found["on another machine"].endswith("× (prediction)")
    assert found["against direct"] == MARKED
    assert found["bound by"] == "the sender's core"


def test_a_row_of_a_delay_says_what_it_adds() -> None:
    found = row(bound(), "tinc", "rtt_p50")
    assert found["result"].startswith("+")
    assert "µs" in found["result"]
    assert "on another machine" not in found
    assert "×" in found["against direct"]


def test_every_report_says_so() -> None:
    found = bound()
    for text in (on_a_terminal(found, "machines"), markdown.render(found), html.render(found)):
        assert "0.40×" in text
        assert "(prediction)" in text
        assert "sender" in text
        assert "≠" in text
        assert "On another machine" in " ".join(text.split())
    document = json.loads(as_json.render(found))
    assert document["anchor"] == "anchor-chacha20"
    told = next(one for one in document["travels"] if (one["arm"], one["metric"]) == ("tinc", "goodput"))
    assert told["first"] == "anchor"
    assert told["bound"]["what"] == "sender's core"
    assert told["bound_apart_from_reference"] == "bound by the sender's core, while direct is bound by the link"
    low, high = told["multiple"]["prediction"]
    assert low < told["multiple"]["estimate"] < high


def test_a_loss_in_a_buffer_is_said_to_be_the_processors_bound() -> None:
    found = bound()
    assert "receive buffer" not in travels.explained(found, travels.tables(found))
    losing = {key: Bottleneck("loss", VPN_BUFFER) for key in found.bound_by}
    losses = replace(found, bound_by=losing)
    said = travels.explained(losses, travels.tables(losses))
    assert "Loss in the VPN's receive buffer: its program emptied its socket too late" in said
    assert "all others, such as those that link, load or window bounds, as a share of direct" in said


def test_the_mark_stands_beside_the_ratio_in_the_table_of_results_too() -> None:
    results = on_a_terminal(bound()).partition("First line")[0]
    assert re.search(rf"{MARKED}.*\n.*by the sender's core", results)


def test_what_was_said_before_there_was_an_anchor_is_said_as_before() -> None:
    found = judge(Study(workloads=(DELAY, TCP)).results())
    assert travels.tables(found) == ()
    assert "≠" not in on_a_terminal(found, "machines")
    assert json.loads(as_json.render(found))["travels"] == []


def test_a_cell_whose_trials_were_bound_by_different_things_says_how_many() -> None:
    results = study(noise=0.0).results()
    analysis = bound()
    rows = tuple(
        replace(one, limits={**one.limits, "core_source": 0.5}) if (one.arm, one.block) == ("tinc", 1) else one
        for one in analysis.results.trials
    )
    assert (
        row(judge(replace(results, trials=rows)), "tinc", "goodput")["bound by"] == "the sender's core (4 of 5 trials)"
    )


def test_a_cell_of_which_no_bound_holds_for_most_trials_says_which_there_were() -> None:
    results = study(noise=0.0).results()
    other = {1: {"core_source": 0.5}, 2: {"core_source": 0.5}, 3: {"core_source": 0.5, "drop_link_source": 900.0}}
    rows = tuple(
        replace(one, limits={**one.limits, **other.get(one.block, {})}) if one.arm == "tinc" else one
        for one in bound().results.trials
    )
    said = row(judge(replace(results, trials=rows)), "tinc", "goodput")["bound by"]
    assert said == "it differs from trial to trial: loss 1, sender's core 2, unknown 2"


def test_losses_in_two_places_are_told_with_their_shares_and_columns_that_say_nothing_are_left_out() -> None:
    found = bound()
    lost = {"the link, as its profile says": 0.52, VPN_BUFFER: 0.48}
    of_trials = {"the link, as its profile says": (0.06, 1.0), VPN_BUFFER: (0.0, 0.94)}
    losing = Bottleneck(
        "loss", "the link, as its profile says, and the VPN's receive buffer", "", 4, 5, lost, of_trials
    )
    said = row(replace(found, bound_by=dict.fromkeys(found.bound_by, losing)), "tinc", "goodput")
    assert said["bound by"].replace("\N{NO-BREAK SPACE}", " ") == (
        "loss, of which 52 % (6–100 % by trial): the link, as its profile says; 48 % (0–94 % by trial): the VPN's receive buffer"
        " (4 of 5 trials)"
    )
    assert "result" not in said and "on another machine" not in said
