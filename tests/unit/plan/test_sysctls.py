"""Kernel settings of a study and of an arm: which there may be, and whose they are."""

from __future__ import annotations

from pathlib import Path

import pytest

from tunnelmark.errors import PlanError
from tunnelmark.plan.load import load_study
from tunnelmark.plan.model import Study
from unit.plan.studies import ARMS, CATALOGUE, FILES, STUDY, WORKLOADS, write

OF_ALL = '[study.sysctls]\n"net.ipv4.tcp_reordering" = 127\n'
OF_ONE = '[[arm]]\nname = "tuned"\nvpn = "tinc"\nsysctls = { "net.ipv4.tcp_rmem" = [4096, 131072, 6291456] }\n'


def loaded(folder: Path, of_all: str = "", more: str = "") -> Study:
    return load_study(write(folder, STUDY + of_all + ARMS + more + WORKLOADS), FILES, CATALOGUE)


def test_a_study_sets_them_for_all_and_an_arm_for_itself(tmp_path: Path) -> None:
    arms = {arm.name: arm.sysctls for arm in loaded(tmp_path, OF_ALL, OF_ONE).arms}
    assert arms.pop("tuned") == {"net.ipv4.tcp_reordering": "127", "net.ipv4.tcp_rmem": "4096 131072 6291456"}
    assert set(map(str, arms.values())) == {"{'net.ipv4.tcp_reordering': '127'}"}


def test_without_any_there_are_none(tmp_path: Path) -> None:
    assert all(arm.sysctls == {} for arm in loaded(tmp_path).arms)


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("kernel.panic", "1", "is not a sysctl of a network"),
        ("net.core.rmem_max", "1", "holds for the whole machine"),
        ("net.ipv4.tcp_congestion_control", '"bbr"', "the laboratory sets CUBIC"),
        ("net.ipv4.tcp_reordering", "1.5", "1.5 cannot be used"),
        ("net.ipv4.tcp_rmem", '["x"]', "cannot be used"),
        ("net.ipv4.tcp_rmem", "[true, 1, 2]", "cannot be used"),
        ("net.ipv4.tcp_rmem", '"4096\\n1"', "cannot be used"),
    ],
)
def test_what_a_node_cannot_have_is_refused(tmp_path: Path, name: str, value: str, words: str) -> None:
    with pytest.raises(PlanError) as caught:
        loaded(tmp_path, f'[study.sysctls]\n"{name}" = {value}\n')
    assert name in str(caught.value)
    assert words in f"{caught.value} {caught.value.hint}"


def test_a_twin_has_those_of_its_arm(tmp_path: Path) -> None:
    twin = '[[arm]]\nname = "tuned-again"\nsame_as = "tuned"\n'
    arms = {arm.name: arm.sysctls for arm in loaded(tmp_path, OF_ALL, OF_ONE + twin).arms}
    assert arms["tuned-again"] == arms["tuned"]
