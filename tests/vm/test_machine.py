"""A real guest: runs commands, has what only a kernel has, cannot change the host, and is gone when it should be."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import pytest

from tunnelmark.errors import LabError, MissingPart
from tunnelmark.lab.node import Completed
from tunnelmark.lab.vm import Guest, Hardware
from vm.agreement import needs_qemu

pytestmark = [
    pytest.mark.root,
    pytest.mark.slow,
    needs_qemu,
    pytest.mark.proof("a study runs in a virtual machine, with the kernel's own WireGuard and netem"),
]

_Result = TypeVar("_Result")

WIREGUARD = """
set -e
for node in a b; do
    ip netns add $node
    (umask 77; wg genkey >$node.key)
    ip -n $node link add wg-$node type wireguard
done
ip link add one netns a type veth peer name two netns b
node() {
    ip -n $1 address add 10.0.0.$2/24 dev $3
    ip -n $1 link set $3 up
    ip netns exec $1 wg set wg-$1 private-key $1.key listen-port 5000 \
        peer $(wg pubkey <$4.key) endpoint 10.0.0.$5:5000 allowed-ips 10.1.0.$5/32
    ip -n $1 address add 10.1.0.$2/24 dev wg-$1
    ip -n $1 link set wg-$1 up
}
node a 1 one b 2
node b 2 two a 1
ip netns exec a ping -c3 -i0.2 10.1.0.2
ip netns exec a wg show wg-a latest-handshakes
"""


def in_guest(
    body: Callable[[Guest], Awaitable[_Result]], share: Path | None = None, hardware: Hardware | None = None
) -> _Result:
    async def run() -> _Result:
        async with Guest(share, hardware=hardware) as machine:
            return await body(machine)

    try:
        return asyncio.run(run())
    except MissingPart as missing:
        pytest.skip(f"{missing.message} ({missing.hint})")


def guests() -> set[str]:
    """Processes that are QEMU's."""
    found = set()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if (folder / "comm").read_text().startswith("qemu-system"):
                found.add(folder.name)
        except OSError:
            continue
    return found


def test_commands_give_their_code_output_and_files(tmp_path: Path) -> None:
    async def body(machine: Guest) -> tuple[Completed, ...]:
        told = ["sh", "-c", "echo out; echo $WORD >&2; echo kept >file; exit 7"]
        both = machine.run(told, 60, env={"WORD": "err"}), machine.run(["uname", "-r"], 60)
        return tuple(await asyncio.gather(*both))

    first, second = in_guest(body, tmp_path)
    assert first == Completed(7, "out\n", "err\n")
    assert second.stdout.strip() != os.uname().release
    assert (tmp_path / "file").read_text() == "kept\n"
    assert not (tmp_path / ".commands").exists()


def test_the_guest_has_the_hosts_files_and_cannot_change_them() -> None:
    path = Path(__file__)
    before = path.read_bytes()

    async def body(machine: Guest) -> Completed:
        return await machine.run(["sh", "-c", f"cat {path} && echo changed >{path} && cat {path}"], 60)

    assert in_guest(body).stdout.encode() == before + b"changed\n"
    assert path.read_bytes() == before


def test_the_guest_has_namespaces_veth_netem_tbf_and_wireguard() -> None:
    async def body(machine: Guest) -> tuple[Completed, ...]:
        shaped = "ip link add x type veth peer name y && tc qdisc add dev x root handle 1: netem delay 5ms && "
        shaped += "tc qdisc add dev x parent 1:1 tbf rate 1mbit burst 3000 latency 20ms && tc qdisc show dev x"
        return await machine.run(["sh", "-c", shaped], 60), await machine.run(["sh", "-c", WIREGUARD], 120)

    shaped, tunnel = in_guest(body)
    assert "netem" in shaped.stdout and "tbf" in shaped.stdout, shaped.stderr
    if "wg: not found" in tunnel.stderr:
        pytest.skip("needs wg: apt-get install wireguard-tools")
    assert "3 received" in tunnel.stdout, tunnel.stderr
    assert not tunnel.stdout.rstrip().endswith("\t0")  # a handshake took place


def test_what_takes_too_long_ends_the_guest(tmp_path: Path) -> None:
    before = guests()

    async def body(machine: Guest) -> None:
        began = time.monotonic()
        with pytest.raises(LabError, match="did not end within 1 s") as error:
            await machine.run(["sleep", "1000"], 1)
        assert error.value.hint
        assert time.monotonic() - began < 5
        with pytest.raises(LabError, match="ended by itself"):
            await machine.run(["true"], 10)

    in_guest(body, tmp_path)
    assert guests() <= before


def test_a_guest_that_ends_by_itself_is_told_of() -> None:
    async def body(machine: Guest) -> None:
        with pytest.raises(LabError, match="ended by itself"):
            await machine.run(["sh", "-c", "echo b >/proc/sysrq-trigger; sleep 100"], 60)

    in_guest(body)


def test_a_guest_dies_with_its_owner(tmp_path: Path) -> None:
    before = guests()
    program = (
        "import asyncio, pathlib, tunnelmark.lab.vm as vm\n"
        "async def main():\n"
        f"    async with vm.Guest(pathlib.Path({str(tmp_path)!r})) as machine:\n"
        "        print('up', flush=True)\n"
        "        await machine.run(['sleep', '1000'], 1000)\n"
        "asyncio.run(main())\n"
    )
    source = Path(__file__).resolve().parents[2] / "src"
    owner = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, env=os.environ | {"PYTHONPATH": str(source)}
    )
    assert owner.stdout is not None
    with owner:
        assert owner.stdout.readline() == b"up\n"
        assert len(guests() - before) == 1
        owner.send_signal(signal.SIGKILL)
    deadline = time.monotonic() + 5
    while guests() - before and time.monotonic() < deadline:
        time.sleep(0.05)
    assert guests() <= before
