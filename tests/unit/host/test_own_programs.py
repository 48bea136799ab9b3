"""A program that an arm brings is found before all others, and nothing runs in its place when it is gone."""

from __future__ import annotations

from pathlib import Path

import pytest

from tunnelmark.errors import MissingPart
from tunnelmark.host.programs import NAMED_VARIABLE, Requirement, part_version, path_of, require, with_own

PART = Requirement("some", ("some",), (), ("some", "--version"), r"version (\S+)", recipe="some-1", strict=True)


def script(folder: Path, version: str) -> str:
    folder.mkdir(exist_ok=True)
    file = folder / "some"
    file.write_text(f"#!/bin/sh\necho version {version}\n")
    file.chmod(0o755)
    return str(file)


@pytest.fixture
def named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another program of that name, which `--bin` named."""
    script(tmp_path / "named", "0")
    monkeypatch.setenv(NAMED_VARIABLE, str(tmp_path / "named"))


@pytest.mark.usefixtures("named")
def test_two_arms_have_a_version_and_a_path_each(tmp_path: Path):
    parts = [with_own(PART, {"some": script(tmp_path / version, version)}) for version in ("1", "2")]
    assert [part_version(part) for part in parts] == ["1", "2"]
    assert [require(part)["some"] for part in parts] == [tmp_path / "1" / "some", tmp_path / "2" / "some"]
    assert path_of(parts[0].recipe, parts[0].strict, parts[0].own).split(":")[0] == str(tmp_path / "1")


@pytest.mark.usefixtures("named")
def test_nothing_runs_in_place_of_one_that_is_gone(tmp_path: Path):
    own = script(tmp_path / "1", "1")
    part = with_own(PART, {"some": own})
    Path(own).unlink()
    with pytest.raises(MissingPart, match="1/some is not there"):
        require(part)


def test_without_programs_of_its_own_a_part_stays_as_it_is():
    assert with_own(PART, {}) is PART
