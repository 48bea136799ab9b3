"""Nodes are hosts as far as a program can tell, and what happens on one stays on it."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from support.host import PATIENCE, Host, left_within
from support.labs import PAIR, TRIO, UNSHAPED, in_lab
from tunnelmark.errors import LabError, NodeGone
from tunnelmark.lab.client import LabClient
from tunnelmark.lab.labs import Lab

pytestmark = pytest.mark.root


async def shell(lab: Lab, node: str, script: str) -> str:
    done = await lab.nodes[node].run(["sh", "-c", script])
    assert done.code == 0, done.stderr
    return done.stdout.strip()


def test_each_has_its_own_name_processes_and_folders():
    async def body(lab: Lab) -> None:
        assert await shell(lab, "a", "hostname") == "a"
        assert await shell(lab, "b", "hostname") == "b"
        assert len((await shell(lab, "a", "ls -d /proc/[0-9]*")).split()) <= 3  # the agent, sh, ls
        await shell(lab, "a", "touch /run/mine /tmp/mine /var/run/mine")
        assert "mine" not in await shell(lab, "b", "ls /run /tmp /var/run")

    in_lab(body)
    assert not Path("/run/mine").exists()


def test_each_sees_only_its_own_interfaces():
    async def body(lab: Lab) -> None:
        assert set((await shell(lab, "a", "ls /sys/class/net")).split()) == {"lo", "eth0"}
        assert await shell(lab, "a", "ip -4 -o addr show eth0 | grep -o 10.50.0.1/24") == "10.50.0.1/24"

    in_lab(body)


def test_what_a_daemon_writes_to_etc_or_var_lib_does_not_reach_the_host():
    before = Path("/etc/hosts").read_text()

    async def body(lab: Lab) -> None:
        await shell(lab, "a", "echo 10.60.0.9 lab >> /etc/hosts; mkdir /var/lib/tunnelmark-test")
        assert "10.60.0.9" in await shell(lab, "a", "cat /etc/hosts")
        assert "10.60.0.9" not in await shell(lab, "b", "cat /etc/hosts")

    in_lab(body)
    assert Path("/etc/hosts").read_text() == before
    assert not Path("/var/lib/tunnelmark-test").exists()


def test_a_node_knows_no_name_server_whatever_the_host_s_is():
    """A daemon that asks for a name would wait for the silence of a server out of reach, for as long as the host's settings say."""
    before = Path("/etc/resolv.conf").read_text()

    async def body(lab: Lab) -> None:
        assert await shell(lab, "a", "grep -c ^nameserver /etc/resolv.conf") == "1"
        assert await shell(lab, "a", "grep ^nameserver /etc/resolv.conf") == "nameserver 127.0.0.1"

    in_lab(body)
    assert Path("/etc/resolv.conf").read_text() == before


def test_settings_of_a_node_do_not_reach_the_host():
    setting = Path("/proc/sys/net/ipv4/ip_forward")
    before = setting.read_text()

    async def body(lab: Lab) -> None:
        other = "1" if before.strip() == "0" else "0"
        await shell(lab, "a", f"echo {other} > /proc/sys/net/ipv4/ip_forward")
        assert await shell(lab, "a", "cat /proc/sys/net/ipv4/ip_forward") == other

    in_lab(body)
    assert setting.read_text() == before


def test_all_reach_each_other_and_nothing_else():
    async def body(lab: Lab) -> None:
        for target in ("b", "c"):  # until one is answered: the kernel may take a second until a new interface sends
            await shell(lab, "a", f"ping -n -q -c1 -w20 {lab.address(target)}")
        done = await lab.nodes["a"].run(["ping", "-n", "-q", "-c1", "-W1", "192.0.2.1"])
        assert done.code != 0

    in_lab(body, TRIO)


def test_a_program_that_is_not_there_is_named():
    async def body(lab: Lab) -> None:
        with pytest.raises(LabError, match="no-such-program"):
            await lab.nodes["a"].spawn(["no-such-program"])

    in_lab(body)


def test_how_a_process_ended_is_known_with_its_cpu_time():
    async def body(lab: Lab) -> None:
        busy = await lab.nodes["a"].spawn(["sh", "-c", "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; exit 3"])
        end = await busy.wait()
        assert end.code == 3
        assert end.user > 0.01
        sleeper = await lab.nodes["a"].spawn(["sleep", "60"])
        assert (await sleeper.stop()).code == -signal.SIGTERM

    in_lab(body)


def test_a_command_that_hangs_is_ended_in_time():
    async def body(lab: Lab) -> None:
        begun = time.monotonic()
        with pytest.raises(LabError, match="did not end within"):
            await lab.nodes["a"].run(["sleep", "60"], timeout=0.2)
        assert time.monotonic() - begun < 5

    in_lab(body)


def test_conditions_wait_for_the_fact():
    async def body(lab: Lab) -> None:
        node = lab.nodes["a"]
        with pytest.raises(LabError, match="timed out"):
            await node.until({"kind": "tcp-port", "port": 5201}, 0.05)
        server = await node.spawn(["iperf3", "-s", "-1"])
        await node.until({"kind": "tcp-port", "port": 5201}, 5)
        await server.stop()
        waiting = asyncio.ensure_future(node.until({"kind": "interface", "name": "tun7"}, 5))
        await shell(lab, "a", "ip tuntap add dev tun7 mode tun")
        await waiting

    in_lab(body)


def test_orphans_of_a_daemon_are_reaped_and_end_with_their_node():
    before = Host.now()

    async def body(lab: Lab) -> None:
        await shell(lab, "a", "(setsid sleep 300 &) ; (setsid true &)")
        async with asyncio.timeout(PATIENCE):
            while "defunct" in (shown := await shell(lab, "a", "ps axo args=")) or "true" in shown.split():
                await asyncio.sleep(0.02)
        assert "sleep 300" in shown

    in_lab(body)
    assert left_within(before) == {}


def test_two_labs_stand_side_by_side_with_the_same_addresses():
    async def run() -> None:
        async with LabClient() as labs, labs.lab(PAIR, UNSHAPED) as one, labs.lab(PAIR, UNSHAPED) as other:
            assert one.address("a") == other.address("a")
            await shell(one, "a", "ip link add only-here type bridge")
            assert "only-here" not in await shell(other, "a", "ls /sys/class/net")
            await shell(one, "a", f"ping -n -q -c1 -w20 {one.address('b')}")
            await shell(other, "a", f"ping -n -q -c1 -w20 {other.address('b')}")

    asyncio.run(run())


def test_a_lab_leaves_nothing_behind():
    before = Host.now()
    in_lab(lambda lab: shell(lab, "a", "true"), TRIO)
    assert left_within(before) == {}


def test_a_node_that_ended_says_so():
    async def body(lab: Lab) -> None:
        process = await lab.nodes["a"].spawn(["sleep", "60"])
        lab.nodes["a"].close()
        with pytest.raises(NodeGone):
            await process.wait()

    in_lab(body)


def test_nodes_have_the_kernel_settings_that_were_asked_for():
    async def body(lab: Lab) -> list[list[str]]:
        read = ["cat", "/proc/sys/net/ipv4/tcp_reordering", "/proc/sys/net/ipv4/tcp_recovery"]
        return [(await node.run(read)).stdout.split() for node in lab.nodes.values()]

    asked = {"net.ipv4.tcp_reordering": "127", "net.ipv4.tcp_recovery": "0"}
    assert in_lab(body, sysctls=asked) == [["127", "0"], ["127", "0"]]


def test_a_kernel_setting_that_no_node_can_have_is_an_error():
    async def body(lab: Lab) -> None:
        raise AssertionError("there should be no lab")

    with pytest.raises(LabError, match=r"refuses node a net\.ipv4\.no_such_thing: No such file"):
        in_lab(body, sysctls={"net.ipv4.no_such_thing": "1"})


def test_what_else_users_of_the_machine_run_is_not_taken_for_a_lab_s():
    before = Host.now()
    argv = ["unshare", "--net", "sh", "-c", "echo there; exec sleep 60"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("TUNNELMARK")}
    for environ, ours in ((environment, False), (None, True)):
        with subprocess.Popen(argv, env=environ, stdout=subprocess.PIPE) as process:
            try:
                assert process.stdout is not None and process.stdout.readline() == b"there\n"
                if ours:
                    assert {"processes", "networks"} <= {*before.left_by(Host.now())}
                else:  # what others' commands have just ended may be there for a moment
                    assert left_within(before) == {}
            finally:
                process.kill()
