"""`list`, `doctor` and `new`: tables for people, JSON for programs, files that are not overwritten."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import tunnelmark
from tunnelmark import registry
from tunnelmark.cli import command as cli
from tunnelmark.doctor.checks import Check
from tunnelmark.host.programs import PACKAGES_VARIABLE
from tunnelmark.plan.files import PATH_VARIABLE


def run_json(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> Any:
    assert cli.main([*arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("vpns", "tinc"),
        ("arms", "tinc-tcp"),
        ("workloads", "ping"),
        ("profiles", "gigabit"),
        ("topologies", "pair"),
        ("studies", "quick"),
    ],
)
def test_a_list_has_the_same_names_as_table_and_as_json(
    kind: str, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = run_json(["list", kind], capsys)
    assert name in [row["name"] for row in rows]
    assert cli.main(["list", kind]) == 0
    said = capsys.readouterr().out
    assert all(row["name"] in said for row in rows)


def test_a_missing_vpn_says_how_to_install_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("tunnelmark.host.programs.search_path", lambda: "/nowhere")
    tinc = next(row for row in run_json(["list", "vpns"], capsys) if row["name"] == "tinc")
    assert tinc["version"] is None
    assert tinc["install"].startswith("apt-get install tinc")
    assert cli.main(["list", "vpns"]) == 0
    assert "missing: apt-get install tinc" in capsys.readouterr().out


def test_a_workload_is_not_missing_whose_programs_a_recipe_has_installed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(PACKAGES_VARIABLE, str(tmp_path))
    monkeypatch.setattr("tunnelmark.host.programs.search_path", lambda: str(tmp_path))
    for program in (tmp_path / "nginx", tmp_path / "openssl"):
        program.touch(0o755)

    def http() -> Any:
        return next(row for row in run_json(["list", "workloads"], capsys) if row["name"] == "http")["install"]

    assert "tunnelmark packages install vegeta" in http()
    (tmp_path / "vegeta" / "bin").mkdir(parents=True)
    (tmp_path / "vegeta" / "bin" / "vegeta").touch(0o755)
    assert http() is None


def test_what_no_registry_carries_is_not_said_to_be_installable(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("tunnelmark.host.programs.search_path", lambda: "/nowhere")
    zerotier = next(row for row in run_json(["list", "vpns"], capsys) if row["name"] == "zerotier")
    assert zerotier["install"].startswith("its makers publish it: https://")


def test_profiles_are_in_bits_and_bytes_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    gigabit = next(row for row in run_json(["list", "profiles"], capsys) if row["name"] == "gigabit")
    assert gigabit["rate"] == 10**9
    assert isinstance(gigabit["queue"], int)


OK = Check("machine", "system", "ok", "Linux")
WARN = Check("machine", "load", "warn", "3 cores busy", "wait")
ABSENT = Check(
    "vpns", "boringtun", "warn", "the program boringtun is not installed", "tunnelmark packages install boringtun"
)
MISSING = Check("kernel", "tun", "missing", "No such file", "modprobe tun")


@pytest.mark.parametrize(
    ("checks", "code", "verdict"),
    [
        ((OK,), 0, "ready"),
        ((OK, WARN), 0, "ready, with reservations: load"),
        ((OK, WARN, MISSING), 2, "not ready: no lab can run without tun"),
    ],
)
def test_doctor_is_exit_2_only_when_something_essential_is_missing(
    checks: tuple[Check, ...],
    code: int,
    verdict: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("tunnelmark.cli.doctor_command.examine", lambda parts: checks)
    assert cli.main(["doctor"]) == code
    said = capsys.readouterr().out
    assert said.splitlines()[-1] == verdict
    assert all(check.hint in said for check in checks)


def test_doctor_takes_vpns_that_are_not_installed_for_no_fault_of_the_machine(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("tunnelmark.cli.doctor_command.examine", lambda parts: (OK, WARN, ABSENT))
    monkeypatch.setattr("tunnelmark.cli.doctor_command.registry.vpns", dict)
    monkeypatch.setattr("tunnelmark.cli.doctor_command._advised", lambda check, parts: check)
    assert cli.main(["doctor"]) == 0
    ready, rest = capsys.readouterr().out.splitlines()[-2:]
    assert ready == "ready, with reservations: load"
    assert rest.startswith("not installed: boringtun (")


def test_doctor_json_keeps_its_shape(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("tunnelmark.cli.doctor_command.examine", lambda parts: (OK, MISSING))
    assert cli.main(["doctor", "--json"]) == 2
    assert json.loads(capsys.readouterr().out) == {
        "ready": False,
        "checks": [
            {"group": "machine", "name": "system", "state": "ok", "value": "Linux", "hint": ""},
            {"group": "kernel", "name": "tun", "state": "missing", "value": "No such file", "hint": "modprobe tun"},
        ],
    }


def test_new_vpn_writes_a_driver_that_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["new", "vpn", "my-vpn", "--dir", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert str(tmp_path / "vpns" / "my_vpn.py") in said
    assert f"export TUNNELMARK_PATH={tmp_path}" in said
    assert "make contract VPN=my-vpn" in said
    monkeypatch.setenv(PATH_VARIABLE, str(tmp_path))
    registry.vpns.cache_clear()
    assert registry.vpn("my-vpn").name == "my-vpn"
    registry.vpns.cache_clear()


def test_new_vpn_asks_for_no_path_where_the_driver_is_found_anyway(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(tunnelmark, "__file__", str(tmp_path / "__init__.py"))
    assert cli.main(["new", "vpn", "my-vpn", "--dir", str(tmp_path)]) == 0
    assert PATH_VARIABLE not in capsys.readouterr().out


def test_new_vpn_overwrites_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["new", "vpn", "my-vpn", "--dir", str(tmp_path)]) == 0
    file = tmp_path / "vpns" / "my_vpn.py"
    file.write_text("mine")
    assert cli.main(["new", "vpn", "my-vpn", "--dir", str(tmp_path)]) == 2
    assert "exists already" in capsys.readouterr().err
    assert file.read_text() == "mine"


def test_new_vpn_refuses_a_name_that_is_taken(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["new", "vpn", "tinc", "--dir", str(tmp_path)]) == 2
    assert "there is a VPN called tinc already" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
