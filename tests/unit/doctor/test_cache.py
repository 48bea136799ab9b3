"""What was measured of a machine counts as long as it is the same machine, at the same load, for some hours."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tunnelmark.doctor.cache import CHANGED, HOURS, MeasurementCache


@pytest.fixture
def known(tmp_path: Path) -> MeasurementCache:
    found = MeasurementCache(tmp_path / "cache" / "machine.json", "this", busy=0.2, cores=2, now=1e9)
    found.put("rate", {"rate": 5})
    return found


def test_is_found_again(known: MeasurementCache) -> None:
    assert known.get("rate") == {"rate": 5}
    assert replace(known, now=known.now + HOURS * 3600 - 1, busy=0.2 + 0.9 * CHANGED * 2).get("rate") == {"rate": 5}


@pytest.mark.parametrize(
    "change",
    [{"now": 1e9 + HOURS * 3600}, {"now": 1e9 - 60}, {"busy": 0.21 + CHANGED * 2}, {"key": "another"}],
    ids=["hours later", "a clock set back", "busier", "another machine"],
)
def test_does_not_count_any_more(known: MeasurementCache, change: dict) -> None:
    assert replace(known, **change).get("rate") is None


def test_what_was_not_measured_is_not_known(known: MeasurementCache) -> None:
    assert known.get("else") is None


def test_what_another_machine_left_goes_with_the_first_that_is_kept(known: MeasurementCache) -> None:
    other = replace(known, key="another")
    other.put("link", {"state": "fits"})
    assert (other.get("link"), other.get("rate"), known.get("rate")) == ({"state": "fits"}, None, None)


def test_a_file_that_was_cut_off_is_as_none(known: MeasurementCache) -> None:
    known.file.write_text(known.file.read_text()[:20])
    assert known.get("rate") is None
    known.put("rate", {"rate": 6})
    assert known.get("rate") == {"rate": 6}


def test_a_cache_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    MeasurementCache(tmp_path / "file" / "machine.json", "this", 0.0, 2).put("rate", {})
