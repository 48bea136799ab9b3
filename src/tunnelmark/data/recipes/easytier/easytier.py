"""EasyTier as a daemon: `easytier FILE` runs a node by a configuration file (JSON, or TOML as easytier-core reads it).

It says `ready` when the node runs, stays in the foreground, and ends on SIGTERM. On SIGUSR1 it says in how many
hops it reaches each other node. `--version` prints the core's version.
"""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path

import easytier_pyo3  # type: ignore[import-not-found]  # in the virtual environment of this recipe only


def main(argument: str) -> None:
    """Run a node until SIGTERM or SIGINT. `argument`: the configuration file, or `--version` to print the version."""
    if argument == "--version":
        say(f"easytier-core {easytier_pyo3.version()}")
        return
    text = Path(argument).read_text()
    node = easytier_pyo3.Node(json.loads(text) if text.lstrip().startswith("{") else text)
    # Blocked before the node's threads begin, so that none of them takes the signal.
    signals = {signal.SIGTERM, signal.SIGINT, signal.SIGUSR1}
    signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    node.start()
    say("ready")
    while signal.sigwait(signals) == signal.SIGUSR1:
        for route in node.routes():
            say(f"reaches {route['hostname']} in {route['cost']}")
    node.stop()


def say(line: str) -> None:
    """Print a line at once."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: easytier FILE | --version")
    main(sys.argv[1])
