"""The prober sends what it should at the planned times, and records each arrival with the kernel's stamp."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
import zlib

import numpy as np

from tunnelmark.lab import prober
from tunnelmark.run.prove import RECORDS


def probe(plan: dict, *, meanwhile=lambda: None) -> tuple[np.ndarray, dict]:
    """What a prober that sends to itself over the loopback received, and what it says."""
    argv = [sys.executable, "-I", "-S", prober.__file__, json.dumps(plan)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdin is not None
        process.stdin.write(f"{time.time_ns() + 100_000_000}\n".encode())
        process.stdin.flush()
        meanwhile()
        out, err = process.communicate(timeout=20)
    assert process.returncode == 0, err.decode()
    return np.frombuffer(out, RECORDS), json.loads(err)


def free_port() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind(("127.0.0.1", 0))
        port: int = sock.getsockname()[1]
        return port


def test_every_probe_arrives_with_both_its_times():
    here = ["127.0.0.1", free_port()]
    phases = [
        {"to": here, "start": 0, "count": 100, "interval": 1_000_000, "size": 64, "batch": 1},
        {"to": here, "start": 150_000_000, "count": 40, "interval": 10_000, "size": 1472, "batch": 8},
    ]
    records, said = probe({"bind": here, "until": 300_000_000, "phases": phases})
    assert [phase["sent"] for phase in said["phases"]] == [100, 40]
    probes, train = records[records["phase"] == 0], records[records["phase"] == 1]
    assert probes["number"].tolist() == list(range(100))
    assert sorted(train["number"]) == list(range(40))
    assert (records["flags"] == 0).all()
    delays = records["received"] - records["sent"]
    assert (delays > 0).all()
    assert np.median(delays) < 5_000_000
    assert 0.095 < (probes["sent"][-1] - probes["sent"][0]) / 1e9 < 0.3


def test_a_probe_that_was_changed_on_its_way_is_told():
    here = ["127.0.0.1", free_port()]

    def disturb() -> None:
        time.sleep(0.15)
        rest = prober.HEADER.pack(0, 7, 0, 0, time.time_ns())[4:] + b"content"
        good = zlib.crc32(rest).to_bytes(4, "little") + rest
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            for packet in (good, good[:-1] + b"T", b"short"):
                sock.sendto(packet, ("127.0.0.1", here[1]))

    phases = [{"to": here, "start": 0, "count": 0, "interval": 1, "size": 64, "batch": 1}]
    records, _ = probe({"bind": here, "until": 400_000_000, "phases": phases}, meanwhile=disturb)
    assert records["flags"].tolist() == [0, prober.CORRUPTED]
    assert records["number"].tolist() == [7, 7]
