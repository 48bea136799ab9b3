"""Finds the programs that the lab, the VPNs and the workloads need: where they are, which version, which bytes."""

from __future__ import annotations

import functools
import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tunnelmark.errors import MissingPart

_SYSTEM_FOLDERS = ("/usr/local/sbin", "/usr/sbin", "/sbin")  # not on everybody's PATH, but daemons live there
_TIMEOUT = 10  # seconds that a program may take to print its version


@dataclass(frozen=True, slots=True)
class Part:
    """Something that is to be installed: its programs, the Debian packages that bring them, its version command.

    The first group of `version_pattern` is the version. `essential` says that no lab works without it.
    """

    name: str
    programs: tuple[str, ...]
    packages: tuple[str, ...]
    version: tuple[str, ...] = ()
    version_pattern: str = ""
    essential: bool = False


TOOLS: tuple[Part, ...] = (
    Part("ping", ("ping",), ("iputils-ping",), ("ping", "-V"), r"iputils (\S+)", essential=True),
    Part("iproute2", ("ip", "tc", "ss"), ("iproute2",), ("ip", "-V"), r"iproute2-(\S+?),", essential=True),
    Part("util-linux", ("nsenter", "unshare"), ("util-linux",), ("nsenter", "--version"), r"util-linux (\S+)"),
    Part("ethtool", ("ethtool",), ("ethtool",), ("ethtool", "--version"), r"version (\S+)"),
    Part("tcpdump", ("tcpdump",), ("tcpdump",), ("tcpdump", "--version"), r"tcpdump version (\S+)"),
    Part("iperf3", ("iperf3",), ("iperf3",), ("iperf3", "--version"), r"iperf (\S+)"),
)
"""The tools beside the VPNs; the VPNs' own programs stand in their drivers."""


def search_path() -> str:
    """PATH with the folders of daemons at its end: where every program of the lab is looked for."""
    given = [folder for folder in os.environ.get("PATH", os.defpath).split(os.pathsep) if folder]
    return os.pathsep.join([*given, *(folder for folder in _SYSTEM_FOLDERS if folder not in given)])


def how_to_install(packages: Sequence[str]) -> str:
    """The command that brings Debian packages, as a hint."""
    return "apt-get install " + " ".join(packages) if packages else "install it, and put it on PATH"


def find(program: str, packages: Sequence[str] = ()) -> Path:
    """The path of a program; MissingPart says which packages bring it."""
    found = shutil.which(program, path=search_path())
    if found is None:
        raise MissingPart(
            f"the program {program} is not installed", hint=how_to_install(packages or _packages(program))
        )
    return Path(found)


def version(argv: Sequence[str], pattern: str, packages: Sequence[str] = ()) -> str:
    """The first group of `pattern` in what `argv` prints on either stream, or `unknown`.

    An exit code other than 0 is no error, for some programs print their version and then complain.
    Raises MissingPart when the program is not there or cannot be started.
    """
    program = find(argv[0], packages)
    try:
        done = subprocess.run(
            [program, *argv[1:]],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=_TIMEOUT,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return "unknown"
    except OSError as error:
        raise MissingPart(
            f"{program} cannot be started: {error.strerror}", hint=how_to_install(packages or _packages(argv[0]))
        ) from error
    match = re.search(pattern, done.stdout.decode(errors="replace"))
    return match[1] if match else "unknown"


def part_version(part: Part) -> str:
    """The version of a part whose programs are all there; MissingPart names the first that is not."""
    for program in part.programs:
        find(program, part.packages)
    return version(part.version, part.version_pattern, part.packages) if part.version else "part of the lab"


@functools.lru_cache
def sha256(path: Path) -> str:
    """The SHA-256 of a file's bytes in hexadecimal; OSError if it cannot be read."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _packages(program: str) -> tuple[str, ...]:
    return next((tool.packages for tool in TOOLS if program in tool.programs), ())
