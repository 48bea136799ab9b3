"""Makes a network namespace forget the connections that its kernel tracks, as `conntrack -F` does."""

from __future__ import annotations

import os
import socket
import struct

from tunnelmark.linux import netns

_NETLINK_NETFILTER = 12  # <linux/netlink.h>
_DELETE = (1 << 8) | 2  # NFNL_SUBSYS_CTNETLINK, IPCTNL_MSG_CT_DELETE: without a connection named, all of them
_REQUEST, _ACKNOWLEDGE = 0x1, 0x4  # NLM_F_REQUEST, NLM_F_ACK
_HEADER, _ERROR = struct.Struct("=IHHII"), struct.Struct("=i")  # struct nlmsghdr; that of struct nlmsgerr
_ANY_FAMILY = struct.pack("=BBH", socket.AF_UNSPEC, 0, 0)  # struct nfgenmsg


def forget(pid: int) -> None:
    """Make the kernel forget every tracked connection in the network namespace of a process; OSError if it refuses."""
    with netns.network_of(
        pid, lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_NETFILTER)
    ) as netlink:
        length = _HEADER.size + len(_ANY_FAMILY)
        netlink.send(_HEADER.pack(length, _DELETE, _REQUEST | _ACKNOWLEDGE, 1, 0) + _ANY_FAMILY)
        (code,) = _ERROR.unpack_from(netlink.recv(4096), _HEADER.size)
    if code:
        raise OSError(-code, os.strerror(-code))
