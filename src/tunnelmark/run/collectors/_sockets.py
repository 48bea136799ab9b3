"""Lists the TCP connections of a node with `ss`.

`ss` runs in the node's network, but outside its control group, so that the node is not charged for it.
"""

from __future__ import annotations

import asyncio
import os
import subprocess

from tunnelmark.host.programs import find
from tunnelmark.linux import netns


class Connections:
    """Lists a node's established TCP connections, and adds up in `cpu` the CPU seconds that `ss` used."""

    def __init__(self) -> None:
        """Find `ss`; ToolNotFoundError if it is not installed."""
        self._ss = str(find("ss", ("iproute2",)))
        self.cpu = 0.0

    async def of(self, agent: int) -> str:
        """Return what `ss -tin` prints in the network of the node with that agent; OSError if it fails."""
        text, cpu = await asyncio.to_thread(netns.network_of, agent, self._show)
        self.cpu += cpu
        return text

    def _show(self) -> tuple[str, float]:
        argv = [self._ss, "-tinH", "state", "established"]
        with subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            printed, said = process.stdout.read(), process.stderr.read()
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise OSError(f"ss ended with code {process.returncode}: {said.strip()}")
        return printed, usage.ru_utime + usage.ru_stime
