"""The probes work here, tell a refusal as text, and leave nothing behind."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from tunnelmark.errors import LabError, MissingPart
from tunnelmark.host import kernel_features
from tunnelmark.linux import cgroups


def interfaces() -> set[str]:
    return set(os.listdir("/sys/class/net"))


@pytest.mark.root
def test_the_probes_leave_the_host_as_it_was() -> None:
    before, unified = interfaces(), cgroups.find().unified
    choice = Path("/proc/sys/net/ipv4/tcp_congestion_control")
    congestion = choice.read_text()
    outcome = kernel_features.run()
    assert tuple(outcome) == kernel_features.NAMES
    assert not outcome["namespaces"]
    assert interfaces() == before
    assert choice.read_text() == congestion
    # Another command's probe may be there at this moment, and goes; one that is left stays.
    deadline = time.monotonic() + 60
    while unified is not None and (left := list(unified.glob("tunnelmark-*-probe"))):
        assert time.monotonic() < deadline, left
        time.sleep(0.05)


@pytest.mark.root
def test_a_user_makes_namespaces_and_links_of_his_own_and_no_control_group_of_the_machine() -> None:
    outcome = kernel_features.run(as_user=True)
    assert tuple(outcome) == kernel_features.NAMES
    if outcome["user"]:
        pytest.skip(f"this kernel refuses users a namespace: {outcome['user']}")
    assert (outcome["namespaces"], outcome["veth"]) == ("", "")
    assert outcome["cgroup"]


@pytest.mark.root
def test_a_device_that_no_kernel_has_is_refused_in_words() -> None:
    assert kernel_features._try(lambda: kernel_features._link("no-such-kind"))


def test_what_the_kernel_lacks_is_a_missing_part_that_names_the_other_backend(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "tunnelmark.host.kernel_features.found", lambda: {"wireguard": "Operation not supported", "veth": ""}
    )
    kernel_features.require(["veth"])
    with pytest.raises(MissingPart, match="no wireguard") as caught:
        kernel_features.require(["veth", "wireguard"])
    assert "--backend vm" in caught.value.hint


def test_a_child_that_breaks_is_a_lab_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tunnelmark.host.kernel_features.sys.executable", "/bin/false")
    with pytest.raises(LabError, match="the probes broke") as caught:
        kernel_features.run()
    assert caught.value.hint
