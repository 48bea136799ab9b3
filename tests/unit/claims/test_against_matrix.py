"""Claims about features: what the matrix says decides, but for what it has from the claim's own source."""

from __future__ import annotations

from pathlib import Path

import pytest

from tunnelmark.claims import reading
from tunnelmark.claims.against_matrix import compare
from tunnelmark.claims.judging import judge
from tunnelmark.claims.model import Claim, Feature
from tunnelmark.claims.printed import PrintedValues
from tunnelmark.errors import PlanError
from tunnelmark.model.features import Fact

CITED = "VPNs of today"  # the title; a cell cites the authors before it
EDGE = reading.find("edge-cloud")
HEAD = '[source]\nauthors = "A. Author"\nyear = 2020\ntitle = "Foo"\nstudy = "quick"\n[arms]\n[quantity]\n[condition]\n'


def outcome(printed: bool | str, criteria: tuple[str, ...] = ("mesh",), **cells: str | tuple[str, str]) -> str:
    feature = Feature("foo", criteria, printed, CITED)
    facts = {
        key: Fact(*((cell, "its manual") if isinstance(cell, str) else cell), "2026-11-22")
        for key, cell in cells.items()
    }
    return compare(Claim("foo", "tab 1", "Foo.", (), feature=feature), feature, facts).outcome


@pytest.mark.parametrize(
    ("cell", "when_yes", "when_no"),
    [
        ("yes: by a key", "held", "did not hold"),
        ("no: UDP only", "did not hold", "held"),
        ("partly: from 1.6 on", "undecided", "undecided"),
        ("kernel", "not testable", "not testable"),  # no word that answers
    ],
)
def test_the_matrix_s_word_decides(cell: str, when_yes: str, when_no: str) -> None:
    assert outcome(True, mesh=cell) == when_yes
    assert outcome(False, mesh=cell) == when_no


def test_what_the_matrix_has_from_the_same_source_is_no_evidence() -> None:
    assert outcome(True, mesh=("yes", f"A. Nobody et al., {CITED}, table 1")) == "not testable"
    assert outcome(True, mesh=("yes", f"its manual; A. Nobody et al., {CITED}, table 1")) == "held"


def test_of_one_vpn_the_matrix_knows_little_but_what_table_1_says() -> None:
    found = {claim.id: compare(claim, claim.feature).outcome for claim in EDGE.claims if claim.feature}
    (mistborn,) = {found[f"features.mistborn.{key}"] for key in ("full-mesh", "unattended-registration", "x86-and-arm")}
    assert mistborn == "not testable"


def test_several_criteria_must_all_be_met_and_one_that_is_not_decides() -> None:
    relays = ("relay_udp", "relay_tcp")
    assert outcome(True, relays, relay_udp="yes", relay_tcp="yes") == "held"
    assert outcome(True, relays, relay_udp="yes", relay_tcp="no") == "did not hold"
    assert outcome(False, relays, relay_udp="no") == "held"
    assert outcome(False, relays, relay_udp="yes") == "not testable"


@pytest.mark.parametrize(
    ("licence", "found"),
    [
        ("MIT", "held"),
        ("BUSL-1.1, turning into Apache-2.0", "did not hold"),
        ("Apache-2.0, but for the folder pro", "undecided"),
    ],
)
def test_open_source_is_a_licence_that_is_approved(licence: str, found: str) -> None:
    assert outcome(True, ("licence",), licence=licence) == found


def test_a_text_must_be_the_same() -> None:
    assert outcome("1280", ("mtu",), mtu="1280") == "held"
    assert outcome("1280", ("mtu",), mtu="1420") == "did not hold"
    assert outcome("1280", ("mtu",)) == "not testable"


def test_a_source_s_own_figures_say_nothing_of_features() -> None:
    claim = next(claim for claim in EDGE.claims if claim.feature)
    assert judge(claim, PrintedValues.of_source(EDGE)).outcome == "not testable"


def test_table_1_against_today_s_matrix() -> None:
    """What became of the eleven: three years later some have what they lacked."""
    changed = {
        claim.id
        for claim in EDGE.claims
        if claim.feature and compare(claim, claim.feature).outcome == "did not hold"
    }  # fmt: skip
    assert changed == {
        "features-changed.firezone.unattended-registration",
        "features-changed.wg-easy.access-control-lists",
        "features-contradicted.netmaker",
        "optional-features-changed.netbird",
    }


@pytest.mark.parametrize(
    ("table", "problem"),
    [
        ('criteria = { x = ["mash"] }\nfeatures = { nebula = [true] }', "'mash' is not a criterion of the matrix"),
        ('criteria = { x = ["mesh"] }\nfeatures = { nebular = [true] }', "'nebular' is not a row of the matrix"),
        ('criteria = { x = ["mesh"] }\nfeatures = { nebula = [] }', "has 0 cells"),
    ],
)
def test_what_the_matrix_does_not_have_is_refused(table: str, problem: str, tmp_path: Path) -> None:
    file = tmp_path / "foo.toml"
    file.write_text(f'{HEAD}[[claim]]\nid = "foo"\nplace = "tab 1"\nsays = "Foo."\ntest = "feature"\n{table}\n')
    with pytest.raises(PlanError, match=problem):
        reading.read(file)
