"""Nodes on other hosts: real OpenSSH servers in networks of their own, joined by a switch; what a node does there, and what happens when a host is lost."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.command import command as tunnelmark
from support.command import environment as with_code
from support.command import finished, small_study
from support.host_network import COMMAND, HostNetwork, host_network, is_root_with_server, left, rests
from tunnelmark.cli import lab_states
from tunnelmark.errors import LabError, NodeGone, TunnelmarkError, UsageError
from tunnelmark.lab.labs import Lab
from tunnelmark.lab.ssh.ssh_labs import SshLabs
from tunnelmark.plan.files import Files
from tunnelmark.plan.load import load_profile, load_topology

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(not is_root_with_server(), reason="needs sshd, and root to start it"),
]
FILES = Files.standard()
PAIR, GIGABIT = load_topology("pair", FILES), load_profile("gigabit", FILES)


@pytest.fixture
def network(tmp_path: Path) -> Iterator[HostNetwork]:
    with host_network(tmp_path, [["node"], ["node"], ["middle"]]) as made:
        yield made


async def talk(lab: Lab) -> None:
    """Programs run on nodes of other hosts as they do on this machine."""
    a, b = lab.nodes["a"], lab.nodes["b"]
    assert (await a.run(["ping", "-c", "3", "-i", "0.1", "-w", "20", str(lab.address("b"))], timeout=60)).code == 0
    done = await b.run(["sh", "-c", "cat; echo wrong >&2; exit 7"], stdin="x" * 300_000)
    assert (done.code, done.stdout, done.stderr) == (7, "x" * 300_000, "wrong\n")
    await b.write("/run/some/file", "content")
    assert await b.read("/run/some/file") == "content"
    sleeping = await a.spawn(["sleep", "60"])
    began = time.monotonic()
    ended = await sleeping.stop()
    assert ended.code == -15 and abs(ended.time - began) < 5, "a host's times are said on the clock of this machine"
    assert (await lab.link_counters())[0]["b"]["packets"] >= 3
    with pytest.raises(LabError, match="runs on host h1"):
        assert a.pid


def test_nodes_on_hosts_are_nodes_and_leave_nothing(network: HostNetwork):
    async def go() -> list[str]:
        async with SshLabs(network.inventory) as labs:
            async with labs.lab(PAIR, GIGABIT) as lab:
                assert lab.placement.nodes == {"a": (), "b": ()}
                await talk(lab)
            async with labs.lab(PAIR, load_profile("wifi-good", FILES)) as lab:
                await talk(lab)
                (report,) = await lab.link_reports()
                assert sum(way["packets"] for way in report["directions"]) >= 6
            return [folder for one in labs.abouts().values() for folder in one["record"]["folders"]]

    folders = asyncio.run(go())
    assert folders and not [folder for folder in folders if Path(folder).exists()]
    assert rests(network) == []


def test_a_host_may_have_several_nodes(tmp_path: Path):
    async def go(network: HostNetwork) -> None:
        async with SshLabs(network.inventory) as labs, labs.lab(load_topology("lan-3", FILES), GIGABIT) as lab:
            for source in lab.nodes:
                for target in {*lab.nodes} - {source}:
                    ping = ["ping", "-c", "1", "-w", "20", str(lab.address(target))]
                    done = await lab.nodes[source].run(ping, timeout=60)
                    assert done.code == 0, (source, target)

    with host_network(tmp_path, [["node"], ["node"], ["middle"]], nodes=2) as network:
        asyncio.run(go(network))
        assert rests(network) == []


def test_a_host_that_is_lost_is_named_and_comes_back(network: HostNetwork):
    async def go() -> None:
        async with SshLabs(network.inventory) as labs:
            lab = await labs.up(PAIR, GIGABIT)
            sleeping = await lab.nodes["b"].spawn(["sleep", "60"])
            network.hosts[1].cut()
            with pytest.raises(NodeGone):
                await sleeping.wait()
            why = await labs.check()
            assert why is not None and "host h2" in why
            assert await lab.lost() == why, "what was measured on it is void"
            await lab.down()
            assert await labs.check() is None, "it is connected again"
            async with labs.lab(PAIR, GIGABIT) as again:
                await talk(again)

    asyncio.run(go())
    assert rests(network) == []


def test_hosts_end_everything_when_the_command_is_killed(network: HostNetwork, tmp_path: Path):
    study = small_study(tmp_path)
    argv = tunnelmark("run", study, "--backend", "ssh", "--inventory", network.file, "--out", tmp_path / "results")
    with subprocess.Popen(
        argv, env=with_code(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        until = time.monotonic() + 120
        while not (seen := has_lab(network)) and time.monotonic() < until and process.poll() is None:
            time.sleep(0.1)
        process.kill()
        said, _ = process.communicate()
    assert seen, said
    assert rests(network) == []


def has_lab(network: HostNetwork) -> bool:
    """Whether a lab of these hosts is there; other tests have theirs."""
    return any("lab.server" in each for host in network.hosts for each in left(host))


def test_a_study_over_hosts_says_what_they_are(network: HostNetwork, tmp_path: Path):
    study, results = small_study(tmp_path, arms=["wireguard-go"]), tmp_path / "results"
    argv = tunnelmark("run", study, "--backend", "ssh", "--inventory", network.file, "--out", results)
    done = finished(argv, with_code(), within=240)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    record = json.loads((results / "environment.json").read_text())
    assert set(record["hosts"]) == {"h1", "h2", "h3"} and record["lab"]["backend"] == "ssh"
    assert record["lab"]["clocks"]["h1"]["error_us"] > 0
    attempts = [json.loads(line) for line in (results / "journal.jsonl").read_text().splitlines()]
    trials = [each["trial"] for each in attempts if "trial" in each]
    assert {each["arm"] for each in trials if each["outcome"] == "ok"} == {"direct", "direct-again", "wireguard-go"}
    assert "An interval here covers this run, on these hosts" in done.stdout
    finished(tunnelmark("report", results, "--export", "paper", "--to", tmp_path / "paper"), with_code(), within=120)
    methods = (tmp_path / "paper" / "methods.tex").read_text()
    assert "Nodes ran on hosts of their own, joined by VXLANs: h1 (node:" in methods
    again = finished(tunnelmark("run", "--resume", results), with_code(), within=240)
    assert again.returncode == done.returncode, again.stdout + again.stderr
    assert rests(network) == []


def test_a_trial_whose_host_is_lost_is_void_and_measured_again(network: HostNetwork, tmp_path: Path):
    study, results = small_study(tmp_path), tmp_path / "results"
    study.write_text(study.read_text().replace('duration = "1 s"', 'duration = "4 s"'))
    argv = tunnelmark("run", study, "--backend", "ssh", "--inventory", network.file, "--out", results)
    with subprocess.Popen(argv, env=with_code(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        raw, until = results / "raw", time.monotonic() + 120
        while not list(raw.glob("*/*client*")) and time.monotonic() < until and process.poll() is None:
            time.sleep(0.1)
        network.hosts[1].cut()
        said, complaints = process.communicate(timeout=240)
    attempts = [json.loads(line) for line in (results / "journal.jsonl").read_text().splitlines()]
    trials = [each["trial"] for each in attempts if "trial" in each]
    (void,) = [each for each in trials if "the connection to host h2 ended" in (each["message"] or "")] or [{}]
    assert void.get("outcome") == "void", said + complaints
    assert void["trial"] in {each["trial"] for each in trials if each["outcome"] == "ok"}, "it was measured again"
    assert rests(network) == []


def test_a_lab_by_hand_is_on_the_hosts(network: HostNetwork):
    def lab(verb: str, *words: str | Path) -> subprocess.CompletedProcess[str]:
        return finished(tunnelmark("lab", verb, "--name", "hosts-lab", *words), with_code(), within=240)

    up = lab("up", "pair", "--vpn", "wireguard-go", "--backend", "ssh", "--inventory", network.file)
    try:
        assert up.returncode == 0, up.stderr
        assert "middle   all links run through it  on h3" in up.stdout
        states = json.loads(finished(tunnelmark("lab", "list", "--json"), with_code(), within=60).stdout)
        (nodes,) = [each["nodes"] for each in states if each["name"] == "hosts-lab"]
        assert [nodes[name]["host"] for name in ("a", "b", "middle")] == ["h1", "h2", "h3"]
        for address in (nodes["b"]["underlay"], nodes["b"]["overlay"]):
            ping = lab("exec", "a", "--", "ping", "-c", "3", "-i", "0.1", "-w", "20", address)
            assert ping.returncode == 0 and "3 received" in ping.stdout, ping.stdout + ping.stderr
        assert nodes["b"]["overlay"] in lab("exec", "b", "ip", "-o", "address").stdout, "it runs on the right node"
        wrong = lab("exec", "b", "--", "sh", "-c", "echo said; echo wrong >&2; exit 7")
        assert (wrong.returncode, wrong.stdout, wrong.stderr) == (7, "said\n", "wrong\n")
        assert lab("logs", "a").returncode == 0
        held = refused(network)
        assert "another command measures there" in held.message
    finally:
        down = lab("down")
    assert down.returncode == 0, down.stderr
    assert rests(network) == []
    assert not [path for path in lab_states.STATES.iterdir() if path.name.startswith("hosts-lab.")]


def refused(network: HostNetwork) -> TunnelmarkError:
    async def go() -> None:
        async with SshLabs(network.inventory) as labs, labs.lab(PAIR, GIGABIT):
            pass

    with pytest.raises((LabError, UsageError)) as error:
        asyncio.run(go())
    return error.value


def test_a_changed_host_key_is_refused_in_the_words_of_ssh(network: HostNetwork):
    network.hosts[1].change_key()
    error = refused(network)
    assert "host h2" in error.message and "Host key verification failed" in error.message
    assert rests(network) == []


def test_packets_that_would_be_cut_into_fragments_are_an_error(tmp_path: Path):
    with host_network(tmp_path, [["node"], ["node"]], mtu=1500) as network:
        error = refused(network)
        assert "eth0 has an MTU of 1500, too little for packets of 1500 bytes in vxlan" in error.message
        assert rests(network) == []


def test_another_version_on_a_host_is_an_error(tmp_path: Path):
    words = shlex.split(COMMAND)
    words[-1] = "import tunnelmark; tunnelmark.__version__ = '0.0.1'; " + words[-1]
    with host_network(tmp_path, [["node"], ["node"]], command=shlex.join(words)) as network:
        assert "host h1 has tunnelmark 0.0.1" in refused(network).message
        assert rests(network) == []


def test_a_program_that_is_not_there_is_an_error_with_the_hosts_own_words(tmp_path: Path):
    with host_network(tmp_path, [["node"], ["node"]], command="no-such-program") as network:
        error = refused(network)
        assert "no-such-program" in error.message and "not found" in error.message and "--version" in error.hint


def test_too_few_hosts_are_an_error(tmp_path: Path):
    with host_network(tmp_path, [["node"], ["middle"]]) as network:
        assert "2 nodes, and the hosts of the inventory may have 1" in refused(network).message


def test_a_node_may_be_on_the_middle_host(tmp_path: Path):
    """Two hosts suffice: the first has the middle node, too, and its own node is joined by a veth pair."""

    async def go(network: HostNetwork) -> None:
        async with SshLabs(network.inventory) as labs, labs.lab(PAIR, GIGABIT) as lab:
            await talk(lab)

    with host_network(tmp_path, [["node"], ["node"]]) as network:
        asyncio.run(go(network))
        assert rests(network) == []


def test_an_inventory_and_its_backend_go_together(tmp_path: Path):
    study = small_study(tmp_path)
    alone = finished(tunnelmark("run", study, "--backend", "ssh"), os.environ | with_code(), within=60)
    assert alone.returncode == 2 and "--inventory FILE" in alone.stderr


@pytest.mark.proof("five VPNs keep the contract on nodes of other hosts")
def test_vpns_keep_the_contract_on_other_hosts(tmp_path: Path):
    vpns = ("tinc", "nebula", "wireguard-go", "openvpn", "yggdrasil")
    with host_network(tmp_path, [["node"], ["node"], ["node"], ["middle"]]) as network:
        argv = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-n",
            "0",
            "tests/contract/test_vpns.py",
            "--inventory",
            network.file,
        ]
        argv += [word for vpn in vpns for word in ("--arm", vpn)]
        done = finished([str(word) for word in argv], os.environ, within=900)
        assert done.returncode == 0, done.stdout[-5000:]
        assert rests(network) == []


@pytest.mark.proof("the quick study runs over nodes of other hosts")
def test_the_quick_study_runs_over_hosts(network: HostNetwork, tmp_path: Path):
    results = tmp_path / "results"
    argv = tunnelmark(
        "run", "quick", "--blocks", "1", "--backend", "ssh", "--inventory", network.file, "--out", results
    )
    done = finished(argv, with_code(), within=900)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    plan = json.loads((results / "plan.json").read_text())
    attempts = [json.loads(line) for line in (results / "journal.jsonl").read_text().splitlines()]
    trials = [each["trial"] for each in attempts if "trial" in each]
    assert {each["trial"] for each in trials if each["outcome"] == "ok"} == set(plan["trials"])
    assert rests(network) == []
