"""A run is gone on with on the machine on which it was begun, with the same programs, and may get further blocks."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tunnelmark.errors import StoreError
from tunnelmark.record import resumed, store
from tunnelmark.record.results import ENVIRONMENT, PlanInfo
from unit.builders import Study

FINGERPRINT = {
    "cpu": {"vendor": "AuthenticAMD", "family": "25", "model": "1", "mhz": 2445.4, "flags": ["aes", "sse2"]},
    "cores": 2,
    "memory": 8 << 30,
    "kernel": "6.18.44",
    "command_line": "quiet",
    "boot": "one",
}
BEGUN: dict[str, Any] = {
    "machine": {"kernel": "6.18.44 x86_64", "memory_bytes": 8 << 30},
    "vpns": {"tinc": {"version": "1.0"}},
    "workloads": {},
    "fingerprint": FINGERPRINT,
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / ENVIRONMENT).write_text(json.dumps(BEGUN))
    store.write_plan(tmp_path, planned(5))
    return tmp_path


def planned(blocks: int, arms: tuple[str, ...] = ("direct", "tinc")) -> PlanInfo:
    return Study(arms=arms, same_as={}, blocks=blocks).results().plan


def changed(**fields: Any) -> dict[str, Any]:
    now = copy.deepcopy(BEGUN)
    now["fingerprint"] |= fields
    return now


def test_the_same_machine_in_the_same_boot_goes_on(folder: Path):
    resumed.require_same(folder, copy.deepcopy(BEGUN))


def test_another_processor_of_the_same_name_is_refused_by_field(folder: Path):
    with pytest.raises(StoreError, match="CPU model: 1, now 17") as caught:
        resumed.require_same(folder, changed(cpu=FINGERPRINT["cpu"] | {"model": "17"}))  # type: ignore[operator]
    assert "merge" in caught.value.hint


def test_another_boot_is_refused_unless_it_is_allowed(folder: Path):
    now = changed(boot="two", memory=(8 << 30) - 65536)
    now["machine"]["memory_bytes"] -= 65536
    with pytest.raises(StoreError, match="started again") as caught:
        resumed.require_same(folder, now)
    assert "--other-boot" in caught.value.hint
    resumed.require_same(folder, now, other_boot=True)


def test_a_boot_with_another_command_line_is_refused_even_so(folder: Path):
    with pytest.raises(StoreError, match="kernel command line: quiet, now mitigations=off"):
        resumed.require_same(folder, changed(boot="two", command_line="mitigations=off"), other_boot=True)


def test_a_program_of_a_workload_may_have_been_installed_since_and_is_recorded(folder: Path):
    now = {**BEGUN, "workloads": {**BEGUN["workloads"], "kube-apiserver": {"version": "1.36"}}}
    resumed.require_same(folder, now)
    resumed.add_programs(folder, now)
    assert store.load_environment(folder) == now
    with pytest.raises(StoreError, match="workloads"):
        resumed.require_same(folder, BEGUN)


def test_another_program_is_refused(folder: Path):
    with pytest.raises(StoreError, match="vpns"):
        resumed.require_same(folder, {**BEGUN, "vpns": {"tinc": {"version": "1.1"}}})


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"tunnelmark": "0.2.0"}, "tunnelmark 0.1.0, now 0.2.0"),
        ({"lab": {"emulator": {"sha256": "b"}}}, "the emulator"),
    ],
)
def test_another_version_of_ours_is_refused_where_it_is_recorded(fields: dict[str, Any], why: str, folder: Path):
    resumed.require_same(folder, BEGUN | fields)  # results from before it was recorded
    recorded = BEGUN | {"tunnelmark": "0.1.0", "lab": {"emulator": {"path": "here", "sha256": "a"}}}
    (folder / ENVIRONMENT).write_text(json.dumps(recorded))
    resumed.require_same(folder, recorded | {"lab": {"emulator": {"path": "there", "sha256": "a"}}})
    with pytest.raises(StoreError, match=why):
        resumed.require_same(folder, recorded | fields)


def test_each_host_of_a_run_must_be_what_it_was(folder: Path):
    def over(kernel: str, memory: int = 8 << 30) -> dict[str, Any]:
        machine = BEGUN["machine"]
        hosts = {"alpha": {"machine": machine}, "beta": {"machine": {"kernel": kernel, "memory_bytes": memory}}}
        return BEGUN | {"hosts": hosts, "lab": {"emulator": {"sha256": kernel}}}

    (folder / ENVIRONMENT).write_text(json.dumps(over("6.1")))
    resumed.require_same(folder, over("6.1", (8 << 30) - 65536))
    with pytest.raises(StoreError, match=r"\(host beta: kernel 6\.1, now 6\.12\)"):
        resumed.require_same(folder, over("6.12"))


def test_results_from_before_fingerprints_are_held_against_what_they_have(folder: Path):
    old = {key: value for key, value in BEGUN.items() if key != "fingerprint"}
    (folder / ENVIRONMENT).write_text(json.dumps(old))
    resumed.require_same(folder, copy.deepcopy(BEGUN))
    with pytest.raises(StoreError, match="kernel"):
        resumed.require_same(folder, {**BEGUN, "machine": {**BEGUN["machine"], "kernel": "6.1"}})


def test_further_blocks_stand_behind_those_that_there_are(folder: Path):
    resumed.extend(folder, planned(8))
    resumed.extend(folder, planned(10))
    resumed.extend(folder, planned(10))  # resumed once more
    found = store.load_plan(folder)
    assert (found.blocks, found.extended, len(found.trials)) == (10, (5, 8), len(planned(10).trials))
    assert found.arms == store.as_read(planned(5)).arms


def test_more_than_blocks_is_not_added(folder: Path):
    with pytest.raises(StoreError, match="another plan"):
        resumed.extend(folder, planned(8, ("direct", "tinc", "nebula")))
    assert store.load_plan(folder).blocks == 5


def test_fewer_blocks_change_nothing(folder: Path):
    resumed.extend(folder, replace(planned(3)))
    assert store.load_plan(folder).blocks == 5
