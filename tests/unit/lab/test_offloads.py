"""What end hosts hand over: wire packets, or super-packets of the kinds that what carries the link can take."""

import pytest

from tunnelmark.lab.addressing import specs_of
from tunnelmark.lab.link_spec import LinkSpec, Shaper
from tunnelmark.lab.server.veth import CHECKSUMS, ENCAPSULATED, offloads, queues, sender_queues
from tunnelmark.plan.files import PACKAGED, Files
from tunnelmark.plan.load import load_profile
from tunnelmark.plan.model import Link, Topology

FILES = Files((PACKAGED,))
PAIR = Topology("pair", "T", ("a", "b"), (Link("ab", ("a", "b")),))
UDP, TCP = "tx-udp-segmentation", "tx-tcp-segmentation"


def spec(*, emulated: bool, super_packets: bool = False) -> LinkSpec:
    addresses = {"a": "10.50.0.1/24", "b": "10.50.0.2/24"}
    return LinkSpec("link", addresses, emulated=emulated, super_packets=super_packets)


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
    found = offloads(spec(super_packets=True, emulated=emulated), release)
    assert (found[UDP], found[TCP]) == (udp, True)
    assert all(found[name] for name in CHECKSUMS)


@pytest.mark.parametrize(("emulated", "split"), [(True, True), (False, False)])
def test_super_packets_inside_a_tunnel_of_the_kernel_are_split_where_the_emulator_could_not_send_them(
    emulated: bool, split: bool
):
    found = offloads(spec(super_packets=True, emulated=emulated), "6.18.44")
    assert {name: on for name, on in found.items() if name in ENCAPSULATED} == (
        dict.fromkeys(ENCAPSULATED, False) if split else {}
    )


@pytest.mark.parametrize("release", ["6.1.0", "6.18.44"])
def test_else_nothing_is_left_to_the_interface(release: str):
    found = offloads(spec(emulated=True), release)
    assert not any((found[UDP], found[TCP], *(found[name] for name in CHECKSUMS)))
    assert found["rx-gro"]


def test_a_token_bucket_behind_a_card_queues_wire_packets():
    words = Shaper(10**9, 2**19, splits=True).words
    assert words == "tbf rate 1000000000bit burst 31250 limit 524288 peakrate 1tbit minburst 1600"
    assert "peakrate" not in Shaper(10**9, 2**19).words


def test_with_cards_nodes_hand_over_super_packets_and_the_link_has_wire_packets():
    profile = load_profile("gigabit+offloads", FILES)
    (link,) = specs_of(PAIR, profile)
    assert (link.card, link.super_packets, link.emulated) == (True, True, False)
    assert all(shaper.splits for shaper in link.shapers.values())
    (link,) = specs_of(PAIR, load_profile("wifi-good+gigabit+offloads", FILES))
    assert (link.card, link.super_packets, link.emulated) == (True, True, True)
    (link,) = specs_of(PAIR, load_profile("gigabit+no-offloads", FILES))
    assert (link.card, link.super_packets) == (False, False)


@pytest.mark.parametrize(("place", "netems"), [("netem-on-sender", 1), ("netem-on-middle", 2)])
def test_the_kernels_netem_leaves_the_propagation_to_a_second_one_in_front_of_the_shaper(place, netems, tmp_path):
    (tmp_path / "profiles").mkdir()
    middle = (FILES.folders[0] / "profiles" / "netem-on-sender.toml").read_text().replace('"sender"', '"middle"')
    (tmp_path / "profiles" / "netem-on-middle.toml").write_text(middle)
    files = Files((tmp_path, *FILES.folders))
    (link,) = specs_of(PAIR, load_profile(f"thesis-medium+thesis-round-trip+{place}+gigabit", files))
    assert "200us" not in link.netem["b"]
    found = queues("b", "b.0", link)
    assert [" netem " in line for line in found] == [True] * netems + [False]
    assert found[-2].endswith(" netem limit 100000 delay 200us")
    assert f"parent {netems}:1 handle {netems + 1}: tbf rate " in found[-1]


@pytest.mark.parametrize(("kind", "lines"), [("netem-on-sender", 1), ("netem-on-sender-wire", 2)])
def test_netem_on_the_sender_is_given_wire_packets_where_it_is_to_count_them(kind: str, lines: int):
    """A host splits super-packets behind its queues, so only a token bucket in front of netem splits them for it."""
    (link,) = specs_of(PAIR, load_profile(f"edge-delay-250+{kind}+gigabit", FILES))
    found = sender_queues("eth0", link, link.netem["a"])
    assert len(found) == lines
    assert found[-1].endswith("netem limit 1000 delay 250000us")
    assert ("peakrate" in found[0]) == (lines == 2)
