"""Runs a deployment: carries out its steps, waits until it answers and has converged, and restarts parts of it."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Collection, Coroutine, Iterable, Sequence
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path
from typing import Any, TypeVar

from tunnelmark.errors import NotReady, WorkloadFailed
from tunnelmark.host.programs import path_of
from tunnelmark.lab.labs import Lab
from tunnelmark.model.steps import Command, CommandSucceeds, Daemon
from tunnelmark.plan.model import InnerNetwork
from tunnelmark.run import inner_network, overlay_interfaces
from tunnelmark.run.background import background, together
from tunnelmark.run.deployment_steps import LOOK_AGAIN, MORE_TIME, STEP_TIMEOUT, DeploymentSteps
from tunnelmark.run.overlay_interfaces import Interfaces
from tunnelmark.run.supervisor import BESIDE, PAUSE, DaemonSupervisor
from tunnelmark.vpns.base import Converged, Deployment
from tunnelmark.vpns.direct import UNDERLAY_INTERFACE
from tunnelmark.workloads.base import FOLDER as WORKLOAD_FOLDER

NORMAL = {"mtu": 1280, "txqueuelen": 500}
"""Settings of every normalised overlay interface. `mtu`: bytes; the least that IPv6 requires of a link (RFC 8200
section 5), so that all VPNs can have it. `txqueuelen`: packets; the default of a TUN device (Linux:
drivers/net/tun.c)."""

_PING_INTERVAL = "0.01"  # seconds between readiness pings; bounds the error of the time to first packet
_FEW = 12  # up to so many nodes, all pairs ping each other
_ASK_EVERY, _ASK_TIMES = 10, 100_000  # neighbour requests until the first packet: ms between two, their number

# By default a neighbour request is sent once a second, up to three times (arp(7)). If a VPN that is not up yet loses
# one, the first packet would be a second late. The script prints the settings that were in force before.
_ASK = 'cd /proc/sys/net/"$0"/neigh/"$1" && cat retrans_time_ms mcast_solicit && echo "$2" >retrans_time_ms && echo "$3" >mcast_solicit'

# Leaves what a kernel has after a boot: its own interfaces and routing rules. The lab's own cuts stay as well.
_FORGET_NETWORK = """
for name in $(ls /sys/class/net); do case $name in lo|eth*) ;; *) ip link delete dev "$name" 2>/dev/null ;; esac; done
for family in -4 -6; do
  ip $family rule flush
  ip $family rule add lookup main priority 32766
done
ip -4 rule add lookup default priority 32767
nft list tables 2>/dev/null | while read -r _ family name; do
  case $name in cut_*) ;; *) nft delete table "$family" "$name" ;; esac
done
true"""

_Result = TypeVar("_Result")


def asked(nodes: Sequence[str]) -> list[tuple[str, str]]:
    """Return the pairs of nodes that ping each other before a trial; in each pair, the later of `nodes` comes first.

    Up to 12 nodes are all paired with each other. If there are more, each node is paired with the first node, and with
    the nodes before and after it in `nodes`, because a hundred nodes have 4,950 pairs, and the programs that wait for
    answers would take all of a small machine's time.
    """
    if len(nodes) <= _FEW:
        return [(later, earlier) for place, later in enumerate(nodes) for earlier in nodes[:place]]
    ring = [(nodes[place], nodes[place - 1]) for place in range(1, len(nodes))] + [(nodes[-1], nodes[0])]
    return list(dict.fromkeys([*ring, *((node, nodes[0]) for node in nodes[1:])]))


class RunningDeployment:
    """A deployment on a lab: its overlay's interfaces and addresses, its times, and its daemons.

    `first_packet`: seconds from the start of the first daemon (direct: from the first ping) to the first answered ping,
    by direction `a>b`. `begun`: that start, in seconds of the monotonic clock. `bare`: True without a VPN.
    """

    def __init__(
        self,
        lab: Lab,
        deployment: Deployment,
        logs: Path,
        *,
        path: str = "",
        normalised: bool = False,
        inner: InnerNetwork | None = None,
        logs_are: str = BESIDE,
    ) -> None:
        self._lab = lab
        self._deployment = deployment
        env = {"PATH": path or path_of()}
        self._supervisor = DaemonSupervisor(lab, logs, env, logs_are)
        self._steps = DeploymentSteps(lab, self._supervisor, env, logs_are)
        self._logs_are = logs_are
        self._normalised = normalised
        self._inner = inner
        self.encrypted = deployment.encrypted
        self.relayed = deployment.relayed
        self.arrives_from = deployment.arrives_from
        self.bare = all(overlay.interface == UNDERLAY_INTERFACE for overlay in deployment.overlays.values())
        overlay_interfaces.check(deployment)
        self.interface = {node: overlay.interface for node, overlay in deployment.overlays.items()}
        self._overlay = dict(self.interface)  # the VPN's own interfaces; an inner network replaces `interface`
        self._overlay_address: dict[str, IPv4Address | IPv6Address] = {}
        self._interfaces = Interfaces(lab, self.interface)
        self.address: dict[str, IPv4Address | IPv6Address] = {}
        self.first_packet: dict[str, float] = {}
        self.begun = 0.0

    async def start(self) -> None:
        """Run the deployment's `staging` commands, write its `files`, and carry out its `phases` one after the other.

        Raises SetupFailed if a command fails or a program cannot be started, NotReady if a step waits for something for
        more than STEP_TIMEOUT seconds, and DaemonDied if a daemon ends meanwhile.
        """
        await self._interfaces.remember()
        await self._steps.stage(self._deployment.staging)
        await asyncio.gather(*(self._steps.place(file) for file in self._deployment.files))
        for phase in self._deployment.phases:
            await together(*(self._steps.carry_out(step, STEP_TIMEOUT) for step in phase))

    async def answer(self, timeout: float) -> None:
        """Wait until pings were answered over the overlay in both directions between all pairs of nodes of `asked`.

        Raises NotReady after `timeout` seconds, or sooner if a VPN is up on another interface than its driver says, and
        DaemonDied if a daemon ends.
        """
        await self._interfaces.unless_misnamed(self._answer(timeout))

    async def _answer(self, timeout: float) -> None:
        begun = self.begun = self._supervisor.begun if self._supervisor.begun is not None else time.monotonic()
        deadline = time.monotonic() + timeout
        for node, overlay in self._deployment.overlays.items():
            self.address[node] = overlay.address or await self._read_address(node, overlay.interface, deadline)
        nodes = list(self.address)
        pairs = asked(nodes)
        async with background(*(self._ask_often(node, timeout) for node in nodes)) as tasks:
            asking = dict(zip(nodes, tasks, strict=True))

            async def both_ways(later: str, earlier: str) -> None:
                await asyncio.wait([asking[later], asking[earlier]])
                # One side pings first: the later node, which dials where one side must. Two WireGuard peers that begin
                # their handshakes at the same moment discard each other's, and wait 5 s (REKEY_TIMEOUT).
                for source, target in ((later, earlier), (earlier, later)):
                    answered = await self._first_answer(source, target, deadline)
                    self.first_packet[f"{source}>{target}"] = answered - begun

            try:
                await asyncio.wait_for(self.unless_dead(together(*(both_ways(*pair) for pair in pairs))), timeout)
            except TimeoutError:
                directions = [way for a, b in pairs for way in (f"{a}>{b}", f"{b}>{a}")]
                silent = ", ".join(one for one in directions if one not in self.first_packet)
                raise NotReady(
                    await self._interfaces.missing()
                    or f"no ping was answered over the overlay within {timeout:g} s: {silent}",
                    hint=f"see the daemons' logs {self._logs_are}; {MORE_TIME}",
                ) from None
        await together(*(self._ask(node, *before.result()) for node, before in asking.items() if before.result()))
        if self._normalised:
            await self._normalise(nodes)
        if self._inner is not None:
            ways = [way for a, b in pairs for way in ((a, b), (b, a))]
            await self._go_inside(self._inner, ways, timeout, deadline)

    async def wait_converged(self, timeout: float) -> None:
        """Wait until all conditions of `Deployment.converged` hold.

        Raises NotReady if they do not hold within `timeout` seconds, and DaemonDied if a daemon ends.
        """
        await self.unless_dead(
            together(*(self._settled(one, time.monotonic() + timeout) for one in self._deployment.converged))
        )

    async def unless_dead(self, work: Coroutine[Any, Any, _Result]) -> _Result:
        """Wait for `work`, and return its result.

        Raises DaemonDied, and cancels `work`, as soon as a daemon ends that no method of this class has killed.
        """
        return await self._supervisor.unless_dead(work)

    async def restart(self, node: str, *, fresh: bool = False, patience: float = STEP_TIMEOUT) -> None:
        """Kill the daemons of a node as a crash would, and start them again.

        `fresh`: delete the files that the daemons wrote before. `patience`: seconds that a step may wait for something.
        The method does not wait until pings are answered.
        """
        await self.stop([node])
        await self.begin_again([node], fresh=fresh, patience=patience)

    async def stop(self, nodes: Collection[str]) -> None:
        """Kill the daemons of some nodes as a crash would."""
        await self._supervisor.kill(lambda daemon: daemon.node in nodes)

    async def begin_again(self, nodes: Collection[str], *, fresh: bool = False, patience: float = STEP_TIMEOUT) -> None:
        """Carry out the deployment's phases again on these nodes, whose daemons `stop` or `power_off` has killed.

        With `fresh`, the files that the daemons wrote are deleted first, and the deployment's files are written again.
        Raises NotReady if a step waits for something for more than `patience` seconds. `first_packet` is emptied, and a
        later `answer` counts from the first daemon that is started here. The method does not wait for pings.
        """
        if fresh:
            await together(*(self._forget(node) for node in nodes))
        self._supervisor.begun = None
        self.first_packet.clear()
        for phase in self._deployment.phases:
            await together(*(self._steps.carry_out(step, patience) for step in phase if step.node in nodes))
        for node in nodes if self._normalised or self._inner is not None else ():
            await self._lab.nodes[node].until({"kind": "interface", "name": self._overlay[node]}, patience)
            if self._normalised:
                await self._normalise([node])
            if self._inner is not None:
                await self._make_inside(self._inner, node)

    async def next_answer(self, node: str, patience: float) -> float:
        """Ping the node that follows `node` in the mesh (after the last: the first) until a ping is answered.

        Return when the ping was answered, in monotonic seconds. Raises LabError if the overlay interface of `node` is
        missing for `patience` seconds. The pings go on without a limit until one is answered, or the caller cancels.
        """
        names = list(self.address)
        other = names[(names.index(node) + 1) % len(names)]
        await self._lab.nodes[node].until({"kind": "interface", "name": self.interface[node]}, patience)
        return await self._first_answer(node, other, time.monotonic() + patience)

    async def power_off(self, nodes: Collection[str]) -> None:
        """Kill the daemons of nodes whose links are down, and delete the interfaces, rules and filters that they made.

        Files stay, as on a disk, even those in /run: the deployment has its files there.
        """
        await self.stop(nodes)
        forget = ("sh", "-c", _FORGET_NETWORK)
        await together(*(self._steps.command(Command(node, forget)) for node in nodes))

    async def stop_control(self) -> None:
        """Kill the daemons of the VPN's control service on all nodes. Raises WorkloadFailed if the VPN has none."""
        self.require_control()
        await self._supervisor.kill(lambda daemon: daemon.control)

    async def start_control(self, *, patience: float = STEP_TIMEOUT) -> None:
        """Start the daemons of the VPN's control service again; each must be ready within `patience` seconds."""
        for phase in self._deployment.phases:
            services = [step for step in phase if isinstance(step, Daemon) and step.control]
            await together(*(self._supervisor.start(service, patience) for service in services))

    def require_control(self) -> None:
        """Raise WorkloadFailed if the VPN has no control service of its own."""
        if not any(isinstance(step, Daemon) and step.control for phase in self._deployment.phases for step in phase):
            raise WorkloadFailed(
                "this VPN has no control service that could be restarted",
                hint="only arms with one (tailscale, netbird, innernet, netmaker, n2n) can answer that question",
            )

    async def _forget(self, node: str) -> None:
        await self._lab.nodes[node].forget([WORKLOAD_FOLDER.name, "lock"])
        await asyncio.gather(*(self._steps.place(file) for file in self._deployment.files if file.node == node))

    async def _normalise(self, nodes: Iterable[str]) -> None:
        """Give overlay interfaces the MTU and the queue that all normalised arms have."""
        wanted = [str(word) for pair in NORMAL.items() for word in pair]
        await together(
            *(
                self._steps.command(Command(node, ("ip", "link", "set", "dev", self._overlay[node], *wanted)))
                for node in nodes
            )
        )

    async def _go_inside(
        self, inner: InnerNetwork, ways: Iterable[tuple[str, str]], timeout: float, deadline: float
    ) -> None:
        """Make the inner network on the overlay; wait until a ping is answered inside it in each direction (`ways`)."""
        self._overlay_address = dict(self.address)
        await together(*(self._make_inside(inner, node) for node in self.address))
        self.address = {**inner_network.addresses(self.address, ipv6=inner.ipv6)}
        self.interface = dict.fromkeys(self.interface, inner_network.INTERFACES[inner.kind])
        pings = together(*(self._first_answer(*way, deadline) for way in ways))
        try:
            await asyncio.wait_for(self.unless_dead(pings), timeout)
        except TimeoutError:
            raise NotReady(f"no ping was answered inside {inner} within {timeout:g} s", hint=MORE_TIME) from None

    async def _make_inside(self, inner: InnerNetwork, node: str) -> None:
        """Make a node's interface of the inner network, unless it exists."""
        if (
            await self._lab.nodes[node].run(["ip", "link", "show", "dev", inner_network.INTERFACES[inner.kind]])
        ).code == 0:
            return
        mtu = int(await self._lab.nodes[node].read(f"/sys/class/net/{self._overlay[node]}/mtu"))
        for step in inner_network.commands(node, self._overlay_address, inner, mtu):
            await self._steps.command(step)

    async def _settled(self, one: Converged | CommandSucceeds, deadline: float) -> None:
        if isinstance(one, CommandSucceeds):
            await self._steps.holds(one, deadline)
            return
        process, log = self._supervisor.process(one.node, one.daemon), self._supervisor.log(one.node, one.daemon)
        while time.monotonic() < deadline:
            before = log.stat().st_size
            await process.signal(one.signal)
            await asyncio.sleep(LOOK_AGAIN)
            said = log.read_bytes()[before:].decode(errors="replace")
            if len(re.findall(one.pattern, said, re.MULTILINE)) >= one.count:
                return
        raise NotReady(
            f"{one.daemon} on {one.node} runs, but did not converge in time",
            hint=f"the end of its log says what it waits for; {MORE_TIME}",
        )

    async def _read_address(self, node: str, interface: str, deadline: float) -> IPv4Address | IPv6Address:
        """Wait until the interface has a global address; return the first: some VPNs choose addresses themselves."""
        while time.monotonic() < deadline:
            shown = await self._lab.nodes[node].run(["ip", "-o", "addr", "show", "dev", interface, "scope", "global"])
            words = shown.stdout.split()
            if shown.code == 0 and len(words) > 3:
                return ip_address(words[3].partition("/")[0])
            await asyncio.sleep(PAUSE)
        raise NotReady(
            await self._interfaces.missing() or f"{interface} on {node} got no address in time",
            hint=f"see the daemons' logs {self._logs_are}; {MORE_TIME}",
        )

    async def _ask_often(self, node: str, timeout: float) -> list[str]:
        """Wait for the overlay interface, let it send neighbour requests as often as pings; return the old settings."""
        # It waits longer than its caller, which waits for the answers: the caller's error says more.
        await self._lab.nodes[node].until({"kind": "interface", "name": self.interface[node]}, timeout + STEP_TIMEOUT)
        return await self._ask(node, str(_ASK_EVERY), str(_ASK_TIMES))

    async def _ask(self, node: str, milliseconds: str, times: str) -> list[str]:
        family = f"ipv{self.address[node].version}"
        argv = ("sh", "-c", _ASK, family, self.interface[node], milliseconds, times)
        return (await self._lab.nodes[node].run(argv, timeout=STEP_TIMEOUT)).stdout.split()

    async def _first_answer(self, source: str, target: str, deadline: float) -> float:
        """Send a ping every 10 ms until one is answered; return the time of that, in monotonic seconds."""
        address = str(self.address[target])
        while True:
            left = max(1, round(deadline - time.monotonic()))
            argv = ["ping", "-n", "-q", "-c1", f"-w{left}", "-i", _PING_INTERVAL, address]
            process = await self._lab.nodes[source].spawn(argv)
            try:
                end = await process.wait()
            except asyncio.CancelledError:
                await process.signal(9)
                raise
            if end.code == 0:
                return end.time
            await asyncio.sleep(PAUSE)
