"""Workers on hosts that OpenSSH reaches: real servers on the loopback address, real connections; what blocks measure is made up."""

from __future__ import annotations

import asyncio
import json
import os
import queue
import subprocess
import sys
import time
from pathlib import Path

import pytest

from support import virtual_blocks
from support.cluster_nodes import TESTS
from support.command import command, environment
from support.sshd import SERVER, SshHost
from tunnelmark.cluster import certificates, dispatch, local_cluster, ssh_hosts
from tunnelmark.cluster.dispatch import Watcher, Way
from tunnelmark.cluster.ssh_hosts import Host
from tunnelmark.cluster.tasks import BlockDone, BlockTask, WorkerFacts
from tunnelmark.errors import UsageError

KEYS = {"ca": certificates.AUTHORITY, "certificate": certificates.CERTIFICATE, "key": certificates.KEY}
ASKS = BlockTask("study", {}, {})
needs_server = pytest.mark.skipif(SERVER is None or os.geteuid() != 0, reason="needs sshd, and root to start it")

COMMAND = (
    "env",
    f"PYTHONPATH={TESTS}{os.pathsep}{environment()['PYTHONPATH']}",
    sys.executable,
    "-c",
    "from tunnelmark.cli import main; raise SystemExit(main())",
)


@needs_server
def test_hosts_share_the_blocks_also_when_one_is_restarted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first host measures when both are there, and is cut with a block; the second measures when the first is there again."""
    monkeypatch.setattr(ssh_hosts, "_RETRY", 0.5)
    until = {"root@one": tmp_path / "both", "root@two": tmp_path / "again"}
    done: list[tuple[int, str]] = []
    taken: list[str] = []
    lacked: list[tuple[str, str]] = []

    def takes(found: WorkerFacts) -> None:
        taken.append(found.worker)
        if set(taken) == set(until):
            until["root@one"].touch()
        if taken.count("root@one") == 2:
            until["root@two"].touch()

    def note(block: BlockDone) -> None:
        done.append((block.number, block.worker))
        if len(done) == 1:
            one.cut()

    settings = {"until": {name: str(file) for name, file in until.items()}}
    tasks = [BlockTask("study", {}, settings, number) for number in range(1, 7)]
    with SshHost(tmp_path / "one", "one") as one, SshHost(tmp_path / "two", "two") as two:
        hosts = tuple(Host(tuple(server.options), COMMAND) for server in (one, two))
        with (
            local_cluster.here(0) as (address, security),
            ssh_hosts.workers(hosts, address, security, lambda *why: lacked.append(why)),
        ):
            way = Way(address, security, measure=virtual_blocks.held, facts=virtual_blocks.facts, again=0.5)
            asyncio.run(dispatch.spread(tasks, ASKS, way, Watcher(note, lambda *_: "", takes)))
    assert sorted(number for number, _ in done) == list(range(1, 7))
    workers = [worker for _, worker in done]
    assert workers[0] == "root@one"
    assert set(workers[1:]) == {"root@one", "root@two"}
    assert {name for name, _ in lacked} == {"root@one"}, "a host that was restarted is named"


@needs_server
def test_a_host_with_another_key_than_the_known_one_gets_nothing_and_is_named(tmp_path: Path) -> None:
    with SshHost(tmp_path / "changed", "changed") as changed:
        changed.change_key()
        said: queue.Queue[tuple[str, str]] = queue.Queue()
        hosts = (Host(tuple(changed.options), COMMAND),)
        with (
            local_cluster.here(0) as (address, security),
            ssh_hosts.workers(hosts, address, security, lambda *why: said.put(why)),
        ):
            assert said.get(timeout=60) == ("root@changed", "Host key verification failed.")
            way = Way(address, security, measure=virtual_blocks.measured, facts=virtual_blocks.facts, patience=3)
            with pytest.raises(Exception, match="no worker that is fit"):
                asyncio.run(
                    dispatch.spread([BlockTask("s", {}, {}, 1)], ASKS, way, Watcher(lambda _: None, lambda *_: ""))
                )


def test_a_file_of_hosts_has_what_ssh_takes_and_how_tunnelmark_is_started_there(tmp_path: Path) -> None:
    file = tmp_path / "hosts"
    file.write_text("# ours\nlab1\n-p 2222 -J gate me@lab2 -- sudo -n /opt/tm/bin/tunnelmark   # the old one\n\n")
    assert ssh_hosts.read(file) == (
        Host(("lab1",)),
        Host(("-p", "2222", "-J", "gate", "me@lab2"), ("sudo", "-n", "/opt/tm/bin/tunnelmark")),
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "names no host"),
        ("-- tunnelmark\n", "line 1 names no host"),
        ("a\n-p\n", "line 2 names no host"),
        ("a\nb\na\n", "names a twice"),
        ("'a\n", "line 1: No closing quotation"),
    ],
)
def test_what_names_no_host_is_refused_with_its_line(text: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / "hosts"
    file.write_text(text)
    with pytest.raises(UsageError, match=said) as caught:
        ssh_hosts.read(file)
    assert caught.value.hint


def test_why_a_host_is_not_there_is_the_last_error_with_its_hint() -> None:
    assert ssh_hosts.reason(["a banner", "error: no Dask", "hint: pip install it", "Connection closed."]) == (
        "no Dask (pip install it)"
    )
    assert ssh_hosts.reason(["error: the first", "hint: of the first", "error: the last"]) == "the last"
    assert ssh_hosts.reason(["ssh: no route"]) == "ssh: no route"
    assert ssh_hosts.reason([]) == ""


def test_what_keeps_a_worker_from_joining_is_said_while_its_connection_lasts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificates.make(tmp_path / "keys")
    ssh = tmp_path / "ssh"
    ssh.write_text("#!/bin/sh\necho 'a banner' >&2\necho 'lacks: no answer' >&2\nexec sleep 600\n")
    ssh.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    said: queue.Queue[tuple[str, str]] = queue.Queue()
    security = certificates.security(tmp_path / "keys")
    with ssh_hosts.workers((Host(("lab1",)),), "tls://127.0.0.1:1", security, lambda *why: said.put(why)):
        assert said.get(timeout=60) == ("lab1", "no answer")


def test_a_worker_over_a_connection_says_why_it_cannot_join_and_leaves_nothing(tmp_path: Path) -> None:
    certificates.make(tmp_path / "keys")
    pem = {name: (tmp_path / "keys" / file).read_text() for name, file in KEYS.items()}
    with subprocess.Popen(
        command("cluster", "worker", "tcp://127.0.0.1:9", "--keys-from-input"),
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment() | {"TMPDIR": str(tmp_path)},
    ) as worker:
        assert worker.stdin is not None and worker.stderr is not None
        worker.stdin.write(json.dumps(pem) + "\n")
        worker.stdin.flush()
        said = worker.stderr.readline()
        assert said.startswith("lacks: the scheduler at tcp://127.0.0.1:9 does not take it (encryption required"), said
        assert [*tmp_path.glob("tunnelmark-worker-*")]
        worker.stdin.close()
    deadline = time.monotonic() + 60
    while [*tmp_path.glob("tunnelmark-worker-*")]:
        assert time.monotonic() < deadline, "its folder is still there"
        time.sleep(0.05)
