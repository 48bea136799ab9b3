"""Finds the programs that the lab, the VPNs and the workloads need: their paths, versions and hashes."""

from __future__ import annotations

import functools
import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tunnelmark import former_names
from tunnelmark.errors import MissingPart
from tunnelmark.host import paths

_SYSTEM_FOLDERS = ("/usr/local/sbin", "/usr/sbin", "/sbin")  # not on every user's PATH, but daemons are there
PACKAGES_VARIABLE = "TUNNELMARK_PACKAGES"
"""Environment variable with the folder into which recipes install."""

NAMED_VARIABLE = "TUNNELMARK_BIN"
"""Environment variable with a folder of programs that come before all others; `--bin NAME=PATH` fills one."""

_PACKAGED = Path(__file__).resolve().parents[1] / "bin"  # in a wheel (hatch_build.py)
BUILT = _PACKAGED if _PACKAGED.is_dir() else Path(__file__).resolve().parents[3] / "target" / "release"
"""The folder of our own programs: in the installed package, or where set-up builds them in a checkout."""

_TIMEOUT = 10  # seconds that a program may take to print its version


@dataclass(frozen=True, slots=True)
class Requirement:
    """A part that is to be installed: its programs, the Debian packages that contain them, its version command.

    The first group of `version_pattern` is the version. `essential`: no lab works without it.
    `recipe` is the recipe in `data/recipes/` that installs the programs into a folder of their own. `strict`: no other
    version will do, so the same program elsewhere on PATH does not count. `kernel`: the features that the kernel must
    have, by the names of `host.kernel_features`. `own`: paths of programs that come before all others (see `with_own`).
    """

    name: str
    programs: tuple[str, ...]
    packages: tuple[str, ...]
    version: tuple[str, ...] = ()
    version_pattern: str = ""
    essential: bool = False
    recipe: str = ""
    strict: bool = False
    kernel: tuple[str, ...] = ()
    own: tuple[str, ...] = ()


TOOLS: tuple[Requirement, ...] = (
    Requirement("ping", ("ping",), ("iputils-ping",), ("ping", "-V"), r"iputils (\S+)", essential=True),
    Requirement("iproute2", ("ip", "tc", "ss"), ("iproute2",), ("ip", "-V"), r"iproute2-(\S+?),", essential=True),
    Requirement("util-linux", ("nsenter", "unshare"), ("util-linux",), ("nsenter", "--version"), r"util-linux (\S+)"),
    Requirement("ethtool", ("ethtool",), ("ethtool",), ("ethtool", "--version"), r"version (\S+)"),
    Requirement("tcpdump", ("tcpdump",), ("tcpdump",), ("tcpdump", "--version"), r"tcpdump version (\S+)"),
    Requirement("nftables", ("nft",), ("nftables",), ("nft", "--version"), r"nftables v(\S+)"),
    Requirement("iperf3", ("iperf3",), ("iperf3",), ("iperf3", "--version"), r"iperf (\S+)"),
)
"""The tools besides the VPNs; the VPNs' own programs are named in their drivers."""


def packages_home() -> Path:
    """Return the folder in which `tunnelmark packages install` makes one subfolder for each recipe.

    TUNNELMARK_PACKAGES names it. By default it is `tunnelmark/packages` in XDG_DATA_HOME.
    """
    if chosen := os.environ.get(PACKAGES_VARIABLE) or os.environ.get(former_names.PACKAGES_VARIABLE):
        return Path(chosen)
    return _newest(paths.data("packages"))


def _newest(folder: Path) -> Path:
    """Return `folder`, or the folder under its former name if only that exists."""
    old = folder.with_name(former_names.PACKAGES_FOLDER)
    return old if old.is_dir() and not folder.is_dir() else folder


def recipe_folder(recipe: str) -> Path:
    """Return the folder of a recipe: below `packages_home()`, or under sudo in the home of the user who called it."""
    own, theirs = packages_home() / recipe, caller_packages()
    return theirs / recipe if theirs is not None and not own.is_dir() and (theirs / recipe).is_dir() else own


def caller_packages() -> Path | None:
    """Return the folder into which recipes install for the user who called sudo.

    None without sudo, or if the environment names another folder.
    """
    caller = os.environ.get("SUDO_USER", "")
    if not caller or PACKAGES_VARIABLE in os.environ or former_names.PACKAGES_VARIABLE in os.environ:
        return None
    return _newest(Path(os.path.expanduser(f"~{caller}"), ".local/share/tunnelmark/packages"))


def with_own(part: Requirement, programs: Mapping[str, str]) -> Requirement:
    """Return the part with `programs` (path by name) as its field `own`; {} leaves it as it is.

    With programs, the part's recipe need not be installed.
    """
    return replace(part, own=tuple(programs.values()), strict=False) if programs else part


def path_of(recipe: str = "", strict: bool = False, own: Sequence[str] = ()) -> str:
    """Return the PATH on which a VPN's programs are searched, as folders joined by colons.

    The folders are, in order: those of the programs `own`, the folder TUNNELMARK_BIN that the option `--bin` fills, the
    folder of the VPN's recipe (none if `recipe` is ""), and `search_path()`. With `strict` the recipe's folder comes
    before TUNNELMARK_BIN, because no other version will do.
    """
    named = [folder] if (folder := os.environ.get(NAMED_VARIABLE)) else []
    installed = [str(recipe_folder(recipe) / "bin")] if recipe else []
    first = [*installed, *named] if strict else [*named, *installed]
    return os.pathsep.join([*dict.fromkeys(os.path.dirname(path) for path in own), *first, search_path()])


def search_path() -> str:
    """Return PATH with the folders of daemons, and of our own programs, added at its end."""
    given = [folder for folder in os.environ.get("PATH", os.defpath).split(os.pathsep) if folder]
    return os.pathsep.join([*given, *(folder for folder in (*_SYSTEM_FOLDERS, str(BUILT)) if folder not in given)])


def how_to_install(packages: Sequence[str], recipe: str = "") -> str:
    """Return the commands that install a recipe and Debian packages, as a hint."""
    commands = [f"tunnelmark packages install {recipe}"] if recipe else []
    if packages:
        commands.append("apt-get install " + " ".join(packages))
    return " and ".join(commands) or "install it, and put it on PATH"


def find(
    program: str, packages: Sequence[str] = (), recipe: str = "", strict: bool = False, own: Sequence[str] = ()
) -> Path:
    """Return the path of a program; MissingPart if it is missing, with a hint that names its packages or recipe.

    See `Requirement` for `recipe`, `strict` and `own`.
    """
    if (named := next((path for path in own if os.path.basename(path) == program), None)) is not None:
        if not os.access(named, os.X_OK) or not os.path.isfile(named):  # another one must not run in its place
            raise MissingPart(f"the program {named} is not there", hint="build it again, or name another one")
        return Path(named)
    found = shutil.which(program, path=path_of(recipe, strict, own))
    if found is None or (strict and recipe and not (recipe_folder(recipe) / "bin").is_dir()):
        raise MissingPart(
            f"the program {program} is not installed" + (f" in the version {recipe}" if strict else ""),
            hint=how_to_install(packages or _packages(program), recipe),
        )
    return Path(found)


def version(
    argv: Sequence[str],
    pattern: str,
    packages: Sequence[str] = (),
    recipe: str = "",
    strict: bool = False,
    own: Sequence[str] = (),
) -> str:
    """Run the command `argv`, and return the first group of `pattern` in its output (both streams).

    Return `unknown` if nothing matches, or if the command takes more than 10 s. An exit code other than 0 is not an
    error: some programs print their version and then complain. Raises MissingPart when the program is not there or
    cannot be started.
    """
    program = find(argv[0], packages, recipe, strict, own)
    try:
        done = subprocess.run(
            [program, *argv[1:]],
            env=os.environ | {"PATH": path_of(recipe, strict, own)},
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


def part_version(part: Requirement) -> str:
    """Return a part's version; "part of the lab" if it has no version command. MissingPart if a program is missing."""
    require(part)
    if not part.version:
        return "part of the lab"
    return version(part.version, part.version_pattern, part.packages, part.recipe, part.strict, part.own)


def require(part: Requirement) -> dict[str, Path]:
    """Return the paths of a part's programs by name; MissingPart names the first missing program or kernel feature."""
    if part.kernel:
        from tunnelmark.host import kernel_features  # only here: where results are read there may be no netlink

        kernel_features.require(part.kernel)
    return {program: find(program, part.packages, part.recipe, part.strict, part.own) for program in part.programs}


def digest(path: Path) -> str:
    """Return the SHA-256 of a file's bytes in hexadecimal, as it is now; OSError if it cannot be read."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@functools.lru_cache
def sha256(path: Path) -> str:
    """Return what `digest` returned for the path first: a program does not change while it is measured."""
    return digest(path)


def _packages(program: str) -> tuple[str, ...]:
    return next((tool.packages for tool in TOOLS if program in tool.programs), ())
