"""The doctor's judgement on findings that are made up, and one look at this machine."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from tunnelmark.lab import doctor, probes
from tunnelmark.lab.doctor import Check, Findings, judge
from tunnelmark.lab.machine import Load
from tunnelmark.lab.programs import Part

GIB = 2**30
PING = Part("ping", ("ping",), ("iputils-ping",), essential=True)
TINC = Part("tinc", ("tincd",), ("tinc",))
HEALTHY = Findings(
    system="Debian",
    os="Linux",
    kernel="6.12 x86_64",
    capabilities=2**41 - 1,
    cores=4,
    memory=(16 * GIB, 12 * GIB),
    disk=50 * GIB,
    load=Load(average=0.1, busy=0.1, steal=0.0),
    kvm=True,
    cgroup_v2="/sys/fs/cgroup",
    cgroup_cpu="/sys/fs/cgroup",
    congestion_default="cubic",
    congestion_available=("reno", "cubic"),
    probes=dict.fromkeys(probes.NAMES, ""),
    parts=[(PING, "1"), (TINC, "1.0.36")],
    tools=frozenset({"ping"}),
)


def with_(**changes: Any) -> dict[str, Check]:
    return {check.name: check for check in judge(dataclasses.replace(HEALTHY, **changes))}


def failing(*names: str) -> dict[str, str]:
    return {**dict.fromkeys(probes.NAMES, ""), **dict.fromkeys(names, "Operation not permitted")}


def test_a_healthy_machine_has_nothing_to_say() -> None:
    assert {check.state for check in judge(HEALTHY)} == {"ok"}
    assert not any(check.hint for check in judge(HEALTHY))


@pytest.mark.parametrize(
    ("changes", "name", "hint"),
    [
        ({"os": "Darwin"}, "system", "Linux"),
        ({"capabilities": 0}, "root", "sudo"),
        ({"capabilities": 1 << 12}, "root", "sudo"),  # NET_ADMIN alone makes no mount
        ({"probes": failing("namespaces")}, "namespaces", "privileged"),
        ({"probes": failing("tun")}, "tun", "modprobe tun"),
        ({"probes": failing("veth")}, "veth", "modprobe veth"),
        ({"probes": failing("mirred")}, "mirred", "modprobe act_mirred"),
        ({"probes": failing("tbf")}, "tbf", "modprobe sch_tbf"),
        ({"probes": failing("cgroup"), "cgroup_v2": ""}, "CPU accounting", "cgroup2"),
        ({"congestion_available": ("reno",)}, "CUBIC", "tcp_cubic"),
        ({"probes": failing("cubic-sysctl", "cubic-bpf")}, "CUBIC", "BPF"),
        ({"parts": [(PING, None)]}, "ping", "apt-get install iputils-ping"),
    ],
)
def test_what_no_lab_runs_without_is_missing_and_has_a_hint(changes: dict[str, Any], name: str, hint: str) -> None:
    check = with_(**changes)[name]
    assert check.state == "missing"
    assert hint in check.hint


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"cores": 1}, "cores"),
        ({"memory": (GIB, GIB // 2)}, "memory"),
        ({"disk": GIB // 2}, "disk"),
        ({"load": Load(average=9.0, busy=3.9, steal=0.0)}, "load"),
        ({"load": Load(average=0.1, busy=0.1, steal=0.5)}, "steal"),
        ({"cgroup_cpu": ""}, "CPU priority"),
        ({"parts": [(TINC, None)]}, "tinc"),
    ],
)
def test_what_makes_results_worse_is_a_warning_with_a_hint(changes: dict[str, Any], name: str) -> None:
    check = with_(**changes)[name]
    assert check.state == "warn"
    assert check.hint


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"probes": failing("netem")}, "netem"),
        ({"probes": failing("wireguard")}, "kernel WireGuard"),
        ({"kvm": False}, "kvm"),
    ],
)
def test_what_is_not_needed_is_absent_without_a_warning(changes: dict[str, Any], name: str) -> None:
    check = with_(**changes)[name]
    assert (check.state, check.hint) == ("absent", "")


def test_cubic_may_come_by_sysctl_or_by_bpf() -> None:
    assert "may choose" in with_()["CUBIC"].value
    by_bpf = with_(probes=failing("cubic-sysctl"), congestion_default="bbr")["CUBIC"]
    assert (by_bpf.state, by_bpf.value) == ("ok", "default bbr; set on each socket by BPF")


def test_tools_and_vpns_stand_apart() -> None:
    assert (with_()["ping"].group, with_()["tinc"].group) == ("tools", "vpns")


@pytest.mark.root
def test_a_look_at_this_machine_finds_what_the_lab_tests_need() -> None:
    checks = {check.name: check for check in doctor.examine([TINC])}
    assert not [check for check in checks.values() if check.state == "missing"]
    assert checks["namespaces"].state == "ok"
    assert all(check.hint for check in checks.values() if check.state == "warn")
