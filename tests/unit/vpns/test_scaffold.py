"""A new driver begins with a file that loads, runs and says what is missing, or with a hint about its name."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from tunnelmark.errors import UsageError
from tunnelmark.vpns.base import Driver, interface_fault
from tunnelmark.vpns.scaffold import scaffold
from unit.vpns.test_drivers import mesh


def loaded(name: str, folder: Path) -> Driver:
    file = folder / "mine.py"
    file.write_text(scaffold(name))
    spec = importlib.util.spec_from_file_location("scaffolded", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    driver = module.DRIVER
    assert isinstance(driver, Driver)
    return driver


@pytest.mark.parametrize("name", ["foo", "my-vpn", "nebula-1.10", "a-name-that-is-far-longer-than-an-interface"[:40]])
def test_a_new_driver_deploys_at_once(name: str, tmp_path: Path) -> None:
    driver = loaded(name, tmp_path)
    assert driver.name == name
    deployment = driver.deploy(mesh(3), driver.options())
    assert not any(interface_fault(overlay.interface) for overlay in deployment.overlays.values())
    assert len(deployment.phases) == 3


def test_nothing_is_left_to_replace_and_all_of_the_features_are() -> None:
    assert "@" not in scaffold("foo")
    assert scaffold("foo").count("=TODO") == 8


@pytest.mark.parametrize("name", ["", "Foo", "2fast", "foo bar", "foo/bar", "class", "für", "-x", "x" * 41])
def test_a_bad_name_is_refused_with_a_hint(name: str) -> None:
    with pytest.raises(UsageError) as caught:
        scaffold(name)
    assert caught.value.hint


@pytest.mark.parametrize("name", ["base", "scaffold"])
def test_a_name_of_the_package_itself_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="part of tunnelmark"):
        scaffold(name)
