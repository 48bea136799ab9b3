"""What end hosts hand over: wire packets, or super-packets of the kinds that what carries the link can take."""

import pytest

from tunnelmark.lab.underlay import CHECKSUMS, Wire, offloads

UDP, TCP = "tx-udp-segmentation", "tx-tcp-segmentation"


def wire(*, emulated: bool, super_packets: bool = False) -> Wire:
    addresses = {"a": "10.50.0.1/24", "b": "10.50.0.2/24"}
    return Wire("wire", addresses, emulated=emulated, super_packets=super_packets)


@pytest.mark.parametrize(
    ("release", "emulated", "udp"),
    [
        ("6.1.0-32-amd64", True, False),  # recvmsg refuses a super-packet of UDP
        ("6.1.0-32-amd64", False, True),
        ("6.2.0", True, True),
        ("6.12.100+deb12-amd64", True, True),
        ("5.15.0-91-generic", True, False),
    ],
)
def test_super_packets_of_udp_are_split_where_the_emulator_could_not_receive_them(
    release: str, emulated: bool, udp: bool
):
    found = offloads(wire(super_packets=True, emulated=emulated), release)
    assert (found[UDP], found[TCP]) == (udp, True)
    assert all(found[name] for name in CHECKSUMS)


@pytest.mark.parametrize("release", ["6.1.0", "6.18.44"])
def test_else_nothing_is_left_to_the_interface(release: str):
    found = offloads(wire(emulated=True), release)
    assert not any((found[UDP], found[TCP], *(found[name] for name in CHECKSUMS)))
    assert found["rx-gro"]
