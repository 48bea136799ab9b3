"""Asks nodes of a lab until they answer: what a busy machine lost, or was late with, is sent again."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
from collections.abc import Collection

import pytest

from tunnelmark.lab.labs import Lab
from tunnelmark.lab.node import Node

PATIENCE = 30.0  # seconds for what is to answer
DROPPED = 5  # packets that a cut has dropped: then it is one, and not a packet that was lost

_SERVE = """
import contextlib, selectors, socket, sys
ready, kept = selectors.DefaultSelector(), []
def answer_udp(one):
    said, peer = one.recvfrom(9000)
    one.sendto(b'%s %d' % (said, peer[1]), peer)
def call(listener):
    made, _ = listener.accept()
    ready.register(made, selectors.EVENT_READ, answer_tcp)
def answer_tcp(one):
    ready.unregister(one)
    kept.append(one)
    one.sendall(b'%s %d' % (one.recv(9000), one.getpeername()[1]))
for word in sys.argv[1:]:
    kind, port = word.split('/')
    if kind == 'udp':
        made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        made.bind(('', int(port)))
        ready.register(made, selectors.EVENT_READ, answer_udp)
    else:
        ready.register(socket.create_server(('', int(port)), backlog=64), selectors.EVENT_READ, call)
while True:
    for key, _ in ready.select():
        with contextlib.suppress(OSError):
            key.data(key.fileobj)
"""
"""Services that repeat what they are sent, with the port that it seems to come from."""

_ASK = """
import json, os, socket, sys, threading, time
address, own, least, most, expected, *words = sys.argv[1:]
begun, word, found = time.monotonic(), b'%d' % time.time_ns(), {}
def udp(at):
    one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    one.bind(('', int(own)))
    one.settimeout(0.05)
    while True:
        try:
            one.sendto(word, at)
            said = one.recv(9000).split()
        except OSError:
            time.sleep(0.01)
            continue
        if said[0] == word:  # and not what answers another asker of this port
            return int(said[1])
def tcp(at):
    while True:
        try:
            with socket.create_connection(at, 0.4) as one:
                one.settimeout(2)
                one.sendall(word)
                return int(one.recv(9000).split()[1])
        except OSError:
            time.sleep(0.05)
def ask(service):
    kind, port = service.split('/')
    found[service] = {'udp': udp, 'tcp': tcp}[kind]((address, int(port)))
for service in words:
    threading.Thread(target=ask, args=[service], daemon=True).start()
wanted = set(expected.split())
while (now := time.monotonic() - begun) < float(most):
    if wanted <= set(found) and (now > float(least) or len(found) == len(words)):
        break
    time.sleep(0.01)
print(json.dumps(found), flush=True)
os._exit(0)
"""
"""Asks all services at once, and each again and again: of UDP from one socket each, every 50 ms."""

_LISTEN = {
    "tcp": "import socket; s = socket.create_server(('', PORT)); s.accept()",
    "udp": "import socket; s = socket.socket(2, 2); s.bind(('', PORT)); s.recv(9)",
}
_SEND = """
import contextlib, socket, time
kept = []
while True:
    kept.append(socket.socket(socket.AF_INET, KIND))
    kept[-1].setblocking(False)
    with contextlib.suppress(OSError):
        kept[-1].connect(('HOST', PORT))  # of TCP it goes on behind this
        kept[-1].send(b'x')
    time.sleep(0.05)
"""


async def answering(
    lab: Lab, source: str, target: str, services: Collection[str], expected: Collection[str], own_port: int = 0
) -> dict[str, int]:
    """Which services (`udp/53`) of a node answer another, and the port by which that is seen there; asked from `own_port`, by UDP.

    Asked until all that are `expected` have answered, and where others are asked for a second at least.
    """
    server = await lab.nodes[target].spawn(["python3", "-c", _SERVE, *services])
    for kind, port in (service.split("/") for service in services):
        await lab.nodes[target].until({"kind": f"{kind}-port", "port": int(port)}, PATIENCE)
    words = [str(lab.address(target)), str(own_port), "1", f"{PATIENCE:g}", " ".join(expected), *services]
    done = await lab.nodes[source].run(["python3", "-c", _ASK, *words], timeout=2 * PATIENCE)
    await server.stop()
    assert done.code == 0, done.stderr
    found: dict[str, int] = json.loads(done.stdout)
    return found


async def pinged(lab: Lab, source: str, target: str, expected: bool, payload: int = 40) -> bool:
    """Whether a node answers a ping, sent every 50 ms: until it does where that is expected, else for a second."""
    ping = ["ping", "-n", "-q", "-c1", "-i0.05", "-M", "do", "-s", str(payload), "-w", "20" if expected else "1"]
    return (await lab.nodes[source].run([*ping, str(lab.address(target))], timeout=2 * PATIENCE)).code == 0


async def answered(node: Node, address: object, patience: float) -> str:
    """Ping an address until it answers; what the ping printed that was answered. LabError if none was in so many seconds.

    A ping of several packets ends at the first error, and until a node answers its neighbours say that it is not there.
    """
    ping = ["sh", "-c", 'until ping -n -q -c1 -W1 "$0"; do sleep 0.05; done', str(address)]
    return (await node.run(ping, timeout=patience)).stdout


async def passes(lab: Lab, source: str, target: str, *, tcp: bool = False) -> bool:
    """Whether a node is reached by UDP, or by TCP: asked every 50 ms until it is, or until a cut has dropped `DROPPED` of that."""
    kind, port = ("tcp", 5301) if tcp else ("udp", 5302)
    asked, listens = lab.nodes[target], _LISTEN[kind].replace("PORT", str(port))
    send = _SEND.replace("KIND", "socket.SOCK_STREAM" if tcp else "socket.SOCK_DGRAM").replace("PORT", str(port))
    listener = await asked.spawn(["python3", "-c", listens])
    await asked.until({"kind": f"{kind}-port", "port": port}, PATIENCE)
    before = await dropped(asked)
    sender = await lab.nodes[source].spawn(["python3", "-c", send.replace("HOST", str(lab.address(target)))])
    try:
        async with asyncio.timeout(PATIENCE):
            while True:
                with contextlib.suppress(TimeoutError):
                    ended = await asyncio.wait_for(listener.wait(), 0.1)
                    assert ended.code == 0, "the listener failed, and heard nothing"
                    return True
                if await dropped(asked) >= before + DROPPED:
                    return listener.exit is not None and listener.exit.code == 0
    except TimeoutError:
        pytest.fail(f"nothing of {source} reaches {target}, and nothing is dropped there")
    finally:
        await asyncio.gather(sender.stop(), listener.stop())


async def dropped(node: Node) -> int:
    """Packets that cuts have dropped as they reached a node."""
    rules = (await node.run(["nft", "list", "ruleset"])).stdout
    return sum(int(packets) for packets in re.findall(r"counter packets (\d+) bytes \d+ drop", rules))
