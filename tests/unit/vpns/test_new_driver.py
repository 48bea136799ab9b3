"""A new driver begins with a file that loads, runs and says what is missing, or with a hint about its name."""

from __future__ import annotations

import importlib.util
import re
import tomllib
from pathlib import Path
from typing import get_args

import pytest

from tunnelmark.errors import UsageError
from tunnelmark.vpns.base import Driver, interface_fault
from tunnelmark.vpns.feature_matrix import CRITERIA, MatrixFile, gaps, rows
from tunnelmark.vpns.new_driver import Like, facts, scaffold
from unit.vpns.test_drivers import mesh


def loaded(name: str, like: Like, folder: Path) -> Driver:
    file = folder / "mine.py"
    file.write_text(scaffold(name, like)[1])
    spec = importlib.util.spec_from_file_location("scaffolded", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    driver = module.DRIVER
    assert isinstance(driver, Driver)
    return driver


@pytest.mark.parametrize(("like", "phases"), [("wireguard-go", 3), ("openvpn", 2)])
@pytest.mark.parametrize("name", ["foo", "my-vpn", "nebula-1.10", "a-name-that-is-far-longer-than-an-interface"[:40]])
def test_a_new_driver_deploys_at_once(name: str, like: Like, phases: int, tmp_path: Path) -> None:
    driver = loaded(name, like, tmp_path)
    assert driver.name == name
    deployment = driver.deploy(mesh(3), driver.options())
    assert not any(interface_fault(overlay.interface) for overlay in deployment.overlays.values())
    assert len(deployment.phases) == phases


@pytest.mark.parametrize("like", get_args(Like))
def test_no_mark_of_the_template_is_left(like: Like) -> None:
    module, text = scaffold("my-foo", like)
    assert module == "my_foo"
    assert "@" not in text


def test_the_facts_to_fill_are_all_that_the_matrix_asks(tmp_path: Path) -> None:
    empty = MatrixFile.model_validate(tomllib.loads(facts("foo")))
    assert empty.cells == {}
    filled = MatrixFile.model_validate(tomllib.loads(re.sub(r"^# (?=\w+ = )", "", facts("foo"), flags=re.MULTILINE)))
    driver = loaded("foo", "wireguard-go", tmp_path)
    (row,) = rows({"foo": driver}, {"foo": filled}, {})
    asked = [criterion for criterion in CRITERIA if criterion.group != "measured"]
    assert gaps(row, asked) == ()


@pytest.mark.parametrize("name", ["", "Foo", "2fast", "foo bar", "foo/bar", "class", "für", "-x", "x" * 41])
def test_a_bad_name_is_refused_with_a_hint(name: str) -> None:
    with pytest.raises(UsageError) as caught:
        scaffold(name)
    assert caught.value.hint


@pytest.mark.parametrize("name", ["base", "feature-matrix", "new-driver"])
def test_a_name_of_the_package_itself_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="part of tunnelmark"):
        scaffold(name)
