"""The page is well-formed, complete in itself, and leads to every raw file."""

from __future__ import annotations

import re
from base64 import b64encode
from dataclasses import replace
from hashlib import sha256
from html import unescape as html_text
from html.parser import HTMLParser
from typing import Literal
from urllib.parse import unquote

import pytest

from tunnelmark.analyse import judge
from tunnelmark.record.link_check import LinkCheck, LinkLine, LinkPoint
from tunnelmark.record.results import SampleRow
from tunnelmark.report import html, markdown
from unit.builders import Study

ENVIRONMENT = {
    "tunnelmark": "0.1.0",
    "command": ["tunnelmark", "run", "quick study"],
    "machine": {"system": "Debian 12", "kernel": "6.1", "cpu": "a processor", "cores": 2, "memory_bytes": 8 << 30},
    "vpns": {"tinc": {"version": "1.0.36", "programs": {"tincd": {"path": "/usr/sbin/tincd", "sha256": "ab" * 32}}}},
    "tools": {"iperf3": {"version": "3.12", "path": "/usr/bin/iperf3", "sha256": "cd" * 32}},
    "lab": {"backend": "netns", "sysctls": {"net.ipv4.tcp_congestion_control": "cubic"}, "priority": -15},
    "load": {"before": {"one": 0.25}},
}
STUDY = Study(series=True, fails=(("tinc", "tcp", 2),), environment=ENVIRONMENT, loss={"openvpn": 9.0})
VOID = {"meta", "link", "br", "hr", "img", "input"}


class Page(HTMLParser):
    """Collects what a browser would load or follow, and stops at a tag that is not closed where it should be."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.loads: list[str] = []
        self.links: list[str] = []
        self.ids: list[str] = []
        self.tags: set[str] = set()
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        given = dict(attrs)
        if tag not in VOID:
            self.open.append(tag)
        self.loads += [given[name] for name in ("src", "srcset", "data", "poster", "xlink:href") if name in given]
        if tag == "a":
            self.links.append(given["href"])
        if "id" in given:
            self.ids.append(given["id"])

    def handle_startendtag(self, tag, attrs):
        self.tags.add(tag)

    def handle_endtag(self, tag):
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag, f"</{tag}> closes something else"


@pytest.fixture(scope="module")
def text() -> str:
    return html.render(judge(STUDY.results()))


@pytest.fixture(scope="module")
def page(text) -> Page:
    return Page(text)


def test_every_tag_is_closed_where_it_should_be(page):
    assert page.open == []


def without_programs(text: str) -> str:
    """The page as it is read without a script."""
    return re.sub(r"<script.*?</script>", "", text, flags=re.DOTALL)


def test_nothing_is_loaded_from_anywhere(text, page):
    assert page.loads == []
    assert not {"link", "iframe", "img", "object", "embed"} & page.tags
    assert not re.search(r"https?://|@import|url\(", without_programs(text))


def test_only_its_own_program_may_run_and_nothing_may_be_fetched(text):
    programs = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', text)
    assert policy is not None
    said = html_text(policy[1])
    digest = b64encode(sha256(programs[0].encode()).digest()).decode()
    assert (len(programs), said.split("; ")[0]) == (1, "default-src 'none'")
    assert f"script-src 'sha256-{digest}'" in said
    assert "http" not in said
    assert not re.search(r"<[^>]* on[a-z]+=", without_programs(text))


def test_links_are_relative_or_lead_to_a_place_on_the_page(page):
    for link in page.links:
        assert link.startswith("#") or not re.match(r"[a-z]+:|/|\.\.", link)
        assert not link.startswith("#") or link[1:] in page.ids


def test_every_raw_file_is_linked(page):
    linked = {unquote(link) for link in page.links}
    assert {path for row in STUDY.results().trials for path in row.raw} <= linked
    assert all(" " not in link for link in page.links)


def test_of_many_attempts_only_those_that_are_not_good_are_listed(monkeypatch):
    monkeypatch.setattr(html, "LISTED", 10)
    listed = html.render(judge(STUDY.results())).partition('id="raw"')[2].partition("</section>")[0]
    links = {unquote(link) for link in re.findall(r'href="([^"]+)"', listed)}
    assert links == {"raw/", *(path for row in STUDY.results().trials if row.outcome != "ok" for path in row.raw)}


def test_no_id_stands_twice(page):
    assert len(page.ids) == len(set(page.ids))


def test_figures_say_in_words_what_they_show(text):
    figures = re.findall(r"<svg[^>]*>(<title>)?", text)
    assert len(figures) >= 8
    assert all(figures)
    shown = without_programs(text)
    assert shown.count("<svg") == shown.count('role="img"')


def test_a_failure_stands_there_with_reason_hint_and_log_and_is_not_markup(text):
    assert "no ping from a to b within 10 s" in text
    assert "not-ready" in text
    assert "look at the daemon&#39;s log" in text
    assert "&lt;error&gt; handshake timed out &amp; gave up" in text


def test_what_is_needed_to_repeat_the_run_stands_there(text):
    assert "tunnelmark run &#39;quick study&#39;" in text
    assert "ab" * 32 in text
    assert "cd" * 32 in text
    assert "1.0.36" in text
    assert "tcp_congestion_control" in text
    assert f"seed {STUDY.seed}" in text


@pytest.mark.parametrize(
    "environment",
    [{}, {"machine": None, "vpns": None}, {"vpns": {"tinc": None}, "tools": {"iperf3": {}}}, {"load": 3, "lab": []}],
)
def test_a_record_of_the_environment_may_lack_anything(environment):
    Page(html.render(judge(replace(STUDY, environment=environment).results())))


@pytest.mark.parametrize("blocks", [1, 5])
def test_an_interval_is_explained_only_where_there_is_one(blocks):
    text = html.render(judge(replace(STUDY, blocks=blocks).results()))
    assert ("with its 95 % interval" in text) == ("the bar is the 95" in text) == (blocks == 5)
    assert ("without intervals, for which the blocks are too few" in text) == (blocks == 1)
    assert "hollow where it is not shown to differ" in text


def test_names_from_a_study_file_are_text_not_markup():
    results = STUDY.results()
    plan = replace(results.plan, title="<b>x</b>", description="a & b with `tc -s <x>`")
    text = html.render(judge(replace(results, plan=plan)))
    assert "<b>x</b>" not in text
    assert "a &amp; b with <code>tc -s &lt;x&gt;</code>" in text
    Page(text)


def test_the_page_is_readable_in_the_dark_and_on_paper(text):
    assert "prefers-color-scheme: dark" in text
    assert "@media print" in text


def test_a_series_that_is_nearly_always_zero_is_drawn():
    results = STUDY.results()
    rows = tuple(
        replace(
            row,
            samples=(
                *row.samples,
                *(
                    SampleRow(
                        "loss", "%", 3.0 if (step, row.block) == (40, 2) and row.arm == "tinc" else 0.0, step / 10
                    )
                    for step in range(41)
                ),
            ),
        )
        if row.workload == "udp" and row.outcome == "ok"
        else row
        for row in results.trials
    )
    Page(html.render(judge(replace(results, trials=rows))))


def test_values_of_any_size_are_drawn():
    for tcp in ({"tinc": 1e-4}, {"tinc": 40.0}, {"tinc": 1.0}):
        Page(html.render(judge(replace(STUDY, tcp=tcp, noise=0.0, block_noise=0.0).results())))


def check(
    when: Literal["before", "after"], verdict: Literal["verified", "outside"], *, probes: bool = True
) -> LinkCheck:
    """A look at a link with a line of each kind, and a stretch of time in which nothing arrived."""
    lines = tuple(
        line
        for way in ("a>b", "b>a")
        for line in (
            LinkLine(way, "delay_p50", "ms", "20 ms", 20.0, 19.8, 20.2, 20.05, ok=True),
            LinkLine(way, "loss", "%", "1 %", 1.0, 0.2, 1.8, 2.5, ok=verdict == "verified"),
            LinkLine(way, "queue", "B", "512 KiB", 524288.0, 4e5, 6e5, 1000.0, None, "not judged: the sender was slow"),
        )
    )
    points = tuple(
        LinkPoint(step / 10, None if step == 3 else 20.0, None if step == 3 else 19.0, None if step == 3 else 25.0, 1.0)
        for step in range(20)
    )
    series = {"a>b": points, "b>a": points} if probes else {}
    raw = (f"raw/link.{when}.gigabit.pair.1/probe.a.out",)
    return LinkCheck("gigabit", "pair", when, 1.79e9, 3.0, verdict, "loss a>b: 2.5 %", lines, series, raw)


def test_the_link_is_shown_as_it_was_beside_what_was_asked():
    results = replace(STUDY.results(), link_checks=(check("before", "verified"), check("after", "verified")))
    page = html.render(judge(results))
    Page(page)
    assert "The link as it was: gigabit, pair" in page
    assert "Delay and loss of the link over time: a&gt;b before: 20.05 ms" in page
    assert "not judged: the sender was slow" in page
    assert "raw/link.before.gigabit.pair.1/probe.a.out" in page


def test_what_a_look_did_not_see_is_called_unknown_and_not_nothing():
    look = check("before", "verified")
    blind = replace(look, lines=tuple(replace(line, achieved=None) for line in look.lines))
    page = html.render(judge(replace(STUDY.results(), link_checks=(blind,))))
    assert "Delay and loss of the link over time: a&gt;b before: unknown ms, unknown % lost, asked 20.00 ms" in page


def test_a_backtick_without_its_pair_is_text():
    results = STUDY.results()
    text = html.render(judge(replace(results, plan=replace(results.plan, description="the ` of a <shell>"))))
    assert '<p class="lede">the ` of a &lt;shell&gt;</p>' in text


def test_time_that_is_counted_twice_is_said_in_each_report():
    results = STUDY.results()
    first, second, *rest = results.trials
    long = replace(first, phases={**first.phases, "measure": 30.0})
    analysis = judge(replace(results, trials=(long, second, *rest)))
    assert analysis.wall.overlap > 0.5
    for page in (html.render(analysis), markdown.render(analysis)):
        assert "counted twice: one trial ended while the next was set up" in page


def test_the_metrics_that_explain_have_the_margins_within_which_they_are_equal(text):
    said = html_text(text).replace("\N{NO-BREAK SPACE}", " ")
    assert "Equal (=) within 5 %: round-trip time, 99th percentile. Equal (=) within 1 percentage point: pings" in said
    assert "Equal (=) within 10.0 ms: UDP jitter." in said


def test_a_rate_that_is_a_share_says_of_what():
    results = STUDY.results()
    uses = tuple(replace(use, options={"rate": "30 %", "length": "1.2 kB"}) for use in results.plan.workloads)
    text = html.render(judge(replace(results, plan=replace(results.plan, workloads=uses))))
    assert "rate 30 % of the link&#39;s rate, length 1.2 kB" in text


def test_a_link_without_probes_has_a_table_and_no_figure():
    page = html.render(judge(replace(STUDY.results(), link_checks=(check("before", "verified", probes=False),))))
    Page(page)
    assert "The link as it was" not in page
    assert "The link gigabit, pair, property by property" in page


def test_a_link_of_which_nothing_could_be_judged_is_not_tested():
    look = check("before", "verified", probes=False)
    blind = replace(look, lines=tuple(line for line in look.lines if line.ok is None))
    analysis = judge(replace(STUDY.results(), link_checks=(blind,)))
    page = html.render(analysis)
    Page(page)
    assert page.count('aria-label="not judged">?<') == 1
    assert "before the trials not tested" in page
    assert "not tested: queue a&gt;b, queue b&gt;a of gigabit (the sender was slow)" in page
    assert "❔ **the link does what its profile says**: not tested" in markdown.render(analysis)


def test_a_link_outside_of_its_tolerance_voids_what_ran_on_it():
    page = html.render(judge(replace(STUDY.results(), link_checks=(check("after", "outside"),))))
    Page(page)
    assert "the link gigabit was not what it says (after the trials): loss a&gt;b: 2.5 %" in page
