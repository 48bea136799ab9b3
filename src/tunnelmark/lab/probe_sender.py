"""Sends and receives UDP probes on a node, with the kernel's receive stamps; a program that needs no package.

    python -I -S probe_sender.py PLAN      where PLAN is a JSON object:
        bind        [address, port] to receive on
        until       when to stop receiving at the earliest
        phases      list of {to: [address, port], start, end, count, interval, size, batch}, in order of `start`;
                    `size` in bytes of UDP payload, `batch` in packets per system call; packets that are not sent by
                    `end` are left out, so that a slow sender takes no time from the next phase

Times are in nanoseconds from a zero. The first line of standard input is that zero (nanoseconds of CLOCK_REALTIME); the
command writes it when all nodes are bound. A further line, or the end of standard input, says that no packet is on its
way any more. Until then the program goes on receiving, because a link may keep packets for longer than planned.
Standard output gets a record (`RECORD`) for each packet received: its number, phase and flags, and when it was sent and
received. Standard error gets one JSON object at the end: for each phase how many packets were sent, in how many
seconds, and the greatest lateness. Nodes on one machine share one clock, so the difference of two stamps is the one-way
delay; between hosts, subtract the offset of their clocks (`Lab.clocks`). The receive stamp is the kernel's
(SO_TIMESTAMPNS), so it does not matter how late this program reads. A sender that is late sends at once, and writes the
actual time of sending into the probe, from which the receiver copies it into the record.

irtt measures the same in one direction and back, but stamps in user space, prints no record of duplicates and of
corruption, and cannot fill a queue.
"""

from __future__ import annotations

import contextlib
import json
import select
import socket
import struct
import sys
import time
import zlib
from functools import lru_cache
from typing import Any

RECORD = struct.Struct("<IHHqq")
"""One packet received: number, phase, flags, when it was sent and received (nanoseconds of CLOCK_REALTIME)."""

CORRUPTED = 1
"""Flag of a record: the packet's content is not what was sent."""

HEADER = struct.Struct("<IIHHq")
"""A probe's header: CRC-32 of what follows (0 in a batch: none), number, phase, unused, time of sending in ns."""

LEAST = HEADER.size
MOST = 1472  # bytes of UDP payload in a full Ethernet frame

_SO_NO_CHECK, _SO_SNDBUFFORCE, _SO_RCVBUFFORCE, _SO_TIMESTAMPNS = 11, 32, 33, 35  # <asm-generic/socket.h>
_SOL_UDP, _UDP_SEGMENT = 17, 103  # <linux/udp.h>
_TIMESPEC = struct.Struct("@ll")
_BUFFER = 64 << 20
_EARLY = 0.0003  # seconds before a moment at which sleeping ends and spinning begins
_ENOUGH = 0.00002  # seconds for reading one packet: where probes are close together, no other time is left for it


class Prober:
    """Carries out one plan: sends at the planned moments, and reads received packets whenever there is time."""

    def __init__(self, plan: dict[str, Any], out: Any) -> None:
        self._plan = plan
        self._out = out
        self._receive = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._receive.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, _BUFFER)
        self._receive.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
        self._receive.setblocking(False)
        self._receive.bind(tuple(plan["bind"]))
        self._zero = 0

    def run(self, zero: int, over: Any = None) -> dict[str, Any]:
        """Send all phases of the plan, receive what arrives meanwhile, and return a summary of the sending.

        `zero`: the plan's zero in nanoseconds of CLOCK_REALTIME. `over`: a file; the prober receives until the plan's
        `until`, and then until this file is readable. With None, it stops at `until`. The summary has `phases`: for
        each phase the number of packets `sent`, the `seconds` between the first and the last, and the greatest
        lateness in seconds (`latest`).
        """
        self._zero = zero
        sent = [self._send(number, phase) for number, phase in enumerate(self._plan["phases"])]
        while (left := zero + self._plan["until"] - time.time_ns()) > 0:
            select.select((self._receive,), (), (), min(left / 1e9, 0.05))
            self._read()
        while over is not None and over not in select.select((self._receive, over), (), ())[0]:
            self._read()
        self._read()  # what came while this program was late
        return {"phases": sent}

    def _send(self, number: int, phase: dict[str, Any]) -> dict[str, Any]:
        batch = phase["batch"]
        size = phase["size"]
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            sock.setsockopt(socket.SOL_SOCKET, _SO_SNDBUFFORCE, _BUFFER)
            if batch > 1:
                sock.setsockopt(_SOL_UDP, _UDP_SEGMENT, size)
            else:  # without a checksum, or the kernel would drop a corrupted probe before we see it
                sock.setsockopt(socket.SOL_SOCKET, _SO_NO_CHECK, 1)
            sock.connect(tuple(phase["to"]))
            filling = bytes(index & 255 for index in range(size - LEAST))
            packets = bytearray((bytes(LEAST) + filling) * batch)
            view = memoryview(packets)
            latest, first, last, sent = 0, 0, 0, 0
            for begin in range(0, phase["count"], batch):
                due = self._zero + phase["start"] + begin * phase["interval"]
                self._wait(due)
                now = time.time_ns()
                if now > self._zero + phase["end"]:
                    break
                many = min(batch, phase["count"] - begin)
                for offset in range(many):
                    HEADER.pack_into(packets, offset * size, 0, begin + offset, number, 0, now)
                if batch == 1:
                    packets[:4] = zlib.crc32(view[4:]).to_bytes(4, "little")
                first, last, sent = first or now, now, sent + many
                latest = max(latest, now - due)
                with contextlib.suppress(OSError):  # the link is down or the far end not there yet: counted as lost
                    sock.send(view[: many * size])
            return {"sent": sent, "seconds": (last - first) / 1e9, "latest": latest / 1e9}

    def _wait(self, due: int) -> None:
        """Wait until a moment (`due`, nanoseconds of CLOCK_REALTIME), and read packets that arrive meanwhile."""
        if due <= time.time_ns():  # late, perhaps for long: unread, the socket's buffer would overflow
            self._read(2)
            return
        while (left := due - time.time_ns()) > 0:
            if left > 1e9 * _EARLY:
                if select.select((self._receive,), (), (), left / 1e9 - _EARLY)[0]:
                    self._read(200)
            elif left > 1e9 * _ENOUGH:
                self._read(1)
            # else spin: a sleep would end too late

    def _read(self, most: int = 1 << 30) -> None:
        for _ in range(most):
            try:
                data, ancillary, _, _ = self._receive.recvmsg(2048, 64)
            except BlockingIOError:
                return
            except OSError:  # an ICMP error of an earlier packet
                continue
            seconds, nanoseconds = _TIMESPEC.unpack(ancillary[0][2])
            if len(data) < LEAST:
                continue
            checksum, number, phase, _, sent = HEADER.unpack_from(data)
            flags = 0
            if checksum and zlib.crc32(data[4:]) != checksum:
                flags = CORRUPTED
                _, number, phase, _, sent = HEADER.unpack_from(repaired(data))
            self._out.write(RECORD.pack(number, phase, flags, sent, seconds * 10**9 + nanoseconds))


def repaired(data: bytes) -> bytes:
    """Return a corrupted probe with one bit inverted, so that its checksum is right again.

    The probe is returned unchanged if no single bit makes the checksum right. The result has the number and phase that
    were sent: by a corrupted number, the probe would be counted as a copy of another probe.
    """
    wrong = zlib.crc32(data[4:]) ^ int.from_bytes(data[:4], "little")
    if (place := _places(len(data)).get(wrong)) is None:
        return data
    found = bytearray(data)
    found[place // 8] ^= 1 << place % 8
    return bytes(found)


@lru_cache(maxsize=1)
def _places(size: int) -> dict[int, int]:
    """Return, by the change (XOR) that an inverted bit makes to the checksum of any content, the bit's place in the
    probe.
    """
    none = zlib.crc32(bytes(size - 4))
    found = {1 << bit: bit for bit in range(32)}
    for bit in range(8 * (size - 4)):
        content = bytearray(size - 4)
        content[bit // 8] = 1 << bit % 8
        found[zlib.crc32(content) ^ none] = 32 + bit
    return found


def main() -> None:
    """Carry out the plan given as argument."""
    plan = json.loads(sys.argv[1])
    with open(sys.stdout.fileno(), "wb", buffering=1 << 20, closefd=False) as out:
        prober = Prober(plan, out)
        with open(sys.stdin.fileno(), "rb", buffering=0, closefd=False) as commands:
            said = prober.run(int(commands.readline()), commands)
    sys.stderr.write(json.dumps(said) + "\n")


if __name__ == "__main__":
    main()
