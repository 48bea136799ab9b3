"""Reads headers of packets that reach an interface. The kernel picks them at random; others cost next to nothing."""

from __future__ import annotations

import ctypes
import errno
import socket
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address

from tunnelmark.linux import netns

_ETH_P_ALL, _ETH_P_LOOP = 0x0003, 0x0060  # <linux/if_ether.h>; the second is the protocol of no packet here
_SOL_PACKET = 263  # <linux/socket.h>
_PACKET_IGNORE_OUTGOING = (
    23  # <linux/if_packet.h>: without it the kernel would copy the head of each packet that leaves
)
_SO_ATTACH_FILTER, _SO_RCVBUFFORCE = 26, 33  # <asm-generic/socket.h>
_PACKET_HOST = 0
_PACKET_TYPE, _RANDOM = 0xFFFFF000 + 4, 0xFFFFF000 + 56  # SKF_AD_PKTTYPE, SKF_AD_RANDOM of <linux/filter.h>
_LOAD, _EQUAL, _GREATER, _RETURN = 0x20, 0x15, 0x25, 0x06  # BPF_LD|BPF_W|BPF_ABS, BPF_JMP|BPF_JEQ, |BPF_JGT, BPF_RET
_HEAD = 64  # bytes of a packet that are read
_ETHERNET = 14
_FRAGMENT = 44  # the next header of an IPv6 fragment (RFC 8200, section 4.5)
_MOST = 512  # packets read at a time: more would hold up the caller
_ROOM = 1 << 24  # bytes of packets that wait to be read: a packet that was merged is charged with all 64 KiB


@dataclass(frozen=True, slots=True)
class Head:
    """The IP address that sent a sampled packet, the packet's IP protocol (6: TCP, 17: UDP), and its length.

    `length`: in bytes, with the Ethernet header.
    """

    sender: IPv4Address | IPv6Address
    protocol: int
    length: int


class PacketSampler:
    """Samples packets that arrive on one interface of a node, from `listen` on. OSError if the kernel refuses.

    `pid`: the process ID of the node's agent.
    """

    def __init__(self, pid: int, interface: str) -> None:
        self._interface = interface
        # Protocol 0: it hears nothing before its bind.
        self._socket = netns.network_of(pid, lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0))
        self._socket.setblocking(False)
        try:
            self._socket.setsockopt(_SOL_PACKET, _PACKET_IGNORE_OUTGOING, 1)
            self._socket.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, _ROOM)
        except BaseException:
            self._socket.close()
            raise
        self.listening = False

    def listen(self, share: float) -> None:
        """Sample packets from now on, each with the probability `share`."""
        self._filter(round(min(share, 1.0) * 0xFFFFFFFF))
        if not self.listening:
            self._socket.bind((self._interface, _ETH_P_ALL))
            self.listening = True

    def pause(self) -> None:
        """Sample no packets until the next `listen`. The kernel may take some 10 ms for that."""
        if self.listening:
            self._socket.bind((self._interface, _ETH_P_LOOP))  # with 0 it would keep the protocol that it has
            self.listening = False

    def heads(self) -> Iterator[Head]:
        """Yield the heads of the IP packets that were taken and not yet read, of at most 512 packets at a time."""
        room = bytearray(_HEAD)
        for _ in range(_MOST):
            try:
                length = self._socket.recv_into(room, _HEAD, socket.MSG_TRUNC)
            except BlockingIOError:
                return
            except OSError as error:
                if (
                    error.errno == errno.ENETDOWN
                ):  # said once, when the interface went down: it may be up again (packet(7))
                    continue
                raise
            if (head := read(bytes(room[: min(length, _HEAD)]), length)) is not None:
                yield head

    def close(self) -> None:
        """Stop sampling for good, and close the socket."""
        self._socket.close()

    def _filter(self, below: int) -> None:
        code = b"".join(
            struct.pack("=HBBI", *one)
            for one in (
                (_LOAD, 0, 0, _PACKET_TYPE),
                (_EQUAL, 0, 3, _PACKET_HOST),
                (_LOAD, 0, 0, _RANDOM),
                (_GREATER, 1, 0, below),
                (_RETURN, 0, 0, 0xFFFF),  # the whole: the length would be cut as well
                (_RETURN, 0, 0, 0),
            )
        )
        held = ctypes.create_string_buffer(code)
        program = struct.pack("@HP", len(code) // 8, ctypes.addressof(held))  # struct sock_fprog
        self._socket.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, program)


def read(frame: bytes, length: int) -> Head | None:
    """Return the head of the IP packet in an Ethernet frame; None if the frame holds no IP packet.

    `frame`: the first bytes of the frame, with all of the IP header; None if there are fewer. `length`: the bytes of
    the whole frame.
    """
    if len(frame) < _ETHERNET + 20:
        return None
    packet = frame[_ETHERNET:]
    match int.from_bytes(frame[12:14]):
        case 0x0800:
            return Head(IPv4Address(packet[12:16]), packet[9], length)
        case 0x86DD if len(packet) > 40:
            return Head(IPv6Address(packet[8:24]), packet[40] if packet[6] == _FRAGMENT else packet[6], length)
        case _:
            return None
