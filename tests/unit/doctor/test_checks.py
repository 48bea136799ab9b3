"""The doctor's judgement on findings that are made up, and one look at this machine."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from tunnelmark.doctor.checks import Check, examine, judge
from tunnelmark.doctor.machine_findings import PERF, Findings
from tunnelmark.errors import MissingPart
from tunnelmark.host import kernel_features
from tunnelmark.host.programs import Requirement
from tunnelmark.host.utilisation import HostLoad
from tunnelmark.lab.vm.host_support import VmSupport

GIB = 2**30
PING = Requirement("ping", ("ping",), ("iputils-ping",), essential=True)
TINC = Requirement("tinc", ("tincd",), ("tinc",))
WIREGUARD = Requirement("wireguard", ("wg",), ("wireguard-tools",), kernel=("wireguard",))
NO_PING = MissingPart("the program ping is not installed", hint="apt-get install iputils-ping")
NO_TINC = MissingPart("the program tincd is not installed", hint="apt-get install tinc")
NO_MODULE = MissingPart("this kernel has no wireguard", hint="--backend vm")
GUESTS = VmSupport("7.2.22", "", "works", ("6.1.0-56-amd64",))
HEALTHY = Findings(
    system="Debian",
    os="Linux",
    kernel="6.12 x86_64",
    capabilities=2**41 - 1,
    cores=4,
    memory=(16 * GIB, 12 * GIB),
    disk=50 * GIB,
    load=HostLoad(average=0.1, busy=0.1, steal=0.0),
    guests=GUESTS,
    cgroup_v2="/sys/fs/cgroup",
    cgroup_cpu="/sys/fs/cgroup",
    congestion_default="cubic",
    congestion_available=("reno", "cubic"),
    probes=dict.fromkeys(kernel_features.NAMES, ""),
    parts=[(PING, "1"), (TINC, "1.0.36")],
    tools=frozenset({"ping"}),
)


def with_(**changes: Any) -> dict[str, Check]:
    return {check.name: check for check in judge(dataclasses.replace(HEALTHY, **changes))}


def failing(*names: str) -> dict[str, str]:
    return {**dict.fromkeys(kernel_features.NAMES, ""), **dict.fromkeys(names, "Operation not permitted")}


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
        ({"parts": [(PING, NO_PING)]}, "ping", "apt-get install iputils-ping"),
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
        ({"load": HostLoad(average=9.0, busy=3.9, steal=0.0)}, "load"),
        ({"load": HostLoad(average=0.1, busy=0.1, steal=0.5)}, "steal"),
        ({"cgroup_cpu": ""}, "CPU priority"),
        ({"parts": [(TINC, NO_TINC)]}, "tinc"),
    ],
)
def test_what_makes_results_worse_is_a_warning_with_a_hint(changes: dict[str, Any], name: str) -> None:
    check = with_(**changes)[name]
    assert check.state == "warn"
    assert check.hint


@pytest.mark.parametrize(
    ("changes", "name", "hint"),
    [
        ({"probes": failing("netem")}, "netem", "--backend vm"),
        ({"probes": failing("wireguard")}, "kernel WireGuard", "--backend vm"),
        ({"probes": failing("wireguard"), "parts": [(WIREGUARD, NO_MODULE)]}, "wireguard", "--backend vm"),
        ({"probes": failing("user")}, "user namespaces", "max_user_namespaces"),
        ({"as_user": failing("user")}, "without root", "sudoers.d"),
        ({"as_user": failing("cubic-sysctl", "cubic-bpf")}, "without root", "NOPASSWD"),
        ({"probes": failing("tun-uso")}, "TUN offloads", "6.2"),
        ({"probes": failing("perf", "perf-cycles")}, "perf events", "perf_event_paranoid"),
        ({"probes": failing("perf-cycles")}, "perf events", "sampled"),
        ({"probes": failing("cubic-bpf")}, "BPF", "CONFIG_CGROUP_BPF"),
        (
            {"guests": dataclasses.replace(GUESTS, qemu="", lacks="apt-get install qemu")},
            "QEMU",
            "apt-get install qemu",
        ),
        ({"guests": dataclasses.replace(GUESTS, kvm="broken")}, "acceleration", "not speeds"),
        ({"guests": dataclasses.replace(GUESTS, kvm="none")}, "acceleration", "KVM"),
        ({"guests": dataclasses.replace(GUESTS, kernels=())}, "kernels", "fetched"),
        ({"parts": [(PERF, MissingPart("no perf", hint="apt-get install linux-perf"))]}, "perf", "linux-perf"),
    ],
)
def test_what_only_wishes_need_is_absent_without_a_warning_and_has_a_hint(
    changes: dict[str, Any], name: str, hint: str
) -> None:
    check = with_(**changes)[name]
    assert check.state == "absent"
    assert hint in check.hint


def test_a_vpn_whose_program_is_missing_is_a_warning_though_another_lacks_its_kernel() -> None:
    checks = with_(probes=failing("wireguard"), parts=[(TINC, NO_TINC), (WIREGUARD, NO_MODULE)])
    assert (checks["tinc"].state, checks["wireguard"].state) == ("warn", "absent")


@pytest.mark.parametrize(
    ("lacking", "value"),
    [((), "TCP and UDP"), (("tun-uso",), "TCP only"), (("tun-tso", "tun-uso"), "none")],
)
def test_the_offloads_of_tun_are_told_apart(lacking: tuple[str, ...], value: str) -> None:
    assert with_(probes=failing(*lacking))["TUN offloads"].value == value


def test_cores_are_told_with_how_many_are_free() -> None:
    assert with_(cores=4, load=HostLoad(average=1.0, busy=1.5, steal=0.0))["cores"].value == "4, 2.5 of them free now"


def test_cubic_may_come_by_sysctl_or_by_bpf() -> None:
    assert "may choose" in with_()["CUBIC"].value
    by_bpf = with_(probes=failing("cubic-sysctl"), congestion_default="bbr")["CUBIC"]
    assert (by_bpf.state, by_bpf.value) == ("ok", "default bbr; set on each socket by BPF")


def test_what_users_are_refused_is_named_and_cubic_only_if_both_ways_are() -> None:
    assert "needs root" in with_(as_user=failing("cubic-sysctl", "netem"))["without root"].value
    said = with_(as_user=failing("tun", "cgroup", "cubic-sysctl", "cubic-bpf"))["without root"].value
    assert [part.split(" (")[0] for part in said.removeprefix("refused to users: ").split(", ")] == [
        "/dev/net/tun",
        "control groups",
        "CUBIC",
    ]


def test_without_root_the_kernel_is_not_called_unfit_for_what_was_not_tried() -> None:
    checks = with_(capabilities=0, probes=failing(*kernel_features.NAMES))
    assert [name for name, check in checks.items() if check.state == "missing"] == ["root"]
    assert "sudo" in checks["what a lab needs"].hint


def test_tools_and_vpns_stand_apart() -> None:
    assert (with_()["ping"].group, with_()["tinc"].group) == ("tools", "vpns")


@pytest.mark.root
def test_a_look_at_this_machine_finds_what_the_lab_tests_need() -> None:
    checks = {check.name: check for check in examine([TINC])}
    assert not [check for check in checks.values() if check.state == "missing"]
    assert checks["namespaces"].state == "ok"
    assert all(check.hint for check in checks.values() if check.state == "warn")
