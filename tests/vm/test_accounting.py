"""The CPU account in a guest, on a host with cgroup v2 alone: with kernel WireGuard, too, its parts are the whole machine."""

from __future__ import annotations

import pytest

from support.accounting import Account
from vm.accounts import accounts
from vm.agreement import needs_qemu

pytestmark = [
    pytest.mark.root,
    pytest.mark.slow,
    pytest.mark.timeout(1800),
    needs_qemu,
    pytest.mark.proof(
        "the CPU account closes within five per cent for kernel WireGuard, on a host with cgroup v2 alone"
    ),
]


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Account]:
    return accounts(("direct", "wireguard"), tmp_path_factory.mktemp("account"))


@pytest.mark.parametrize("arm", ["direct", "wireguard"])
def test_the_parts_are_the_whole_guest(found: dict[str, Account], arm: str) -> None:
    assert found[arm].disagreements(0.05) == {}
    assert len(found[arm].totals) == 3, "the scheduler's own count of all tasks is one of the totals"


def test_wireguards_encryption_is_the_kernels_workers_and_is_counted(found: dict[str, Account]) -> None:
    """An account without them would not close: they are more than what it may be open by."""
    assert found["wireguard"].parts["kernel workers"] > 0.1 * found["wireguard"].sum
    assert found["direct"].parts["kernel workers"] < 0.05 * found["direct"].sum
