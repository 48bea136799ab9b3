"""Runs inside the guest: sends numbered frames through netem between two namespaces and writes what came of each.

    python3 guest.py SETTINGS.json RESULTS-FOLDER

Sender `s0` -- `m0` (redirected) `m1` with netem -- `r0` receiver. The arrival at netem is the kernel's stamp on `m0`, the
departure its stamp on `r0`, both of one clock. It needs nothing but the standard library.
"""

from __future__ import annotations

import ctypes
import json
import os
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

KIND = 0x88B5  # IEEE 802: local experimental
ALL = 0x0003  # <linux/if_ether.h>: every kind, and before a packet is redirected
LOCAL = 4  # <linux/if_packet.h>: PACKET_OUTGOING
HEADER = bytes([2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1]) + struct.pack("!H", KIND)
COPIES = 3  # of its number in each frame, so that one flipped bit does not hide it

SO_RCVBUFFORCE, SOL_PACKET, PACKET_STATISTICS = 33, 263, 6
SO_TIMESTAMPNS = SCM_TIMESTAMPNS = 35


def frame(number: int, size: int) -> bytes:
    """A frame of `size` bytes, Ethernet header included."""
    return (HEADER + struct.pack("!I", number) * COPIES).ljust(size, b"\0")


def number_of(data: bytes) -> int:
    """The number that at least two of the copies agree on."""
    copies = [data[at : at + 4] for at in range(len(HEADER), len(HEADER) + 4 * COPIES, 4)]
    return int(struct.unpack("!I", max(copies, key=copies.count))[0])


def sh(command: str) -> None:
    subprocess.run(command, shell=True, check=True)


def make_path() -> None:
    sh("ip netns add s && ip netns add r")
    for middle, end, space in (("m0", "s0", "s"), ("m1", "r0", "r")):
        # No IPv6, hence no packet that netem would draw for beside the probes.
        sh(f"ip link add {middle} type veth peer name {end} netns {space}")
        sh(f"sysctl -qw net.ipv6.conf.{middle}.disable_ipv6=1; ip link set {middle} up")
        sh(f"ip netns exec {space} sysctl -qw net.ipv6.conf.{end}.disable_ipv6=1")
        sh(f"ip -n {space} link set {end} up")
    sh("tc qdisc add dev m0 clsact && tc filter add dev m0 ingress matchall action mirred egress redirect dev m1")


def tap(space: str, interface: str) -> socket.socket:
    """A socket of a namespace that sees an interface's frames and holds them all with the kernel's time of arrival."""
    libc = ctypes.CDLL(None, use_errno=True)
    home = os.open("/proc/self/ns/net", os.O_RDONLY)
    try:
        if space:
            there = os.open(f"/run/netns/{space}", os.O_RDONLY)
            assert libc.setns(there, 0) == 0, os.strerror(ctypes.get_errno())
            os.close(there)
        taps = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        taps.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 1 << 28)
        taps.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        taps.bind((interface, ALL))
        taps.setblocking(False)
        return taps
    finally:
        assert libc.setns(home, 0) == 0
        os.close(home)


def read(source: socket.socket) -> list[tuple[int, int, bytes]]:
    """What a tap holds, in its order: time in nanoseconds, number, bytes."""
    found = []
    while True:
        try:
            data, extra, _, address = source.recvmsg(4096, 64)
        except BlockingIOError:
            break
        if address[2] == LOCAL:
            continue
        ((_, kind, stamp),) = extra
        assert kind == SCM_TIMESTAMPNS
        seconds, nanoseconds = struct.unpack("qq", stamp)
        found.append((seconds * 10**9 + nanoseconds, number_of(data), data))
    _, dropped = struct.unpack("II", source.getsockopt(SOL_PACKET, PACKET_STATISTICS, 8))
    assert dropped == 0, f"a tap lost {dropped} frames"
    return found


def probe(
    setting: dict[str, Any], sender: socket.socket, before: socket.socket, after: socket.socket
) -> dict[str, Any]:
    """Send the frames of one setting; numbers and times (ns) of arrivals and departures, and which were damaged."""
    count, size, interval = setting["count"], setting["bytes"], setting["interval_us"] * 1000
    sh(f"tc qdisc replace dev m1 root netem limit {setting['limit']} {setting['netem']}")
    read(before), read(after)
    frames = [frame(number, size) for number in range(count)]
    clock, sleep = time.monotonic_ns, time.sleep
    due = clock()
    for data in frames:
        due += interval
        if (ahead := due - clock()) > 0:
            sleep(ahead / 1e9)
        sender.send(data)
    sleep(setting["drain_s"])
    came, left = read(before), read(after)
    shown = subprocess.run(
        ["tc", "-s", "qdisc", "show", "dev", "m1"], capture_output=True, text=True, check=True
    ).stdout
    sh("tc qdisc del dev m1 root")
    assert [number for _, number, _ in came] == list(range(count))
    return {
        "arrived_ns": [at for at, _, _ in came],
        "number": [number for _, number, _ in left],
        "left_ns": [at for at, _, _ in left],
        "damaged": [place for place, (_, number, data) in enumerate(left) if data != frames[number]],
        "tc": shown,
    }


def main(settings: Path, results: Path) -> None:
    make_path()
    sender, before, after = tap("s", "s0"), tap("", "m0"), tap("r", "r0")
    time.sleep(0.2)  # the kernel begins to stamp a moment after the first socket asks
    for setting in json.loads(settings.read_text()):
        found = probe(setting, sender, before, after)
        (results / f"{setting['name']}.json").write_text(json.dumps(found))
        print(setting["name"], len(found["number"]), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
