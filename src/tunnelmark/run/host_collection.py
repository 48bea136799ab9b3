"""Runs a trial's collectors on this host, for a command on another host; they look at the lab's nodes that are here."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tunnelmark.host import pauses
from tunnelmark.lab.labs import MIDDLE
from tunnelmark.lab.ssh.host_lab import HostLab
from tunnelmark.run import collected_plain, interference
from tunnelmark.run.collection import Collection
from tunnelmark.run.collectors import collectors
from tunnelmark.run.collectors.base import Collector, CollectorContext, ObservedNode


class HostCollections:
    """The collections of the trials that are measured now, one for each lab with nodes on this host."""

    def __init__(self) -> None:
        self._going: dict[str, Collection] = {}
        self._before: dict[str, interference.Glance] = {}

    async def asked(self, message: Mapping[str, Any], lab: HostLab) -> Mapping[str, Any]:
        """Carry out one request, and return the answer; it is {} for all requests but `end`.

        `message`: `what` is the name of the request. `prepare` comes while the mesh is idle; it also has `collectors`
        (names) and the keys that `context_of` reads. `begin` has no other key. The answer to `end` has `findings` (see
        `collected_plain.plain`), `files` (the text of each raw file, by name) and `machine` (as in `Attempt.host`).
        `give up` comes when the lab ends: it removes what is left of a trial that failed before `end`.
        """
        folder = lab.scratch / lab.name
        match message["what"]:
            case "prepare":
                folder.mkdir()
                context = context_of(message, lab, folder)
                these = [collectors()[name] for name in message["collectors"]]
                self._going[lab.name] = Collection(context, [each for each in these if looks(each, context)])
            case "begin":
                await self._going[lab.name].begin()
                self._before[lab.name] = interference.glance(lab.cpu_seconds())
            case "end":
                machine = await self._machine(lab)
                findings = await self._going.pop(lab.name).found()
                files = {path.name: path.read_text(errors="replace") for path in folder.iterdir()}
                shutil.rmtree(folder)
                return {
                    "findings": [collected_plain.plain(each) for each in findings],
                    "files": files,
                    "machine": machine,
                }
            case "give up":
                self._before.pop(lab.name, None)
                if (collection := self._going.pop(lab.name, None)) is not None:
                    collection.give_up()
                shutil.rmtree(folder, ignore_errors=True)
            case unknown:
                raise ValueError(f"unknown request {unknown!r}")
        return {}

    async def _machine(self, lab: HostLab) -> dict[str, float]:
        """Return what this host did besides the lab since `begin`, and pauses (`Attempt.host`); {} without `begin`."""
        if (before := self._before.pop(lab.name, None)) is None:
            return {}
        after, seen = interference.glance(lab.cpu_seconds()), await lab.seen()
        begin, end = (int(one.time * 1e9) for one in (before, after))
        still = {} if seen is None else pauses.host(seen.pauses, begin, end)
        return interference.between(before, after) | still


def looks(collector: Collector, context: CollectorContext) -> bool:
    """Return whether a collector has something to look at on this host."""
    match collector.looks_at:
        case "all":
            return bool(context.nodes or context.middle)
        case "ends":
            return bool(context.ends)
        case "source":
            return "source" in context.ends
        case _:
            return False


def context_of(asked: Mapping[str, Any], lab: HostLab, raw: Path) -> CollectorContext:
    """Return what collectors may look at on this host.

    `asked`: the request `prepare`: the keys of `CollectionOverHosts.prepare`, and `clock`: by how many seconds the
    nodes' CLOCK_MONOTONIC is ahead of this host's. `raw`: the folder for raw files. A node may use all cores of this
    host. If the links run through this host, too, they share its cores.
    """
    cores = tuple(range(os.cpu_count() or 1))
    nodes = {
        name: ObservedNode(lab.agents[name], lab.group(name), cores, lab.counted_headers(name), **said)
        for name, said in asked["nodes"].items()
        if name in lab.agents
    }
    middle = None
    if MIDDLE in lab.agents:
        middle = ObservedNode(lab.agents[MIDDLE], lab.group(MIDDLE), () if nodes else cores)
    return CollectorContext(
        nodes,
        asked["source"],
        asked["target"],
        raw,
        middle=middle,
        card=asked["card"],
        begun=asked["begun"],
        clock=asked["clock"],
    )
