"""The registry finds what the package and TUNNELMARK_PATH hold, and names what is wrong with an extra file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tunnelmark import registry
from tunnelmark.errors import UnknownName, UsageError
from tunnelmark.plan.files import PATH_VARIABLE

EXTRA = '''
"""A copy of direct under another name."""
from dataclasses import replace
from tunnelmark.vpns.direct import DRIVER as direct
DRIVER = replace(direct, name="{name}")
'''


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv(PATH_VARIABLE, raising=False)
    registry.vpns.cache_clear()
    registry.workloads.cache_clear()
    monkeypatch.setattr(registry, "_broken", {})
    yield
    registry.vpns.cache_clear()
    registry.workloads.cache_clear()


def extra(folder: Path, text: str, monkeypatch: pytest.MonkeyPatch, *, stage: str = "vpns") -> Path:
    file = folder / stage / "mine.py"
    file.parent.mkdir()
    file.write_text(text)
    monkeypatch.setenv(PATH_VARIABLE, str(folder))
    return file


def test_the_vpns_and_workloads_of_the_quick_study_are_there() -> None:
    assert {"direct", "wireguard-go", "tinc", "openvpn", "nebula", "yggdrasil"} <= set(registry.vpns())
    assert {"ping", "tcp", "udp"} <= set(registry.workloads())


def test_direct_comes_first() -> None:
    assert next(iter(registry.vpns())) == "direct"


def test_names_are_those_of_the_drivers_themselves() -> None:
    assert all(driver.name == name for name, driver in registry.vpns().items())
    assert all(kind.name == name for name, kind in registry.workloads().items())


def test_an_unknown_vpn_suggests_the_nearest() -> None:
    with pytest.raises(UnknownName, match="wiregard") as caught:
        registry.vpn("wiregard-go")
    assert caught.value.hint == "did you mean wireguard-go or wireguard?"


def test_an_unknown_workload_suggests_the_nearest() -> None:
    with pytest.raises(UnknownName) as caught:
        registry.workload("pong")
    assert "ping" in caught.value.hint


def test_the_catalogue_holds_every_options_model() -> None:
    catalogue = registry.catalogue()
    assert set(catalogue.vpns) == set(registry.vpns())
    assert catalogue.workloads["ping"] is registry.workload("ping").options


def test_a_part_carries_what_is_to_be_installed() -> None:
    part = registry.vpn_part(registry.vpn("tinc"))
    assert part.name == "tinc"
    assert "tinc" in part.packages
    assert "iperf3" in registry.workload("tcp").part.packages


def test_a_driver_in_an_extra_folder_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    extra(tmp_path, EXTRA.format(name="mine"), monkeypatch)
    assert registry.vpn("mine").title == registry.vpn("direct").title


def test_a_file_without_a_driver_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    extra(tmp_path, '"""Helpers of a driver."""', monkeypatch)
    assert "mine" not in registry.vpns()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("DRIVER = oops", "NameError"),
        ("def broken(:", "SyntaxError"),
        ("DRIVER = 3", "DRIVER is a int, not a Driver"),
        (EXTRA.format(name="tinc"), "the name 'tinc' is taken by tunnelmark.vpns.tinc"),
    ],
)
def test_a_broken_extra_file_is_named_and_left_out(
    text: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    file = extra(tmp_path, text, monkeypatch)
    assert "tinc" in registry.vpns()
    assert "ping" in registry.workloads()
    assert registry.vpn("tinc").title == "tinc"
    (error,) = registry.broken()
    assert str(file) in error.message
    assert says in error.message
    assert error.hint
    assert [record.getMessage() for record in caplog.records] == [f"{error.message}: left out ({error.hint})"]


@pytest.mark.parametrize("text", ['NAME = "openconnect"\ndef broken(:', "def broken(:"])
def test_who_asks_for_what_a_broken_file_holds_learns_why(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    extra(tmp_path, text, monkeypatch)
    name = "openconnect" if "openconnect" in text else "mine"  # the file is called mine.py
    for ask in (registry.vpn, registry.arm):
        with pytest.raises(UsageError, match="SyntaxError"):
            ask(name)
    with pytest.raises(UnknownName, match="wiregard"):
        registry.vpn("wiregard-go")


def test_a_folder_that_is_not_there_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PATH_VARIABLE, str(tmp_path / "nowhere"))
    with pytest.raises(UsageError, match="nowhere, which is not a folder"):
        registry.vpns()
