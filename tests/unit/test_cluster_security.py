"""Who may join a cluster: whoever has its keys, and nobody else; without keys nothing listens but on the loopback address."""

from __future__ import annotations

import asyncio
import socket
import ssl
import stat
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from cryptography import x509

from support import virtual_blocks
from support.cluster_nodes import ClusterNodes
from tunnelmark.cli.cluster_command import cluster as command
from tunnelmark.cli.cluster_options import BlockTarget, where
from tunnelmark.cluster import certificates, dispatch, nodes
from tunnelmark.cluster.dispatch import Watcher, Way
from tunnelmark.cluster.nodes import is_loopback, own_address
from tunnelmark.cluster.tasks import BlockDone, BlockTask
from tunnelmark.errors import LabError, StoreError, UsageError

ASKS, TASKS = BlockTask("study", {}, {}), [BlockTask("study", {}, {}, number) for number in (1, 2)]


def test_who_has_the_keys_measures_and_a_stranger_gets_nothing(tmp_path: Path) -> None:
    ours, strange = tmp_path / "ours", tmp_path / "strange"
    certificates.make(ours)
    certificates.make(strange)  # as good as ours, by another authority
    with ClusterNodes(ours) as ours_up:
        ours_up.add()
        way = Way(ours_up.address, None, virtual_blocks.measured, virtual_blocks.facts, patience=60)
        done: list[BlockDone] = []
        watcher = Watcher(done.append, lambda *_: "")
        asyncio.run(dispatch.spread(TASKS, ASKS, replace(way, security=certificates.security(ours)), watcher))
        assert sorted(one.number for one in done) == [1, 2]
        stranger = replace(way, security=certificates.security(strange), patience=1.0)
        with pytest.raises(LabError, match="does not answer"):
            asyncio.run(dispatch.spread(TASKS, ASKS, stranger, watcher))
        without = replace(way, address=ours_up.address.replace("tls", "tcp"), patience=1.0)
        with pytest.raises(LabError, match="does not answer"):
            asyncio.run(dispatch.spread(TASKS, ASKS, without, watcher))
        assert len(done) == 2
        assert refused_without_certificate(ours_up.port)


def refused_without_certificate(port: int) -> bool:
    """Whether a client that speaks TLS and shows no certificate is cut off before it has said anything."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        with socket.create_connection(("127.0.0.1", port)) as plain, context.wrap_socket(plain) as tried:
            return tried.recv(1) == b""
    except (ssl.SSLError, ConnectionError):
        return True


def test_keys_are_read_by_their_owner_alone_end_and_sign_nothing_else(tmp_path: Path) -> None:
    made = tmp_path / "keys"
    certificates.make(made, days=2)
    assert stat.S_IMODE(made.stat().st_mode) == 0o700
    assert {file.name: stat.S_IMODE(file.stat().st_mode) for file in made.iterdir()} == {
        certificates.AUTHORITY: 0o600,
        certificates.CERTIFICATE: 0o600,
        certificates.KEY: 0o600,
    }
    found = x509.load_pem_x509_certificate((made / certificates.CERTIFICATE).read_bytes())
    assert (found.not_valid_after_utc - found.not_valid_before_utc).days == 2
    assert not found.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    with pytest.raises(StoreError, match="cannot be made"):
        certificates.make(made)


def test_a_folder_that_lacks_a_key_is_named_with_what_makes_it(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"has no ca\.pem") as caught:
        certificates.security(tmp_path)
    assert "cluster certificates" in caught.value.hint


@pytest.mark.parametrize(
    "line",
    [
        ("scheduler", "--listen", "0.0.0.0:0"),
        ("scheduler", "--listen", "192.0.2.1:0"),
        ("worker", "tcp://127.0.0.1:1", "--listen", "0.0.0.0"),
        ("worker", "tcp://192.0.2.1:1"),
        ("worker", "192.0.2.1:1", "--listen", "127.0.0.1"),
    ],
)
def test_without_keys_nothing_listens_where_others_reach_it(line: tuple[str, ...]) -> None:
    with pytest.raises(UsageError, match="could run programs on this machine") as caught:
        CliRunner().invoke(command, line, catch_exceptions=False)
    assert "--tls" in caught.value.hint


@pytest.mark.parametrize(
    "line",
    [
        ("scheduler", "--listen", "127.0.0.1:abc"),
        ("scheduler", "--listen", "127.0.0.1"),
        ("worker", "tcp://127.0.0.1:1", "--listen", "127.0.0.1:abc"),
        ("worker", "tcp://127.0.0.1:abc"),
        ("worker", "tcp://"),
    ],
)
def test_what_is_not_an_address_is_said_with_one_that_is(line: tuple[str, ...]) -> None:
    with pytest.raises(UsageError, match="is not ADDRESS:PORT") as caught:
        CliRunner().invoke(command, line, catch_exceptions=False)
    assert "127.0.0.1:8786" in caught.value.hint


def test_a_worker_is_reached_at_its_address_on_the_way_to_the_scheduler(monkeypatch: pytest.MonkeyPatch) -> None:
    assert own_address("tls://127.0.0.1:8786") == "127.0.0.1"
    asked: list[object] = []

    def connect(way: socket.socket, there: object) -> None:
        way.bind(("127.0.0.9", 0))
        asked.append(there)

    monkeypatch.setattr(socket.socket, "connect", connect)
    assert own_address("tls://192.0.2.1:8786") == "127.0.0.9"
    assert asked == [("192.0.2.1", 8786)]


def test_a_worker_whose_scheduler_is_not_there_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    class Said(Exception):
        pass

    def lacks(why: str) -> None:
        raise Said(why)

    monkeypatch.setattr(nodes, "_START", 1.0)
    with pytest.raises(Said, match=r"the scheduler at tcp://127\.0\.0\.1:9 does not answer"):
        asyncio.run(nodes.worker("tcp://127.0.0.1:9", "w", None, None, lambda _: None, lacks))


def test_an_address_has_the_protocol_of_the_keys_that_there_are(tmp_path: Path) -> None:
    assert where("10.0.0.1:8786", None, tmp_path, None).address == "tls://10.0.0.1:8786"
    assert where("127.0.0.1:8786", None, None, None).address == "tcp://127.0.0.1:8786"
    with pytest.raises(UsageError, match="is not encrypted") as caught:
        where("tcp://10.0.0.1:8786", None, tmp_path, None)
    assert caught.value.hint == "write tls://10.0.0.1:8786"
    with pytest.raises(UsageError, match="needs TLS keys") as caught:
        where("tls://127.0.0.1:8786", None, None, None)
    assert "--tls" in caught.value.hint


def test_a_study_is_sent_in_the_clear_on_the_loopback_address_alone() -> None:
    assert where("tcp://127.0.0.1:8786", None, None, None) == BlockTarget("tcp://127.0.0.1:8786")
    assert [is_loopback(each) for each in ("localhost:1", "tls://[::1]:2", "10.0.0.1:3", "lab:4")] == [
        True,
        True,
        False,
        False,
    ]
    with pytest.raises(UsageError, match="open to everyone"):
        where("tcp://192.0.2.1:8786", None, None, None)
    with pytest.raises(UsageError, match="exclude each other"):
        where("tcp://127.0.0.1:8786", 2, None, None)
    with pytest.raises(UsageError, match="is for --cluster"):
        where(None, 2, Path("keys"), None)
