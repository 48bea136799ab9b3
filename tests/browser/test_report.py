"""The report in a real browser: what it shows is what the store holds, and it works by mouse, by keyboard, and on a phone."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path
from urllib.parse import unquote, urlsplit
from xml.etree import ElementTree

import pytest

from tunnelmark.report import formatting, html, queries, web_data

AXE = Path(__file__).parents[2] / "web" / "node_modules" / "axe-core" / "axe.min.js"
VIEWS = ("bars", "heat", "scatter", "box", "cdf", "time")
CELLS = "#explorer button.cell"
ROWS = "#explorer table.matrix tbody th"


def matrix(page) -> dict[tuple[str, str], str]:
    """What the matrix shows, by arm and condition."""
    heads = page.locator("#explorer table.matrix thead th").all_inner_texts()[1:]
    found = {}
    for row in page.locator("#explorer table.matrix tbody tr").all():
        arm = row.locator("th").inner_text()
        for head, text in zip(heads, row.locator("td").all_inner_texts(), strict=True):
            found[arm, head.rstrip(" ↕↑↓")] = text
    return found


def plain(text: str) -> str:
    return text.replace("\N{NO-BREAK SPACE}", " ")


def choose(page, control: str, value: str) -> None:
    page.locator(f'[data-control="{control}"]').select_option(value)


def address_has(page, text: str) -> None:
    page.wait_for_function("text => location.hash.includes(text)", arg=text)


def test_it_opens_without_a_word_on_the_console_and_asks_for_nothing_else(opens):
    found = opens()
    for view in VIEWS:
        choose(found.page, "view", view)
        assert found.page.locator("#explorer .picture svg[role=img]").count() == 1
    assert found.said == []
    assert [url for url in found.asked if urlsplit(url).scheme not in ("data", "blob")] == [
        found.page.url.partition("#")[0]
    ]


def test_a_page_that_wanted_to_fetch_could_not(opens):
    found = opens()
    failed = found.page.evaluate("fetch('https://example.invalid/').then(() => false, () => true)")
    assert failed
    assert any("Content Security Policy" in text for text in found.said)


def test_every_cell_of_every_metric_is_shown_with_the_stores_numbers(opens, folder):
    page, analysis = opens().page, folder.analysis
    seen = 0
    for use in analysis.results.plan.workloads:
        for metric in use.metrics:
            cells = [
                cell for cell in analysis.cells if (cell.setting.workload, cell.metric.name) == (use.name, metric.name)
            ]
            if not any(cell.spread for cell in cells):
                continue
            choose(page, "metric", f"{use.name}.{metric.name}")
            shown = matrix(page)
            for cell in cells:
                scale = formatting.scale(
                    metric.unit,
                    [o.spread.median for o in queries.cells(analysis, cell.setting, metric) if o.spread],
                )
                text = plain(shown[queries.label(analysis, cell.arm), cell.setting.profile])
                assert cell.spread is not None
                assert text.startswith(plain(scale.value(cell.spread.median)))
                if cell.against_direct is not None and cell.arm != analysis.reference:
                    assert plain(formatting.judged(cell)) in text
                seen += 1
    assert seen == len([cell for cell in analysis.cells if cell.spread])


def test_data_that_are_packed_are_the_same(opens, folder, monkeypatch):
    plain = matrix(opens().page)
    monkeypatch.setattr(web_data, "PACKED", 0)
    (folder.path / "packed.html").write_text(html.render(folder.analysis), encoding="utf-8")
    found = opens(file="packed.html")
    assert found.page.locator("#data").text_content()[0] != "{"
    found.page.wait_for_selector(CELLS)
    assert matrix(found.page) == plain
    assert found.said == []


def test_a_cell_opens_its_trials_with_the_stores_values_and_files_that_are_there(opens, folder):
    page = opens("#explore?metric=tcp.goodput&cell=openvpn+lossy/pair").page
    dialog = page.locator("dialog[open]")
    rows = [
        row
        for row in folder.analysis.results.trials
        if (row.arm, row.profile, row.workload) == ("openvpn", "lossy", "tcp")
    ]
    values = {
        row.block: next((s.value for s in row.samples if s.metric == "goodput" and s.time is None), None)
        for row in rows
    }
    scale = formatting.scale("bit/s", [value for value in values.values() if value is not None])
    shown = {
        int(line.locator("th").inner_text()): plain(line.locator("td").first.inner_text())
        for line in dialog.locator("tbody tr").all()
    }
    assert shown == {block: "–" if value is None else plain(scale.value(value)) for block, value in values.items()}
    assert dialog.get_by_text("no ping").count() == 2
    files = [link.get_attribute("href") for link in dialog.locator("tbody a").all()]
    assert {unquote(file) for file in files} == {name for row in rows for name in row.raw}
    assert all((folder.path / unquote(file)).is_file() for file in files)
    others = [link.get_attribute("href") for link in dialog.locator("p.meta a").all()]
    assert {"environment.json", "inputs/", "journal.jsonl"} <= set(others)
    assert all((folder.path / file).exists() for file in others)


def test_a_heading_sorts_by_its_condition(opens, folder):
    page = opens("#explore?metric=tcp.goodput").page
    medians = {
        queries.label(folder.analysis, cell.arm): cell.spread.median
        for cell in folder.analysis.cells
        if (cell.metric.name, cell.setting.profile) == ("goodput", "lossy")
    }
    head = page.locator("#explorer th button.sort", has_text="lossy")
    head.click()
    assert page.locator(ROWS).all_inner_texts() == sorted(medians, key=medians.__getitem__)
    head.click()
    assert page.locator(ROWS).all_inner_texts() == sorted(medians, key=medians.__getitem__, reverse=True)
    assert page.locator('#explorer th[aria-sort="descending"]').inner_text().startswith("lossy")


def test_arms_and_conditions_are_filtered(opens):
    page = opens().page
    page.locator('[data-control="filter"]').fill("-direct")
    assert page.locator(ROWS).all_inner_texts() == ["tinc", "nebula", "openvpn"]
    page.get_by_role("checkbox", name="lossy").uncheck()
    assert {condition for _, condition in matrix(page)} == {"gigabit", "lte"}
    page.locator('[data-control="filter"]').fill("nothing like it")
    assert page.get_by_text("No arm fits the filter.").is_visible()


def test_a_link_brings_back_all_that_was_shown(opens):
    page = opens().page
    choose(page, "metric", "udp.delivered")
    choose(page, "show", "difference")
    choose(page, "view", "heat")
    page.get_by_role("checkbox", name="gigabit").uncheck()
    page.locator('[data-control="filter"]').fill("e")
    page.locator("#explorer th button.sort", has_text="lte").click()
    page.locator(CELLS, has_text="Mbit/s").last.click()
    address_has(page, "cell=")
    wanted = (
        page.locator("dialog[open]").inner_text(),
        matrix(page),
        page.locator(".picture svg").get_attribute("aria-label"),
    )
    again = opens("#" + page.url.partition("#")[2]).page
    assert (
        again.locator("dialog[open]").inner_text(),
        matrix(again),
        again.locator(".picture svg").get_attribute("aria-label"),
    ) == wanted


def test_the_pages_own_tables_sort_filter_and_come_back(opens, folder):
    page = opens("#found").page
    table = page.locator('section[aria-labelledby="found"] .scroll > table').first
    medians = {
        queries.label(folder.analysis, cell.arm): cell.spread.median
        for cell in folder.analysis.cells
        if (cell.metric.name, cell.setting.profile) == ("goodput", "gigabit")
    }
    table.locator("th button.sort", has_text="TCP goodput").click()
    assert table.locator("tbody th").all_inner_texts() == sorted(medians, key=medians.__getitem__)
    address_has(page, "=1")
    again = opens("#" + page.url.partition("#")[2]).page
    assert (
        again.locator('section[aria-labelledby="found"] tbody').first.inner_text()
        == table.locator("tbody").inner_text()
    )


def test_long_tables_have_a_filter(opens):
    page = opens("#raw").page
    page.locator("summary", has_text="Block 1:").click()
    block = page.locator("details[open]", has_text="Block 1:")
    block.get_by_label("Filter rows").fill("nebula lossy")
    assert block.locator("tbody tr:visible").count() == 3
    assert block.get_by_role("status").inner_text() == "3 of 45 rows"


def test_what_is_shown_can_be_taken_along(opens, folder, tmp_path):
    found = opens("#explore?metric=tcp.goodput&view=bars", color_scheme="dark")
    kept = {}
    for kind in ("CSV", "SVG", "PNG"):
        with found.page.expect_download() as loading:
            found.page.get_by_role("button", name=kind, exact=True).click()
        kept[kind] = tmp_path / loading.value.suggested_filename
        loading.value.save_as(kept[kind])
    lines = list(csv.DictReader(io.StringIO(kept["CSV"].read_text())))
    medians = {
        (cell.arm, cell.setting.profile): cell.spread.median
        for cell in folder.analysis.cells
        if cell.metric.name == "goodput"
    }
    assert {(line["arm"], line["profile"]): float(line["median"]) for line in lines} == pytest.approx(medians, rel=1e-5)
    drawing = kept["SVG"].read_text()
    assert ElementTree.fromstring(drawing).tag == "{http://www.w3.org/2000/svg}svg"
    assert "var(" not in drawing
    picture = kept["PNG"].read_bytes()
    assert picture.startswith(b"\x89PNG")
    assert int.from_bytes(picture[16:20]) == 2 * int(found.page.locator(".picture svg").get_attribute("width"))
    assert found.said == []


def test_all_of_it_can_be_done_by_keyboard(opens):
    page = opens().page
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "To the results"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "answer"
    page.locator('[data-control="metric"]').focus()
    page.keyboard.press("ArrowDown")
    address_has(page, "metric=")
    assert page.evaluate("document.activeElement.dataset.control") == "metric"
    reached = set()
    for _ in range(40):
        page.keyboard.press("Tab")
        reached.add(
            page.evaluate("document.activeElement.dataset.focus ?? document.activeElement.dataset.control ?? ''")
        )
        if page.evaluate("document.activeElement.classList.contains('cell')"):
            break
    assert {"show", "view", "filter", "sort arm"} <= reached
    cell = page.evaluate("document.activeElement.dataset.focus")
    page.keyboard.press("Enter")
    assert page.locator("dialog[open]").is_visible()
    assert page.evaluate("document.activeElement.closest('dialog') !== null")
    page.keyboard.press("Escape")
    assert page.locator("dialog[open]").count() == 0
    assert page.evaluate("document.activeElement.dataset.focus") == cell
    page.wait_for_function("!location.hash.includes('cell=')")


def test_a_phone_has_a_menu_and_nothing_is_cut(opens):
    page = opens(width=390, height=844).page
    assert page.evaluate("document.scrollingElement.scrollWidth") <= 390
    menu = page.get_by_role("button", name="Contents")
    menu.click()
    page.get_by_role("link", name="Explore").click()
    assert menu.get_attribute("aria-expanded") == "false"
    assert page.locator("#explore").is_visible()
    for view in VIEWS:
        choose(page, "view", view)
        assert page.evaluate("document.scrollingElement.scrollWidth") <= 390
    page.locator(CELLS).first.click()
    assert page.evaluate("document.querySelector('dialog').scrollWidth") <= 390


def test_a_wide_screen_is_used(opens):
    page = opens().page
    box = page.locator("#explorer .picture svg").bounding_box()
    assert box["width"] > 1100
    assert page.locator("nav.contents").bounding_box()["width"] < 300
    assert page.locator(".answers li").first.bounding_box()["width"] < 800


def test_it_is_a_whole_document_without_its_program(opens, folder):
    page = opens(java_script_enabled=False).page
    assert page.locator("#explore").is_hidden()
    assert page.get_by_role("link", name="Explore").count() == 0
    assert page.locator("#answer").is_visible()
    text = page.locator('section[aria-labelledby="found"]').inner_text()
    assert all(arm.name in text for arm in folder.analysis.results.plan.arms)


def test_it_prints_as_a_document(opens):
    page = opens().page
    page.emulate_media(media="print")
    for hidden in ("#explore", "nav.contents", ".tool"):
        assert page.locator(hidden).first.is_hidden()
    assert page.locator("#answer").is_visible()
    assert page.locator("#found").is_visible()
    assert len(re.findall(rb"/Type\s*/Page\b", page.pdf(format="A4"))) > 3


@pytest.mark.parametrize(
    ("width", "scheme", "state"),
    [
        (1600, "light", "#explore?metric=tcp.goodput&view=bars"),
        (1600, "dark", "#explore?metric=tcp.goodput&show=effect&view=heat"),
        (390, "light", "#explore?metric=ping.rtt_p50&view=cdf"),
        (1600, "light", "#explore?metric=tcp.goodput&cell=openvpn+lossy/pair"),
        (390, "dark", "#explore?metric=tcp.goodput&cell=openvpn+lossy/pair"),
    ],
)
def test_axe_finds_nothing(opens, width, scheme, state):
    if not AXE.exists():
        pytest.skip("needs axe-core: npm --prefix web ci (scripts/check does so where there is Node)")
    page = opens(state, width=width, color_scheme=scheme).page
    page.evaluate(AXE.read_text())
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']}).then(r => r.violations)")
    violations = [f"{one['id']}: {[node['html'][:160] for node in one['nodes']][:4]}" for one in found]
    assert not violations, "\n".join(violations)
