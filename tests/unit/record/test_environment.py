"""The environment holds what somebody needs to repeat a run, and is fit to be written as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import tunnelmark
from tunnelmark.errors import MissingPart
from tunnelmark.host.programs import Requirement, sha256
from tunnelmark.record import arm_programs, environment, plan_pieces
from unit.builders import Study

SHELL = Requirement("shell", ("sh",), ("dash",), ("sh", "-c", "echo shell 1.5"), r"shell (\S+)")
GONE = Requirement("gone", ("no-such-daemon",), ("gone",))


def test_it_holds_machine_programs_settings_and_load(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["/somewhere/tunnelmark", "run", "quick"])
    found = environment.capture([SHELL], lab={"offloads": "off"}, tools=[])
    assert json.loads(json.dumps(found)) == found
    assert set(found) >= {"tunnelmark", "command", "machine", "vpns", "tools", "host_sysctls", "lab", "load"}
    assert found["tunnelmark"] == tunnelmark.__version__
    assert found["command"] == ["tunnelmark", "run", "quick"]
    assert found["lab"] == {"offloads": "off"}
    assert set(found["machine"]) == {"system", "kernel", "cpu", "cores", "memory_bytes", "virtualisation"}
    assert found["machine"]["memory_bytes"] > 0
    assert set(found["load"]["before"]) == {"average", "busy", "steal"}


def test_a_virtual_machine_says_what_it_is() -> None:
    guest = {"kernel": "6.1", "accelerator": "tcg", "emulated": True}
    found = environment.capture([], tools=[], guest=guest)
    assert found["guest"] == guest
    assert found["machine"]["virtualisation"] == "qemu, tcg"
    assert "guest" not in environment.capture([], tools=[])


def test_a_vpn_has_its_version_and_the_hash_of_every_program() -> None:
    vpn = environment.capture([SHELL], tools=[])["vpns"]["shell"]
    assert vpn["version"] == "1.5"
    assert vpn["programs"]["sh"]["sha256"] == sha256(Path(vpn["programs"]["sh"]["path"]))


def test_a_vpn_that_a_recipe_built_has_the_recipe_s_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TUNNELMARK_PACKAGES", str(tmp_path))
    (tmp_path / "shell").mkdir()
    (tmp_path / "shell" / "peer.json").write_text('{"recipe": "abc", "toolchain": "go 1.26"}')
    built = Requirement("shell", ("sh",), (), ("sh", "-c", "echo shell 1.5"), r"shell (\S+)", recipe="shell")
    assert environment.capture([built], tools=[])["vpns"]["shell"]["installed"]["toolchain"] == "go 1.26"
    assert "installed" not in environment.capture([SHELL], tools=[])["vpns"]["shell"]


def test_a_vpn_that_is_not_installed_is_an_error_with_a_hint() -> None:
    with pytest.raises(MissingPart) as caught:
        environment.capture([GONE], tools=[])
    assert caught.value.hint == "apt-get install gone"


def test_a_workload_has_its_packages_and_the_hash_of_every_program() -> None:
    found = environment.capture([], tools=[], workloads=[SHELL, GONE])["workloads"]
    assert set(found) == {"shell"}
    assert found["shell"]["programs"]["sh"]["sha256"] == sha256(Path("/bin/sh").resolve())
    assert set(found["shell"]["packages"]) <= {"dash"}


def test_a_tool_that_is_not_installed_is_left_out() -> None:
    assert set(environment.capture([], tools=[GONE, SHELL])["tools"]) == {"shell"}


def test_settings_that_this_kernel_lacks_are_left_out() -> None:
    found = environment.sysctls(["net.ipv4.tcp_congestion_control", "net.no.such_thing"])
    assert set(found) == {"net.ipv4.tcp_congestion_control"}


RECORD = {
    "nebula": {"version": "1.6.1"},
    "nebula 1.10": {"version": "1.10.3"},
    "nebula (mine)": {"version": "1.6.2"},
    "nebula 1.10 (mine)": {"version": "1.10.4"},
}
OWN = {"nebula": "/opt/mine/nebula"}


@pytest.mark.parametrize(
    ("arm", "options", "programs", "version"),
    [
        ("nebula", {}, {}, "1.6.1"),
        ("newer", {"build": "1.10"}, {}, "1.10.3"),
        ("newer-relay", {"build": "1.10", "relay": True}, {}, "1.10.3"),
        ("plain", {"build": None}, {}, "1.6.1"),
        ("mine", {}, OWN, "1.6.2"),
        ("mine", {"build": "1.10"}, OWN, "1.10.4"),
        ("gone", {}, OWN, ""),  # its programs were not there, so that nebula's own are not what it ran
    ],
)
def test_the_version_of_an_arm_is_that_of_its_build_and_of_its_own_programs(
    arm: str, options: Mapping[str, Any], programs: Mapping[str, str], version: str
) -> None:
    results = Study(arms=("direct", arm), vpns={arm: "nebula"}, environment={"vpns": RECORD}).results()
    info = replace(results.plan.arms[1], options=options, programs=programs)
    found = replace(results, plan=replace(results.plan, arms=(results.plan.arms[0], info)))
    assert arm_programs.version(found.environment, info) == version
    assert plan_pieces.pieces(found)["arm", arm]["version"] == version


@pytest.mark.parametrize("record", [{}, {"vpns": None}, {"vpns": {"tinc": None}}, {"vpns": {"tinc": {}}}])
def test_a_version_that_is_not_recorded_is_empty(record: Mapping[str, Any]) -> None:
    assert arm_programs.version(record, Study(arms=("direct", "tinc")).results().plan.arms[1]) == ""
