"""Sends small IP packets as fast as one core can, until it is ended: `_emulators_flood.py INTERFACE ADDRESS MAC`.

They are IP with a wrong header checksum, so any device takes them, with Ethernet header or without, and the receiving
kernel drops them first of all. 46 bytes of IP are the smallest Ethernet frame. MAC is `-` where there is none.
"""

from __future__ import annotations

import ctypes
import os
import socket
import struct
import sys

BATCH = 64
LENGTH = 46  # of the IP packet
ETH_P_IP = 0x0800
WRONG = 1  # a header checksum
SOL_PACKET, PACKET_QDISC_BYPASS = 263, 20


class _Vector(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]


class _Header(ctypes.Structure):  # struct msghdr
    _fields_ = [
        ("name", ctypes.c_void_p),
        ("name_length", ctypes.c_uint32),
        ("vectors", ctypes.POINTER(_Vector)),
        ("vector_count", ctypes.c_size_t),
        ("control", ctypes.c_void_p),
        ("control_length", ctypes.c_size_t),
        ("flags", ctypes.c_int),
    ]


class _Message(ctypes.Structure):  # struct mmsghdr
    _fields_ = [("header", _Header), ("sent", ctypes.c_uint)]


def _packet(source: str, target: str) -> bytes:
    fields = (0x45, 0, LENGTH, 0, 0, 64, socket.IPPROTO_UDP, WRONG)
    header = struct.pack("!BBHHHBBH4s4s", *fields, socket.inet_aton(source), socket.inet_aton(target))
    assert sum(struct.unpack("!10H", header)) % 0xFFFF != 0, "by chance this is its checksum"
    return header.ljust(LENGTH, b"\0")


def main(interface: str, source: str, target: str, mac: str) -> None:
    sock = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, 0)
    sock.setsockopt(SOL_PACKET, PACKET_QDISC_BYPASS, 1)
    address = bytes.fromhex(mac.replace(":", "")) if mac != "-" else b""
    # struct sockaddr_ll
    place = struct.pack(
        "=HHiHBB8s",
        socket.AF_PACKET,
        socket.htons(ETH_P_IP),
        socket.if_nametoindex(interface),
        0,
        0,
        len(address),
        address,
    )
    packet, name = (ctypes.create_string_buffer(data, len(data)) for data in (_packet(source, target), place))
    vector = _Vector(ctypes.addressof(packet), LENGTH)
    messages = (_Message * BATCH)()
    for message in messages:
        message.header.name, message.header.name_length = ctypes.addressof(name), len(place)
        message.header.vectors, message.header.vector_count = ctypes.pointer(vector), 1
    send, descriptor = ctypes.CDLL(None, use_errno=True).sendmmsg, sock.fileno()
    if send(descriptor, messages, 2, 0) != 2:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    while True:  # a full queue refuses the rest of a batch; that is what a flood is for
        send(descriptor, messages, BATCH, 0)


main(*sys.argv[1:])
