"""Requires root, and says how to become root on this machine."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from tunnelmark.errors import MissingPart


def require(what: str) -> None:
    """Raise MissingPart unless this process runs as root.

    `what`: the reason with which the error's message begins, such as "the lab makes network namespaces".
    """
    if os.geteuid() != 0:
        raise MissingPart(f"{what} and needs root", hint=how())


def how() -> str:
    """Return how to become root here, as a hint."""
    if shutil.which("sudo"):
        return "run it again with sudo"
    return (
        "there is no sudo here: become root (`su -`; in a container, start it as root), and run the same command again"
    )


def sudo_rule() -> str:
    """Return a hint: the one rule that lets this user run the command by sudo without a password, and its risk."""
    program = Path(sys.argv[0]).resolve()
    return (
        f'one rule is enough: echo "$USER ALL=(root) NOPASSWD: {program}" | sudo tee /etc/sudoers.d/tunnelmark; '
        "it gives all that root may do, because studies name programs to run"
    )
