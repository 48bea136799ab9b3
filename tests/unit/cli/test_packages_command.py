"""`packages list` and `packages verify`: what they say about what is ready, installable and missing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import tunnelmark
from tunnelmark import registry
from tunnelmark.cli import command as cli
from tunnelmark.cli.packages_command import _short
from tunnelmark.errors import MissingPart
from tunnelmark.host import programs
from tunnelmark.packages import toolchains
from tunnelmark.packages.recipe import recipe, recipes
from tunnelmark.packages.status import absent, standing


@pytest.fixture(autouse=True)
def nothing_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(programs.PACKAGES_VARIABLE, str(tmp_path))
    monkeypatch.delenv(programs.NAMED_VARIABLE, raising=False)


def test_each_package_is_ready_installable_or_missing_and_says_why(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["packages", "list", "--json"]) == 0
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)}
    assert set(rows) == set(recipes())
    assert {row["state"] for row in rows.values()} <= {"ready", "installable", "missing"}
    assert all(row["note"] for row in rows.values() if row["state"] != "ready")
    assert all(row["version"] for row in rows.values() if row["state"] == "ready" and row["arms"])
    assert rows["nebula-1.10"]["state"] == (
        "missing" if toolchains.obstacle(recipe("nebula-1.10"))[0] else "installable"
    )
    assert rows["netmaker"]["note"].startswith("its makers publish it: https://")


def test_every_arm_but_the_kernel_s_belongs_to_a_package(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["packages", "list", "--json"]) == 0
    brought = {arm for row in json.loads(capsys.readouterr().out) for arm in row["arms"]}
    of_the_kernel = {name for name, (driver, _) in registry.arms().items() if driver.kernel}
    ours = {"direct", *(name for name, (driver, _) in registry.arms().items() if driver.name == "anchor")}
    assert set(registry.arms()) - brought == of_the_kernel | ours


def test_a_package_that_is_no_vpn_says_which_workload_runs_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["packages", "list", "--json"]) == 0
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)}
    assert (rows["vegeta"]["arms"], rows["vegeta"]["workloads"]) == ([], ["http"])
    assert rows["tinc"]["workloads"] == []


def test_the_table_has_every_package(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["packages", "list"]) == 0
    said = capsys.readouterr().out
    assert all(name in said for name in recipes())
    assert "packages are ready" in said


def test_what_is_missing_says_how_long_it_takes_and_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    part = registry.parts()["nebula-1.10"]
    with pytest.raises(MissingPart) as caught:
        programs.require(part)
    one = recipe("nebula-1.10")
    monkeypatch.setattr(toolchains, "obstacle", lambda _: ("", ""))
    assert absent(part, one, caught.value).endswith("tunnelmark packages install nebula-1.10")
    assert "it takes about" in absent(part, one, caught.value)
    monkeypatch.setattr(toolchains, "obstacle", lambda _: ("needs Go 9.9", "install it"))
    assert "not installed here: it needs Go 9.9: install it" in absent(part, one, caught.value)
    assert standing(one).state == "missing"


def test_verify_needs_the_checkout(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(tunnelmark, "__file__", "/nowhere/site-packages/tunnelmark/__init__.py")
    assert cli.main(["packages", "verify", "tinc"]) == 2
    said = capsys.readouterr().err
    assert "the contract suite is part of the checkout" in said
    assert "make setup" in said


def test_verify_refuses_a_name_that_is_neither_peer_nor_arm(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["packages", "verify", "nebula-1.11"]) == 2
    assert "nebula-1.10" in capsys.readouterr().err


def test_go_s_pseudo_versions_are_shortened_for_people_only() -> None:
    assert _short("0.0.0-20260522210424-ecfc5a8d5446") == "20260522-ecfc5a8d5446"
    assert _short("1.10.3") == "1.10.3"
    assert _short("1.6.1+dfsg-3+b4") == "1.6.1+dfsg-3+b4"


def test_the_former_name_works_with_a_note(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["peers", "list"]) == 0
    said = capsys.readouterr()
    assert "packages are ready" in said.out
    assert "note: `tunnelmark peers` is called `tunnelmark packages` now" in said.err
