"""The prober sends what it should at the planned times, and records each arrival with the kernel's stamp."""

from __future__ import annotations

import io
import json
import socket
import subprocess
import sys
import time
import zlib
from pathlib import Path

import numpy as np
import pytest

from support.host import queue_drops
from tunnelmark.lab import probe_sender
from tunnelmark.model import probe_plan
from tunnelmark.model.observation import RECORDS

LATE = 10_000_000_000
"""Nanoseconds after which a phase ends: by then all is sent, however long the machine stands still."""


def probe(plan: dict, *, meanwhile=lambda: None) -> tuple[np.ndarray, dict]:
    """What a prober that sends to itself over the loopback received, and what it says, with the moment at which it began."""
    argv = [sys.executable, "-I", "-S", probe_sender.__file__, json.dumps(plan)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdin is not None
        deadline = time.monotonic() + 20
        while not bound(plan["bind"][1]):  # as in a lab: time begins when the prober is there
            assert time.monotonic() < deadline
            time.sleep(0.01)
        zero = time.time_ns() + 100_000_000
        process.stdin.write(f"{zero}\n".encode())
        process.stdin.flush()
        meanwhile()
        out, err = process.communicate(timeout=20)
    assert process.returncode == 0, err.decode()
    return np.frombuffer(out, RECORDS), json.loads(err) | {"zero": zero}


def bound(port: int) -> bool:
    lines = Path("/proc/net/udp").read_text().splitlines()[1:]
    return any(int(line.split()[1].rpartition(":")[2], 16) == port for line in lines)


def free_port() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind(("127.0.0.1", 0))
        port: int = sock.getsockname()[1]
        return port


def planned(here: list, ends: tuple[int, int] = (LATE, LATE)) -> list[dict]:
    """A phase of single probes, and one of a train."""
    return [
        {"to": here, "start": 0, "end": ends[0], "count": 100, "interval": 1_000_000, "size": 64, "batch": 1},
        {
            "to": here,
            "start": 150_000_000,
            "end": ends[1],
            "count": 40,
            "interval": 10_000,
            "size": 1472,
            "batch": 8,
        },
    ]


def test_every_probe_arrives_with_both_its_times():
    """But for what a core's queue had no room for: it drops a batch of eight as one."""
    here, before = ["127.0.0.1", free_port()], queue_drops()
    records, said = probe({"bind": here, "until": 300_000_000, "phases": planned(here)})
    assert [phase["sent"] for phase in said["phases"]] == [100, 40]
    probes, train = records[records["phase"] == 0], records[records["phase"] == 1]
    dropped = queue_drops() - before
    for part, count, batch in ((probes, 100, 1), (train, 40, 8)):
        numbers = set(part["number"].tolist())
        assert len(numbers) == len(part) >= count - batch * dropped
        assert numbers <= set(range(count))
    assert (np.diff(probes["number"].astype(int)) > 0).all()
    assert (records["flags"] == 0).all()
    delays = records["received"] - records["sent"]
    assert (delays > 0).all()
    assert delays.min() < 5_000_000
    assert (
        probes["sent"] >= said["zero"] + 1_000_000 * probes["number"].astype(np.int64)
    ).all()  # none before its time
    assert (train["sent"] >= said["zero"] + 150_000_000).all()


@pytest.mark.proof("the probes of a look leave at their times, within milliseconds, and arrive within as many")
def test_probes_leave_at_their_times():
    here = ["127.0.0.1", free_port()]
    phases = planned(here, ends=(140_000_000, 290_000_000))
    records, said = probe({"bind": here, "until": 300_000_000, "phases": phases})
    assert [phase["sent"] for phase in said["phases"]] == [100, 40]
    assert 0 < np.min(records["received"] - records["sent"]) < 5_000_000
    probes = records[records["phase"] == 0]
    assert 0.095 < (probes["sent"][-1] - probes["sent"][0]) / 1e9 < 0.3


def test_a_sender_that_cannot_keep_up_stops_in_time_and_says_what_it_sent():
    here = ["127.0.0.1", free_port()]
    endless = {"to": here, "start": 0, "end": 500_000_000, "count": 1 << 30, "interval": 1, "size": 64, "batch": 1}
    began = time.monotonic()
    records, said = probe({"bind": here, "until": 600_000_000, "phases": [endless]})
    assert time.monotonic() - began < 5
    (done,) = said["phases"]
    assert 0 < done["sent"] < 1 << 20
    assert done["seconds"] <= 0.5
    assert len(records) > 0.9 * done["sent"]


def test_what_came_while_the_prober_was_late_is_read():
    here = ["127.0.0.1", free_port()]
    busy = {"to": here, "start": 0, "end": 500_000_000, "count": 1 << 30, "interval": 1, "size": 64, "batch": 1}
    records, said = probe({"bind": here, "until": 250_000_000, "phases": [busy]})
    assert said["phases"][0]["sent"] > 0
    assert len(records) > 0.9 * said["phases"][0]["sent"]


def test_what_comes_after_the_planned_end_is_received_until_it_is_said_to_be_over():
    """A link whose core was taken away delivers later than planned."""
    here = ["127.0.0.1", free_port()]

    def delivered_late() -> None:
        time.sleep(0.3)  # 0.2 s after the planned end
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            sock.sendto(probe_sender.HEADER.pack(0, 7, 0, 0, time.time_ns()) + b"content", ("127.0.0.1", here[1]))

    records, _ = probe({"bind": here, "until": 1, "phases": []}, meanwhile=delivered_late)
    assert records["number"].tolist() == [7]


def test_a_probe_that_was_changed_on_its_way_is_told():
    here = ["127.0.0.1", free_port()]

    def disturb() -> None:
        time.sleep(0.15)
        rest = probe_sender.HEADER.pack(0, 7, 0, 0, time.time_ns())[4:] + b"content"
        good = zlib.crc32(rest).to_bytes(4, "little") + rest
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            for packet in (good, good[:-1] + b"T", b"short"):
                sock.sendto(packet, ("127.0.0.1", here[1]))

    phases = [{"to": here, "start": 0, "end": 0, "count": 0, "interval": 1, "size": 64, "batch": 1}]
    records, _ = probe({"bind": here, "until": 2_000_000_000, "phases": phases}, meanwhile=disturb)
    assert records["flags"].tolist() == [0, probe_sender.CORRUPTED]
    assert records["number"].tolist() == [7, 7]


@pytest.mark.parametrize("bit", [0, 31, 32, 40, 63, 64, 100, 191, 511])
def test_a_probe_with_one_wrong_bit_is_known_again(bit: int):
    content = probe_sender.HEADER.pack(0, 1234, 1, 0, time.time_ns())[4:] + bytes(44)
    probe = zlib.crc32(content).to_bytes(4, "little") + content
    wrong = bytearray(probe)
    wrong[bit // 8] ^= 1 << bit % 8
    assert probe_sender.repaired(bytes(wrong)) == probe


def test_a_probe_with_more_wrong_bits_stays_as_it_is():
    content = probe_sender.HEADER.pack(0, 7, 0, 0, time.time_ns())[4:] + bytes(44)
    wrong = zlib.crc32(content).to_bytes(4, "little") + content[:-1] + b"\x03"
    assert probe_sender.repaired(wrong) == wrong


@pytest.mark.parametrize("interval", [100_000, 1])
def test_probes_are_read_while_others_are_sent(monkeypatch: pytest.MonkeyPatch, interval: int):
    """Also by a sender that is always late."""
    monkeypatch.setattr(probe_sender, "_BUFFER", 1 << 16)  # holds some 170 probes, of 3000
    here, out = ["127.0.0.1", free_port()], io.BytesIO()
    count = 3000
    phase = {"to": here, "start": 0, "end": 1 << 40, "count": count, "interval": interval, "size": 64, "batch": 1}
    said = probe_sender.Prober({"bind": here, "until": 0, "phases": [phase]}, out).run(time.time_ns())
    assert said["phases"][0]["sent"] == count
    assert len(out.getvalue()) > 0.5 * count * probe_sender.RECORD.size


def test_the_plan_of_a_look_knows_the_senders_full_frame() -> None:
    """They share no code: one runs on nodes and imports nothing, the other is read where no lab can be."""
    assert probe_plan.MOST == probe_sender.MOST
