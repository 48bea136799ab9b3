"""Every VPN through one suite, on its real daemon, between three nodes of a lab."""

from __future__ import annotations

import asyncio
import os
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from contract import wire
from contract.lab_of_three import CONTRACT, NODES, READY, NamedArm, Together, installed, switch
from tunnelmark import registry
from tunnelmark.errors import NotReady
from tunnelmark.host import programs
from tunnelmark.lab.labs import Lab
from tunnelmark.lab.node import Completed
from tunnelmark.run.deploy import RunningDeployment
from tunnelmark.run.deployment_steps import STAGING
from tunnelmark.run.tunnel import NORMAL
from tunnelmark.vpns.feature_matrix import REQUIRED
from tunnelmark.vpns.wireguard_go import DRIVER as WIREGUARD_GO
from unit.vpns.test_drivers import deployed

pytestmark = pytest.mark.root

Run = Callable[[Any], Any]
Report = Callable[[str], None]

ARMS = [NamedArm(name, driver, options) for name, (driver, options) in registry.arms().items()]
PAIRS = tuple(permutations(NODES, 2))
HUB, SPOKE = NODES[0], NODES[-1]
CRASH_READY = 150.0  # seconds; OpenVPN's clients notice after `keepalive`'s 120 s that their server is another one
A_WHILE = 1.1  # seconds a daemon lives before it is killed: tinc's message numbers are seeded by the clock's second
SENT = 4_000_000  # bytes of TCP each way
ARRIVED = 500_000  # bytes of them; iperf3 ends when all are sent, and a VPN may hold megabytes in its buffers


def on_the_machine() -> set[str]:
    """Network interfaces outside of labs, and the folder of WireGuard's sockets with what is in it."""
    folder = Path("/run/wireguard")
    return {*os.listdir("/sys/class/net"), *(str(each) for each in (folder, *folder.glob("*")) if each.exists())}


@pytest.fixture(scope="module", autouse=True)
def its_own() -> set[str]:
    """What of that the machine has had since before the first lab."""
    return on_the_machine()


@pytest.fixture(scope="module", params=ARMS, ids=lambda arm: str(arm.name))
def arm(request: pytest.FixtureRequest) -> NamedArm:
    arm: NamedArm = request.param
    installed(arm.part)
    return arm


@pytest.fixture(scope="module")
def up(arm: NamedArm, together: Together, run: Run) -> Iterator[tuple[Lab, RunningDeployment]]:
    """One mesh for all checks that leave it as it is."""
    block = together(arm.driver, **arm.options)
    yield run(block.__aenter__())
    run(block.__aexit__(None, None, None))


def test_a_mesh_comes_up_from_nothing(
    arm: NamedArm, up: tuple[Lab, RunningDeployment], report: Report, record_property: Callable[[str, object], None]
) -> None:
    _, tunnel = up
    assert set(tunnel.address) == set(NODES)
    assert len(set(tunnel.address.values())) == len(NODES)
    assert set(tunnel.first_packet) == {f"{source}>{target}" for source, target in PAIRS}
    assert all(0 <= seconds < READY for seconds in tunnel.first_packet.values())
    record_property("first_packet", max(tunnel.first_packet.values()))
    times = ", ".join(f"{way} {seconds:.3f}" for way, seconds in sorted(tunnel.first_packet.items()))
    report(f"{arm.name}: first packet after s: {times}")


SIZES = pytest.mark.parametrize("size", ["small", "full"])


@SIZES
def test_every_node_answers_every_other(up: tuple[Lab, RunningDeployment], run: Run, size: str) -> None:
    """Three times; with -w ping goes on until it is answered, for a machine that stands still may lose one in a buffer."""
    for pair in PAIRS:
        done = run(pings(*up, *pair, size, "-w15"))
        assert done.code == 0, f"{pair}: {done.stdout}"


@pytest.mark.proof(CONTRACT)
@SIZES
def test_no_ping_is_lost(up: tuple[Lab, RunningDeployment], run: Run, size: str) -> None:
    for pair in PAIRS:
        done = run(pings(*up, *pair, size, "-W2"))
        assert done.code == 0, f"{pair}: {done.stdout}"
        assert " 0% packet loss" in done.stdout, f"{pair}: {done.stdout}"


async def pings(lab: Lab, tunnel: RunningDeployment, source: str, target: str, size: str, patience: str) -> Completed:
    """Three pings, small ones or as large as the interface's MTU."""
    length = 16 if size == "small" else await payload(lab, tunnel, source)
    # Without DF: whether a VPN splits a packet or reports its path MTU is its own choice.
    argv = ["ping", "-n", "-c3", "-i0.05", patience, "-M", "dont", "-s", str(length), str(tunnel.address[target])]
    return await lab.nodes[source].run(argv, timeout=30)


def test_tcp_passes_both_ways(up: tuple[Lab, RunningDeployment], run: Run) -> None:
    lab, tunnel = up

    for pair in PAIRS:
        result = run(wire.send(lab, tunnel, *pair, SENT))
        assert "error" not in result, f"{pair}: {result.get('error')}"
        assert result["end"]["sum_received"]["bytes"] >= ARRIVED


@pytest.mark.proof(CONTRACT)
def test_it_settles_in_the_time_that_its_driver_says(
    arm: NamedArm, up: tuple[Lab, RunningDeployment], run: Run, report: Report
) -> None:
    if not arm.driver.convergence_time:
        pytest.skip("it keeps the path that it begins with")
    began = time.monotonic()
    run(up[1].wait_converged(4 * arm.driver.convergence_time))
    report(f"{arm.name}: settled after {time.monotonic() - began:.1f} s")


def test_the_version_is_known(arm: NamedArm, report: Report) -> None:
    version = programs.part_version(arm.part)
    assert version != "unknown"
    assert any(character.isdigit() for character in version)
    report(f"{arm.name}: version {version}")


def test_the_feature_row_is_filled_in(arm: NamedArm) -> None:
    cells = next(row.cells for row in registry.matrix() if row.name == arm.driver.name)
    empty = [key for key in REQUIRED if key not in cells]
    assert not empty, f"not in matrix/{arm.driver.name}.toml, with a source and a date: {', '.join(empty)}"


def test_a_marker_sent_inside_is_seen_outside_only_without_encryption(
    arm: NamedArm, up: tuple[Lab, RunningDeployment], run: Run, tmp_path: Path
) -> None:
    lab, tunnel = up
    first, last, *markers = (secrets.token_hex(8).encode() for _ in range(5))  # 16 bytes each, printable for the shell
    capture = tmp_path / "wire.pcap"

    async def until_captured(sign: bytes) -> None:
        """Send a sign in the clear until the capture holds it: then it holds all that came before, too."""
        deadline = time.monotonic() + 30
        clear = ["ping", "-n", "-c1", "-W1", "-p", sign.hex(), str(lab.address(SPOKE))]
        while sign not in capture.read_bytes():
            assert time.monotonic() < deadline, f"tcpdump sees nothing: {(tmp_path / 'tcpdump.txt').read_text()}"
            await lab.nodes[HUB].run(clear)

    async def check() -> None:
        capture.touch()
        tcpdump = await lab.middle.spawn(wire.TCPDUMP, stdout=capture, stderr=tmp_path / "tcpdump.txt")
        await until_captured(first)
        for source, target in PAIRS:
            await send_markers(lab, tunnel, source, target, markers)
        await until_captured(last)
        await tcpdump.stop()

    run(check())
    seen = [marker in capture.read_bytes() for marker in markers]
    if tunnel.encrypted:
        assert not any(seen), "plaintext on the wire"
    else:
        assert all(seen), "the test cannot see plaintext"


def test_a_crashed_node_comes_back(arm: NamedArm, together: Together, run: Run, report: Report) -> None:
    its_vpn_stands_for_it_in_ci(arm)
    recovery = arm.driver.recovery_time + deployed(arm.name).recovery_time
    seconds = run(crash(arm, together, SPOKE, READY + arm.driver.startup_time + recovery))
    report(f"{arm.name}: answers everywhere {seconds:.2f} s after a node's crash")


@pytest.mark.slow
@pytest.mark.proof(CONTRACT)
def test_a_crashed_hub_comes_back(arm: NamedArm, together: Together, run: Run, report: Report) -> None:
    its_vpn_stands_for_it_in_ci(arm)
    try:
        seconds = run(crash(arm, together, HUB, CRASH_READY))
    except NotReady as lost:
        if arm.driver.known_restart_bug:
            pytest.xfail(f"{arm.driver.known_restart_bug}; here: {lost.message}")
        raise
    report(f"{arm.name}: answers everywhere {seconds:.2f} s after the first node's crash")


@pytest.mark.proof(CONTRACT)
def test_a_second_mesh_stands_beside_the_first_normalised(
    arm: NamedArm, up: tuple[Lab, RunningDeployment], together: Together, run: Run
) -> None:
    """Both at once; the second with the MTU and the queue of all normalised arms, and it carries packets of that size."""

    async def check() -> None:
        async with together(arm.driver, normalised=True, **arm.options) as (other_lab, other):
            for lab, tunnel in (up, (other_lab, other)):
                for source, target in PAIRS:
                    done = await lab.nodes[source].run(["ping", "-n", "-c1", "-W2", str(tunnel.address[target])])
                    assert done.code == 0, f"{source}>{target}: {done.stdout}"
            for source, target in PAIRS:
                assert await mtu(other_lab, other, source) == NORMAL["mtu"]
                queue = f"/sys/class/net/{other.interface[source]}/tx_queue_len"
                assert int(await other_lab.nodes[source].read(queue)) == NORMAL["txqueuelen"]
                length = await payload(other_lab, other, source)
                full = [
                    "ping",
                    "-n",
                    "-c3",
                    "-i0.05",
                    "-w15",
                    "-M",
                    "do",
                    "-s",
                    str(length),
                    str(other.address[target]),
                ]
                done = await other_lab.nodes[source].run(full, timeout=20)
                assert done.code == 0, f"{source}>{target}: {done.stdout}"
            for pair in ((HUB, SPOKE), (SPOKE, HUB)):
                result = await wire.send(other_lab, other, *pair, SENT)
                assert "error" not in result, f"{pair}: {result.get('error')}"
                assert result["end"]["sum_received"]["bytes"] >= ARRIVED

    run(check())


@pytest.mark.proof(CONTRACT)
@pytest.mark.parametrize("count", [2, 9])
def test_two_nodes_are_a_mesh_and_so_are_nine(
    arm: NamedArm, together: Together, run: Run, report: Report, count: int
) -> None:
    """With nine, all 72 paths at once: a VPN that finds its peers one by one needs longer."""
    nodes = tuple("abcdefghi"[:count])

    async def check() -> dict[str, float]:
        async with together(arm.driver, topology=switch(nodes), **arm.options) as (lab, tunnel):
            assert len(set(tunnel.address.values())) == count
            for source in nodes:
                ping = ["ping", "-n", "-c1", "-W2"]
                others = [str(tunnel.address[target]) for target in nodes if target != source]
                for done in await asyncio.gather(*(lab.nodes[source].run([*ping, other]) for other in others)):
                    assert done.code == 0, f"{source}: {done.stdout}"
            return dict(tunnel.first_packet)

    first = run(check())
    assert set(first) == {f"{source}>{target}" for source, target in permutations(nodes, 2)}
    report(f"{arm.name}: {count} nodes: first packets after {min(first.values()):.3f} to {max(first.values()):.3f} s")


def test_nothing_is_left_behind(arm: NamedArm, together: Together, run: Run, its_own: set[str]) -> None:
    async def check(held: ExitStack) -> tuple[dict[str, set[str]], set[str]]:
        async with together(arm.driver, **arm.options) as (lab, tunnel):
            kinds = ("net", "pid", "mnt")
            inside = {kind: {namespace(node.pid, kind) for node in lab.nodes.values()} for kind in kinds}
            assert all(len(found) == len(NODES) for found in inside.values()), "nodes share a namespace"
            assert members(inside), "the check below finds nothing even while the lab is there"
            for path in (f"/proc/{node.pid}/ns/{kind}" for node in lab.nodes.values() for kind in kinds):
                held.callback(os.close, os.open(path, os.O_RDONLY | os.O_CLOEXEC))
            return inside, set(tunnel.interface.values()) - {"eth0"}

    # While a namespace is held, the kernel gives its number to no other: another lab beside this one may be made now.
    with ExitStack() as held:
        inside, interfaces = run(check(held))
        assert members(inside) == []
    left = on_the_machine() - its_own
    assert not {each for each in left if each in interfaces or each.startswith("/")}
    assert not Path(STAGING).exists()


def test_the_mtu_of_wireguard_go_can_be_chosen(together: Together, run: Run) -> None:
    installed(registry.vpn_part(WIREGUARD_GO))

    async def check() -> int:
        async with together(WIREGUARD_GO, mtu=1380) as (lab, tunnel):
            return await mtu(lab, tunnel, HUB)

    assert run(check()) == 1380


def its_vpn_stands_for_it_in_ci(arm: NamedArm) -> None:
    """Skip in CI what waits for up to two minutes, for arms that run the same programs with another setting."""
    usual = arm.driver.build(arm.driver.options())
    if os.environ.get("CI") == "true" and arm.options and arm.driver.build(arm.driver.options(**arm.options)) == usual:
        pytest.skip(f"in CI {arm.driver.name} stands for it; `tunnelmark packages verify` lets {arm.name} crash, too")


async def mtu(lab: Lab, tunnel: RunningDeployment, node: str) -> int:
    return int(await lab.nodes[node].read(f"/sys/class/net/{tunnel.interface[node]}/mtu"))


async def payload(lab: Lab, tunnel: RunningDeployment, node: str) -> int:
    """Bytes of ping data that fill the overlay interface's MTU: less the IP and the ICMP header."""
    return await mtu(lab, tunnel, node) - (20 if tunnel.address[node].version == 4 else 40) - 8


async def send_markers(lab: Lab, tunnel: RunningDeployment, source: str, target: str, markers: Sequence[bytes]) -> None:
    """One marker inside of a ping, one of UDP and one of TCP, from one node to another over the overlay."""
    address = str(tunnel.address[target])
    ping, udp, tcp = markers
    done = await lab.nodes[source].run(["ping", "-n", "-c1", "-w10", "-p", ping.hex(), address])
    assert done.code == 0, done.stdout
    listener = await lab.nodes[target].spawn(["iperf3", "-s"])
    await lab.nodes[target].until({"kind": "tcp-port", "port": 5201}, 5)
    # bash, because Python may stand where a node does not see it.
    for kind, marker in (("udp", udp), ("tcp", tcp)):
        script = f"printf %s {marker.decode()} > /dev/{kind}/{address}/5201"
        done = await lab.nodes[source].run(["bash", "-c", script])
        assert done.code == 0, done.stderr
    await listener.stop()


async def crash(arm: NamedArm, together: Together, node: str, timeout: float) -> float:
    """Kill and start again what runs on a node; seconds until everybody answers everybody."""
    async with together(arm.driver, **arm.options) as (lab, tunnel):
        await asyncio.sleep(A_WHILE)
        daemons = processes(lab, node)
        begun = time.monotonic()
        await tunnel.restart(node)
        await tunnel.answer(timeout)
        seconds = time.monotonic() - begun
        assert not daemons & processes(lab, node), "some of what ran before still runs: it was not the crash of a node"
        return seconds


def processes(lab: Lab, node: str) -> set[str]:
    """The processes of a node but the lab's own first one, by their numbers on this machine."""
    first = lab.nodes[node].pid
    return set(members({"pid": {namespace(first, "pid")}})) - {str(first)}


def namespace(pid: int | str, kind: str) -> str:
    return os.readlink(f"/proc/{pid}/ns/{kind}")


def members(namespaces: dict[str, set[str]]) -> list[str]:
    """Every process of the machine that is in one of these namespaces."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if any(namespace(pid, kind) in known for kind, known in namespaces.items()):
                found.append(pid)
        except OSError:  # it has just ended
            continue
    return found
