"""The feature matrix: what stands in a cell, where it comes from, and that nothing stands there without a source."""

from __future__ import annotations

import tomllib
from datetime import date
from pathlib import Path

import pytest
from pydantic import ValidationError

from tunnelmark import registry
from tunnelmark.model.features import Fact
from tunnelmark.plan.study_arms import DIRECT
from tunnelmark.report.feature_tables import features, mark, markdown
from tunnelmark.vpns.base import Driver
from tunnelmark.vpns.feature_matrix import CRITERIA, REQUIRED, MatrixFile, MatrixRow, brief, gaps, rows, verdict

ROWS = registry.matrix()
NEBULA = registry.vpn("nebula")


def row_file(**cells: tuple[str, str, str]) -> MatrixFile:
    return MatrixFile(title="Foo", homepage="https://example.org/", cells=cells)


def test_every_driver_has_a_row() -> None:
    assert {row.name for row in ROWS} >= set(registry.vpns())


@pytest.mark.parametrize("row", ROWS, ids=lambda row: str(row.name))
def test_every_cell_has_a_value_a_source_and_a_date_and_answers_a_known_question(row: MatrixRow) -> None:
    keys = {criterion.key for criterion in CRITERIA}
    for key, fact in row.cells.items():
        assert key in keys, f"{key} is no criterion"
        assert fact.value.strip()
        assert fact.source.strip()
        assert date.fromisoformat(fact.date) <= date.today()


@pytest.mark.parametrize("row", ROWS, ids=lambda row: str(row.name))
def test_what_one_chooses_by_is_answered_with_yes_partly_or_no(row: MatrixRow) -> None:
    asked = [c.key for c in CRITERIA if c.group == "choosing" and c.key != "licence"]
    unclear = [key for key in asked if key in row.cells and verdict(row.cells[key].value) is None]
    assert unclear == []


def test_a_file_does_not_say_again_what_the_driver_says() -> None:
    files = (Path(registry.__file__).parent / "data" / "matrix").glob("*.toml")
    said = {file.stem: set(tomllib.loads(file.read_text())) for file in files if file.stem in registry.vpns()}
    assert {name: keys - {"cells"} for name, keys in said.items() if keys - {"cells"}} == {}


@pytest.mark.parametrize("name", registry.vpns())
def test_every_vpn_with_a_driver_answers_what_the_contract_asks(name: str) -> None:
    row = next(row for row in ROWS if row.name == name)
    assert [key for key in REQUIRED if key not in row.cells] == []


def test_at_least_nine_cells_of_ten_are_filled() -> None:
    asked = [criterion for criterion in CRITERIA if criterion.group != "measured"]
    missing = sum(len(gaps(row, asked)) for row in ROWS if row.name != DIRECT)
    assert missing <= 0.1 * len(asked) * (len(ROWS) - 1)


def test_a_row_without_a_driver_says_what_it_is_and_why() -> None:
    without = [row for row in ROWS if row.name not in registry.vpns()]
    assert [row.name for row in without if not (row.reason and row.title != row.name and row.homepage)] == []


def test_a_row_has_the_cells_of_its_file_and_what_was_measured() -> None:
    drivers: dict[str, Driver] = {"nebula": NEBULA}
    file = row_file(mtu=("1300", "manual", "2026-01-01"), acl=("yes", "manual", "2026-01-01"))
    seen = {"nebula": {"measured_mtu": Fact("1300", "measured here", "2026-11-21")}}
    (row,) = rows(drivers, {"nebula": file}, seen)
    assert (row.title, row.homepage) == (NEBULA.title, NEBULA.homepage)
    assert row.cells["mtu"].value == "1300"
    assert row.cells["acl"].value == "yes"
    assert row.cells["measured_mtu"].value == "1300"
    assert "roaming" in gaps(row)
    assert "mtu" not in gaps(row)


def test_a_file_alone_makes_a_row_behind_the_drivers() -> None:
    found = rows({"nebula": NEBULA}, {"aaa": row_file()}, {})
    assert [row.name for row in found] == ["nebula", "aaa"]


def test_a_cell_without_a_source_is_refused() -> None:
    with pytest.raises(ValidationError):
        MatrixFile.model_validate({"title": "Foo", "homepage": "https://example.org/", "cells": {"mtu": ["1300"]}})


def test_the_report_shows_only_criteria_that_somebody_answers() -> None:
    (row,) = rows({}, {"foo": row_file(acl=("yes", "manual", "2026-01-01"))}, {})
    table = features({"matrix": [row.plain()]})
    assert table is not None
    assert [title for title, _, _ in table.lines] == ["ACL"]
    assert features({}) is None


def test_a_cell_is_a_mark_where_one_chooses_and_its_value_without_conditions_elsewhere() -> None:
    criteria = {criterion.key: criterion for criterion in CRITERIA}
    assert mark(criteria["acl"], Fact("partly: on the server", "manual", "2026-01-01")) == "~"
    assert mark(criteria["acl"], None) == "?"
    assert mark(criteria["licence"], Fact("GPL-2.0 with an exception", "COPYING", "2026-01-01")) == "GPL-2.0"
    assert mark(criteria["offloads"], Fact("no", "source", "2026-01-01")) == "no"
    assert [verdict(value) for value in ("yes, from 1.6", "no: UDP only", "nothing")] == ["yes", "no", None]
    assert brief("BUSL-1.1, turning into Apache-2.0") == "BUSL-1.1"


def test_markdown_has_a_table_a_group_and_no_cell_breaks_it() -> None:
    (row,) = rows(
        {}, {"foo": row_file(acl=("yes", "manual", "2026-01-01"), routing=("a|b", "manual", "2026-01-01"))}, {}
    )
    text = markdown([row])
    assert text.count("###") == 3
    assert "| routing | a\\|b |" in text
    assert "### How it is built" not in markdown([row], ["choosing"])
