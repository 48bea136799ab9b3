"""The report of a repetition in a real browser: the source and the differences on its first page, and a link to each verdict's claims."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tunnelmark.analyse import judge
from tunnelmark.report import html
from unit import repeated
from unit.report.test_repetition import ENVIRONMENT

AXE = Path(__file__).parents[2] / "web" / "node_modules" / "axe-core" / "axe.min.js"
FILE = "repeats.html"


@pytest.fixture
def opens_repetition(opens, folder) -> Callable[..., object]:
    """Opens the report of a run of the study `cascade`."""
    analysis = judge(repeated.results("cascade", environment=ENVIRONMENT))
    (folder.path / FILE).write_text(html.render(analysis), encoding="utf-8")
    return lambda state="", **given: opens(state, file=FILE, **given)


def test_a_verdict_leads_to_its_claims_which_are_opened(opens_repetition):
    found = opens_repetition()
    link = found.page.locator(".counts a", has_text="not testable")
    claims = found.page.get_by_role("region", name="Claims: not testable")
    assert not claims.is_visible()
    link.click()
    claims.wait_for(state="visible")
    assert found.page.evaluate("document.activeElement.id") == "claims-not-testable"
    assert claims.locator("tbody tr").count() == int(link.locator("strong").inner_text().split()[-1])
    assert found.said == []


def test_the_address_of_a_claim_opens_it(opens_repetition):
    page = opens_repetition().page
    last = page.locator("table.claims tbody tr").last.get_attribute("id")
    again = opens_repetition(f"#{last}").page
    row = again.locator(f'[id="{last}"]')
    row.wait_for(state="visible")
    assert again.evaluate("id => document.getElementById(id).getBoundingClientRect().top < innerHeight", last)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_source_and_run_are_side_by_side_on_a_phone_without_scrolling_to_the_side(opens_repetition, scheme):
    page = opens_repetition(width=390, height=844, color_scheme=scheme).page
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.locator(".setups").evaluate("table => table.scrollWidth <= table.parentElement.clientWidth")
    assert page.locator(".setups button").count() == 0
    assert page.locator(".setups tbody tr", has=page.get_by_text("OpenVPN", exact=True)).inner_text().split("\t") == ["OpenVPN", "2.5.0", "openvpn 2.6.14"]  # fmt: skip


def test_it_is_accessible(opens_repetition):
    if not AXE.exists():
        pytest.skip("needs axe-core: npm ci in web/")
    page = opens_repetition().page
    page.evaluate(AXE.read_text(encoding="utf-8"))
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']}).then(r => r.violations)")
    assert [(each["id"], [node["html"] for node in each["nodes"]]) for each in found] == []
