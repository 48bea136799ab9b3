"""Fetches the guest's kernel: Debian's package, unpacked into the user's cache, never installed."""

from __future__ import annotations

import asyncio
import fcntl
import lzma
import os
import platform
import re
import shutil
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tunnelmark.errors import MissingPart
from tunnelmark.host import paths
from tunnelmark.host.programs import find
from tunnelmark.lab.vm import modules

_META = "linux-image-amd64"  # depends on the distribution's current kernel
_FETCH_TIMEOUT = 900  # seconds for 70 to 100 MB


@dataclass(frozen=True, slots=True)
class Kernel:
    """A kernel outside of /boot: its release, its image, and the folder of its modules with a modules.dep."""

    release: str
    image: Path
    modules: Path

    def load(self, names: Iterable[str]) -> Mapping[str, bytes]:
        """Return the modules `names` and all that they need: uncompressed content by file name, in the order of
        loading.

        Raises MissingPart for a module that this kernel does not have.
        """
        builtin = (self.modules / "modules.builtin").read_text().split()
        dependencies = modules.parse((self.modules / "modules.dep").read_text())
        return {
            f"{modules.name(path)}.ko": _uncompressed(self.modules / path)
            for path in modules.closure(names, dependencies, builtin)
        }


def cache_folder() -> Path:
    """Return the folder of kernels: `tunnelmark/kernels` in the user's cache (XDG_CACHE_HOME)."""
    return paths.cache("kernels")


def cached(cache: Path | None = None) -> tuple[str, ...]:
    """Return the releases that are in the cache, in alphabetical order."""
    folder = cache or cache_folder()
    return tuple(sorted(path.name for path in folder.glob("[!.]*") if path.is_dir()))


async def fetch(release: str = "", cache: Path | None = None) -> Kernel:
    """Return the kernel of a release (`6.1.0-40-amd64`; "": the distribution's current one), from the cache or the
    archive.

    Raises MissingPart if it is not cached and apt cannot fetch it, or if this machine is not x86_64.
    """
    if platform.machine() != "x86_64":
        raise MissingPart(
            f"the virtual machine is made for x86_64, and this is {platform.machine()}",
            hint="use a machine whose own kernel has what you need (tunnelmark doctor says what it has)",
        )
    cache = cache or cache_folder()
    release = release or await current()
    folder = cache / release
    if not folder.exists():
        cache.mkdir(parents=True, exist_ok=True)
        with (cache / ".lock").open("w") as lock:
            # Two runs at once: one fetches, the other waits and finds it there.
            await asyncio.to_thread(fcntl.flock, lock, fcntl.LOCK_EX)
            if not folder.exists():
                await _fetch(release, cache, folder)
    return Kernel(release, folder / "boot" / f"vmlinuz-{release}", folder / "lib" / "modules" / release)


async def current() -> str:
    """Return the release of the distribution's current kernel; MissingPart if apt does not know it."""
    return _release(await _output(["apt-cache", "depends", _META]))


def _release(depends: str) -> str:
    """Return the release in the output of `apt-cache depends` for the package that names the current kernel."""
    found = re.search(r"Depends: linux-image-(\d\S+)", depends)
    if found is None:
        raise MissingPart(f"apt knows no package {_META}", hint="run apt-get update; Debian and its kin have it")
    return found[1]


async def _fetch(release: str, cache: Path, folder: Path) -> None:
    """Download, unpack and index a kernel in a temporary folder, which gets its final name when all is well."""
    work = Path(tempfile.mkdtemp(prefix=".fetch-", dir=cache))
    try:
        # Root's cache is not open to apt's own user, which it would otherwise complain about.
        download = ["apt-get", "-q", "-o", "APT::Sandbox::User=root", "download", f"linux-image-{release}"]
        await _output(download, cwd=work)
        package = next(work.glob("*.deb"))
        await _output(["dpkg-deb", "-x", str(package), str(work / "root")])
        package.unlink()
        if (newer := work / "root" / "usr" / "lib" / "modules").exists():  # since Debian 13
            (work / "root" / "lib").mkdir(exist_ok=True)
            newer.rename(work / "root" / "lib" / "modules")
        if not (work / "root" / "lib" / "modules" / release / "modules.dep").exists():  # made when installed
            await _output(["busybox", "depmod", "-b", str(work / "root"), release])
        (work / "root").rename(folder)
    finally:
        shutil.rmtree(work, ignore_errors=True)


_PACKAGES = {"apt-cache": ["apt"], "apt-get": ["apt"], "dpkg-deb": ["dpkg"], "busybox": ["busybox-static"]}


async def _output(argv: Sequence[str], cwd: Path | None = None) -> str:
    """Return what a command prints; MissingPart if it fails or takes too long."""
    process = await asyncio.create_subprocess_exec(
        find(argv[0], _PACKAGES[argv[0]]),
        *argv[1:],
        cwd=cwd,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=os.environ | {"LC_ALL": "C"},
    )
    try:
        out, err = await asyncio.wait_for(process.communicate(), _FETCH_TIMEOUT)
        problem = err.decode(errors="replace").strip().rpartition("\n")[2]
    except TimeoutError:
        out, problem = b"", f"it took more than {_FETCH_TIMEOUT} s"
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        raise MissingPart(
            f"no kernel for the virtual machine: {' '.join(argv)}: {problem}",
            hint="run apt-get update, and see that the machine reaches its package archive",
        )
    return out.decode(errors="replace")


def _uncompressed(module: Path) -> bytes:
    """Return a module's content, uncompressed: Debian 13 ships modules as .xz."""
    content = module.read_bytes()
    return lzma.decompress(content) if module.suffix == ".xz" else content
