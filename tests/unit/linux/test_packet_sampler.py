"""What the head of a frame says of its packet."""

from __future__ import annotations

import socket
import struct
from ipaddress import ip_address

from tunnelmark.linux.packet_sampler import Head, read

ETHERNET = bytes(12)


def four(protocol: int, source: str = "10.50.0.7") -> bytes:
    head = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 100, 0, 0, 64, protocol, 0, socket.inet_aton(source), bytes(4))
    return ETHERNET + b"\x08\x00" + head + bytes(30)


def six(following: int, first: int = 0) -> bytes:
    source = socket.inet_pton(socket.AF_INET6, "fd50::7")
    return (
        ETHERNET
        + b"\x86\xdd"
        + struct.pack("!IHBB16s16s", 6 << 28, 60, following, 64, source, bytes(16))
        + bytes([first, 0])
    )


def test_sender_and_protocol_are_read():
    assert read(four(17), 1514) == Head(ip_address("10.50.0.7"), 17, 1514)
    assert read(six(6), 90) == Head(ip_address("fd50::7"), 6, 90)


def test_a_fragment_of_ipv6_says_what_it_is_of():
    assert read(six(44, first=17), 90) == Head(ip_address("fd50::7"), 17, 90)


def test_what_is_not_ip_or_cut_off_says_nothing():
    assert read(ETHERNET + b"\x08\x06" + bytes(40), 60) is None
    assert read(ETHERNET + b"\x86\xdd" + bytes(20), 34) is None
    assert read(b"", 0) is None
