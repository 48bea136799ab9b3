"""Routers do what a topology says of them: forward, translate as RFC 4787 sorts it, and filter.

What a translation is, an independent client finds: coturn's, which asks a STUN server by RFC 5780. It knows UDP only, so there
are two programs for TCP here, which ask the same questions.
"""

from __future__ import annotations

import asyncio
import json
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from itertools import product
from typing import get_args

import pytest

from support.asking import answering, pinged
from support.labs import UNSHAPED, in_lab
from tunnelmark.lab.labs import Lab
from tunnelmark.lab.node import Process
from tunnelmark.plan.files import PACKAGED, Files
from tunnelmark.plan.load import load_topology
from tunnelmark.plan.model import Link, Topology
from tunnelmark.plan.routers import Dependence, Nat, Router, Service
from tunnelmark.units import Rate

pytestmark = pytest.mark.root

NATS = [Nat(mapping, filtering) for mapping, filtering in product(get_args(Dependence), repeat=2)]
RANDOM = Nat("endpoint-independent", "endpoint-independent", "random", hairpin=True)
SECOND = "10.50.0.200"  # the STUN server's other address (RFC 5780, section 3)
STUN = (
    "turnserver -n --log-file stdout --no-tls --no-dtls -L {one} -L {other} --no-auth --realm lab --stun-only --no-cli"
)
TCP_SERVER = """
import concurrent.futures, socket, sys, threading
at_once = concurrent.futures.ThreadPoolExecutor(64)
def call(source, to):
    try:
        with socket.create_connection(to, 5, (source, 0)) as made:
            return made.recv(9) == b'here'
    except OSError:
        return False
def answer(one, peer):
    one.sendall(b'%5d' % peer[1])
    if one.recv(9) == b'call':
        one.sendall(b'%d%d' % tuple(at_once.map(call, sys.argv[1:], [peer, peer])))
    one.recv(9)
def serve(listener):
    while True:
        threading.Thread(target=answer, args=listener.accept()).start()
for at in [(address, port) for port in (5001, 5002) for address in sys.argv[1:]]:
    threading.Thread(target=serve, args=[socket.create_server(at, backlog=64)]).start()
ready = socket.create_server(('', 5003))
threading.Event().wait()  # a pool works for as long as the main thread does
"""
"""Tells who connects its port as it is seen here and, where that is asked, connects to that port: from each of two addresses."""

TCP_CLIENT = """
import json, socket, sys, threading
def own():
    made = socket.socket()
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    made.bind(('', 40123))
    return made
def greet():
    while True:
        listener.accept()[0].sendall(b'here')
listener, kept, ports, called = own(), [], [], ''
listener.listen()
threading.Thread(target=greet, daemon=True).start()
for at in [(address, port) for port in (5001, 5002) for address in sys.argv[1:]]:
    kept.append(own())
    kept[-1].connect(at)
    ports.append(int(kept[-1].recv(5, socket.MSG_WAITALL)))
    if not called:  # the server's other address has not been spoken to
        kept[-1].sendall(b'call')
        called = kept[-1].recv(2, socket.MSG_WAITALL).decode()
print(json.dumps([ports, called]))
"""
"""Connects from one port to two ports of two addresses, and is reached at it or not after the first: from that address, from the other."""


def sites(nats: list[Nat | None], **router: object) -> Topology:
    """A node on the Internet, and one behind a router for each translation."""
    names = [f"n{place}" for place in range(len(nats))]
    routers = tuple(
        Router(f"r{name}", "internet", nat, **router)  # type: ignore[arg-type]
        for name, nat in zip(names, nats, strict=True)
    )
    inside = tuple(Link(f"home-{name}", (name, f"r{name}"), profile=UNSHAPED) for name in names)
    internet = Link("internet", ("s", *(router.name for router in routers)), profile=UNSHAPED)
    return Topology("sites", "T", ("s", *names), (internet, *inside), routers)


async def stun(lab: Lab) -> Process:
    assert shutil.which("turnserver"), "set-up installs coturn"
    server = lab.nodes["s"]
    assert (await server.run(["ip", "address", "add", f"{SECOND}/24", "dev", "eth0"])).code == 0
    argv = STUN.format(one=lab.address("s"), other=SECOND).split()
    process = await server.spawn([*argv, "--pidfile", "/run/turn.pid", "--db", "/run/turn.db"])
    await server.until({"kind": "udp-port", "port": 3478}, 20)
    return process


async def behaviour(lab: Lab, node: str, *options: str) -> str:
    argv = ["turnutils_natdiscovery", *options, "-L", str(lab.address(node)), str(lab.address("s"))]
    done = await lab.nodes[node].run(argv, timeout=60)
    return done.stdout


def words(of: Dependence) -> str:
    """As the client says it: `Address and Port Dependent`."""
    return " ".join(part.capitalize() if part != "and" else part for part in of.split("-"))


PORT = ("-l", "40123")
"""Has the client ask from a port of its own: of ports that are drawn, two of a mapping are alike once in 4,096."""


async def until(enough: Callable[[str], bool], lab: Lab, node: str, *options: str) -> str:
    """What the client says, asked again until that is enough, as it does not repeat what was not answered.

    A client over UDP does so up to seven times (RFC 8489, section 6.2.1).
    """
    for _ in range(7):
        said = await behaviour(lab, node, *options)
        if enough(said):
            break
    return said


async def mapping(lab: Lab, node: str) -> list[str]:
    """What the client calls the mapping, and what it printed: it takes a lost answer for the one before."""
    said = await until(lambda said: "timeout" not in said, lab, node, "-m", *PORT)
    return [*re.findall(r"NAT with (.*) Mapping!", said), said]


async def filtering(lab: Lab, node: str) -> list[str]:
    """What the client calls the filtering, and what it printed: the most open of three, as a lost answer looks like a filter."""
    said = await asyncio.gather(*(until(lambda said: "Filtering!" in said, lab, node, "-f") for _ in range(3)))
    found = [[*re.findall(r"NAT with (.*) Filtering!", one), one] for one in said]
    order = [words(one) for one in get_args(Dependence)]
    return min(found, key=lambda one: order.index(one[0]))


def test_every_translation_is_what_it_is_called() -> None:
    async def body(lab: Lab) -> list[list[str]]:
        await stun(lab)
        nodes = [f"n{place}" for place in range(len(NATS))]
        return await asyncio.gather(*(ask(lab, node) for ask in (mapping, filtering) for node in nodes))

    found = in_lab(body, sites(list(NATS)))
    called = [nat.mapping for nat in NATS] + [nat.filtering for nat in NATS]
    for nat, dependence, (what, said) in zip(NATS * 2, called, found, strict=True):
        assert what == words(dependence), (nat, said)


def test_ports_are_kept_or_drawn_and_a_hairpin_leads_back() -> None:
    async def body(lab: Lab) -> tuple[str, str]:
        await stun(lab)
        return await asyncio.gather(
            # Where no hairpin leads back its two packets are waited for in vain.
            until(lambda said: said.count("UDP reflexive addr") == 3, lab, "n0", "-m", "-H", *PORT),
            until(lambda said: "timeout" not in said, lab, "n1", "-m", "-H", *PORT),
        )

    kept, drawn = in_lab(body, sites([Nat(), RANDOM]))
    assert re.search(r"UDP reflexive addr: \S+:40123\b", kept)
    assert not re.search(r"UDP reflexive addr: \S+:40123\b", drawn)
    assert "successful hairpinning" in drawn
    assert "successful hairpinning" not in kept


def test_tcp_is_mapped_as_udp_is() -> None:
    nats = [*NATS, RANDOM]

    async def body(lab: Lab) -> list[str]:
        server, addresses = lab.nodes["s"], [str(lab.address("s")), SECOND]
        assert (await server.run(["ip", "address", "add", f"{SECOND}/24", "dev", "eth0"])).code == 0
        await server.spawn(["python3", "-c", TCP_SERVER, *addresses])
        await server.until({"kind": "tcp-port", "port": 5003}, 20)
        client = ["python3", "-c", TCP_CLIENT, *addresses]
        return [
            done.stdout
            for done in await asyncio.gather(
                *(lab.nodes[f"n{place}"].run(client, timeout=60) for place in range(len(nats)))
            )
        ]

    for nat, said in zip(nats, in_lab(body, sites([*nats])), strict=True):
        ports, called = json.loads(said)
        first, elsewhere, again, elsewhere_again = ports
        alike = {
            "endpoint-independent": len(set(ports)) == 1,
            "address-dependent": first == again != elsewhere == elsewhere_again,
            "address-and-port-dependent": len(set(ports)) == 4,
        }
        assert alike[nat.mapping], (nat, ports)
        kept = nat.mapping == "endpoint-independent" and nat.ports == "preserved"
        assert (40123 in ports) is kept, (nat, ports)
        by_hand = nat.mapping != "address-and-port-dependent"  # those of TCP the kernel draws from all
        assert kept or not by_hand or all(port >= 49152 for port in ports), (nat, ports)
        let_in = {"endpoint-independent": "11", "address-dependent": "10", "address-and-port-dependent": "00"}
        assert called == let_in[nat.filtering], (nat, called)


EVERY = (Service("icmp"), Service("udp", 53), Service("udp", 5000), Service("tcp", 443), Service("tcp", 80))


@pytest.mark.parametrize(
    ("router", "open_"),
    [
        ({}, {"icmp", "udp/53", "udp/5000", "tcp/443", "tcp/80"}),
        ({"block": (Service("udp"),)}, {"icmp", "tcp/443", "tcp/80"}),
        ({"block": (Service("udp", 5000),)}, {"icmp", "udp/53", "tcp/443", "tcp/80"}),
        ({"allow": (Service("tcp", 443),)}, {"tcp/443"}),
        ({"allow": (Service("udp", 53), Service("tcp", 443))}, {"udp/53", "tcp/443"}),
    ],
    ids=["open", "no UDP", "one port blocked", "TCP 443 only", "DNS and HTTPS only"],
)
@pytest.mark.parametrize("nat", [None, Nat()], ids=["routed", "translated"])
def test_a_filter_lets_through_what_it_says(router: dict[str, object], open_: set[str], nat: Nat | None) -> None:
    async def body(lab: Lab) -> set[str]:
        services = [str(service) for service in EVERY if service.port is not None]
        found, by_ping = await asyncio.gather(
            answering(lab, "n0", "s", services, open_ - {"icmp"}), pinged(lab, "n0", "s", "icmp" in open_)
        )
        return {*found, *(["icmp"] if by_ping else [])}

    assert in_lab(body, sites([nat], **router)) == open_


def test_a_black_hole_says_nothing() -> None:
    async def body(lab: Lab) -> tuple[bool, bool]:
        return await pinged(lab, "n0", "s", True, 1300), await pinged(lab, "n0", "s", False, 1400)

    assert in_lab(body, sites([None], largest=1400)) == (True, False)


def test_udp_is_throttled_and_tcp_is_not() -> None:
    async def body(lab: Lab) -> list[float]:
        rates = []
        for more in (("-u", "-b", "20M"), ()):
            server = await lab.nodes["s"].spawn(["iperf3", "-s", "-1"])
            await lab.nodes["s"].until({"kind": "tcp-port", "port": 5201}, 20)
            done = await lab.nodes["n0"].run(
                ["iperf3", "-t2", "-f", "k", "-c", str(lab.address("s")), *more], timeout=60
            )
            await server.wait()
            (received,) = re.findall(r"([\d.]+) Kbits/sec.*receiver", done.stdout)
            rates.append(float(received))
        return rates

    throttled, free = in_lab(body, sites([None], udp_rate=Rate(2_000_000)))
    assert 500 < throttled < 2_500
    assert free > 4 * throttled


def test_two_sites_reach_each_other_by_their_routers() -> None:
    async def body(lab: Lab) -> list[str]:
        shown = []
        for source, target in (("a", "b"), ("b", "a")):
            ping = ["ping", "-n", "-c1", "-w20", str(lab.address(target))]
            shown.append((await lab.nodes[source].run(ping, timeout=60)).stdout)
        return shown

    for said in in_lab(body, load_topology("two-sites", Files((PACKAGED,)))):
        assert "ttl=62" in said  # two routers have each taken one of 64


def test_behind_home_routers_only_the_server_is_reached() -> None:
    async def body(lab: Lab) -> dict[str, bool]:
        return {way: await pinged(lab, way[0], way[1], way in ("as", "bs")) for way in ("as", "bs", "sa", "ab", "ba")}

    topology = replace(load_topology("behind-nat", Files((PACKAGED,))), name="nat")
    assert in_lab(body, topology) == {"as": True, "bs": True, "sa": False, "ab": False, "ba": False}


def test_routers_forward_ipv6_as_well() -> None:
    async def body(lab: Lab) -> int:
        address = str(lab.address6("n0"))
        # With -w ping goes on until three are answered: a machine that stands still may lose one in a buffer.
        ping = ["ping", "-6", "-n", "-q", "-c3", "-i0.05", "-w15", address]
        return (await lab.nodes["s"].run(ping, timeout=60)).code

    topology = replace(sites([Nat()]), routers=(Router("rn0"),))
    assert in_lab(body, topology, ipv6=True) == 0
