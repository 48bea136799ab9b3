"""Owns a running guest (a virtual machine): boots it, runs commands in it, reports what went wrong, and removes it."""

from __future__ import annotations

import asyncio
import codecs
import contextlib
import os
import secrets
import shlex
import shutil
import signal
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType

from tunnelmark.errors import LabError, MissingPart
from tunnelmark.host.programs import find, how_to_install
from tunnelmark.lab.node import Completed
from tunnelmark.lab.vm import initramfs, kernel, kvm, qemu

BOOT_MODULES = ("virtio_pci", "9pnet_virtio", "9p", "overlay")
"""The modules without which the guest cannot see the host's files. The guest's kernel loads all others on demand."""

BUSYBOX = ("busybox-static",)
"""The Debian package of a busybox that needs no libraries."""

_PATIENCE = 3.0  # seconds between asking a guest to end and killing it
_TAIL = 15  # lines of each log that an error shows
_HASTE = 0.5  # seconds for the same when the task is cancelled
_LOOK = 0.2  # seconds between two looks at a command's output


class Guest:
    """A virtual machine with a stock kernel, the host's files (read-only, changes stay in memory) and one writable
    folder.

    `async with Guest(share=folder) as machine: done = await machine.run(["tc", "-V"], timeout=10)`

    `share`: the writable folder, with the same path in the guest and on the host; None: a temporary folder.
    `release`: the kernel (`6.1.0-40-amd64`); "": the distribution's current one.
    `modules`: the modules to load at boot, in addition to those that the kernel loads by itself.
    `logs`: a folder in the share for `console.log`; None: the share itself.
    `accelerator`: `kvm` or `tcg`; None: `kvm` if it works here and the clock is not counted, else `tcg`.
    `boot_timeout`: the seconds that it may take to boot. LabError if it takes longer.
    """

    def __init__(
        self,
        share: Path | None = None,
        *,
        hardware: qemu.Hardware | None = None,
        release: str = "",
        modules: Sequence[str] = (),
        logs: Path | None = None,
        accelerator: qemu.Accelerator | None = None,
        boot_timeout: float = 120.0,
    ) -> None:
        self.hardware = hardware or qemu.Hardware()
        self.release = release
        self.accelerator: qemu.Accelerator = accelerator or "tcg"
        self._choose = accelerator is None
        self._modules = (*BOOT_MODULES, *modules)
        self._boot_timeout = boot_timeout
        self._own = share is None
        self.share = (share or Path(tempfile.gettempdir(), f"tunnelmark-vm-{secrets.token_hex(4)}")).resolve()
        self.logs = (logs or self.share).resolve()
        self._commands = self.logs / ".commands"  # removed at the end
        self._process: asyncio.subprocess.Process | None = None
        self._listener: asyncio.Task[None] | None = None
        self._waiting: dict[int, asyncio.Future[int]] = {}
        self._ready: asyncio.Future[None] | None = None
        self._next = 1

    @property
    def console(self) -> Path:
        """The file that gets the messages of the guest's kernel."""
        return self.logs / "console.log"

    async def __aenter__(self) -> Guest:
        try:
            await self._boot()
        except BaseException:
            await self._end()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._end(_HASTE if kind is asyncio.CancelledError else _PATIENCE)

    async def run(
        self,
        argv: Sequence[str],
        timeout: float | None,
        *,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        follow: Callable[[str], None] | None = None,
    ) -> Completed:
        """Run a command as the guest's root, and wait for its end, at most `timeout` seconds of the host's clock (None:
        no limit).

        Several may run at once. LabError if it takes longer (then the whole guest is ended), or if the guest ends
        before the command does. An exit code other than 0 is not an error. `follow` gets the command's standard output
        piece by piece, shortly after it is printed.
        """
        if self._process is None or self._process.stdin is None:
            raise LabError("the virtual machine is not running", hint="use it as `async with Guest() as machine`")
        number, self._next = self._next, self._next + 1
        folder = self._commands / str(number)
        folder.mkdir(parents=True)
        (folder / "command").write_text(script(argv, env or {}, cwd or self.share))
        ended: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._waiting[number] = ended
        if self._listener is None or self._listener.done():
            raise self._died()
        self._process.stdin.write(f"run {number}\n".encode())
        try:
            async with _following(folder / "stdout", follow):
                code = await asyncio.wait_for(ended, timeout)
        except TimeoutError:
            self._kill()
            raise LabError(
                f"{argv[0]} did not end within {timeout or 0:g} s in the virtual machine{self._said()}",
                hint="an emulated machine is slow: ask for less work, or give it more time",
            ) from None
        finally:
            self._waiting.pop(number, None)
        out, err = ((folder / stream).read_text(errors="replace") for stream in ("stdout", "stderr"))
        return Completed(code, out, err)

    async def _boot(self) -> None:
        program = find(qemu.PROGRAM, kvm.PACKAGES)
        setpriv = find("setpriv", ("util-linux",))
        first_programs = busybox()
        chosen = await kernel.fetch(self.release)
        self.release = chosen.release
        if self._choose and not self.hardware.virtual_clock:
            self.accelerator = await kvm.choose()
        self._commands.mkdir(parents=True, exist_ok=True)
        first = self._commands / "initramfs"
        modules = chosen.load(self._modules)
        places = str(chosen.modules), str(self.share), str(self._commands)
        first.write_bytes(initramfs.build(first_programs, modules, chosen.release, *places))
        line = qemu.command_line(
            self.hardware,
            self.accelerator,
            kernel=chosen.image,
            initramfs=first,
            share=self.share,
            console=self.console,
        )
        with (self.logs / "qemu.log").open("wb") as log:
            # The kernel ends QEMU when this process dies, however it dies.
            self._process = await asyncio.create_subprocess_exec(
                *(str(setpriv), "--pdeathsig", "KILL", "--", str(program), *line[1:]),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=log,
                start_new_session=True,
            )
        self._ready = asyncio.get_running_loop().create_future()
        self._listener = asyncio.create_task(self._listen())
        try:
            await asyncio.wait_for(self._ready, self._boot_timeout)
        except TimeoutError:
            raise LabError(
                f"the virtual machine did not boot within {self._boot_timeout:g} s{self._said()}",
                hint=f"look at {self.console}, and at what else this machine is doing",
            ) from None

    async def _listen(self) -> None:
        """Handle the messages of the guest's agent until QEMU ends; all that still wait then get an error."""
        assert self._process is not None and self._process.stdout is not None and self._ready is not None
        while line := await self._process.stdout.readline():
            word, *rest = line.decode(errors="replace").split() or [""]
            if word == "ready" and not self._ready.done():
                self._ready.set_result(None)
            elif word == "done":
                number, code = map(int, rest)
                ended = self._waiting.get(number)
                if ended is not None and not ended.done():
                    ended.set_result(code)
        died = self._died()
        if not self._ready.done():
            self._ready.set_exception(died)
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(died)

    def _died(self) -> LabError:
        return LabError(
            f"the virtual machine ended by itself{self._said()}",
            hint=f"{self.console} and qemu.log next to it have all of its output; memory may be short",
        )

    def _said(self) -> str:
        """Return the last lines of QEMU's output and of the console, for an error; "" if there are none."""
        lines: list[str] = []
        for file in (self.logs / "qemu.log", self.console):
            if file.exists():
                lines += file.read_text(errors="replace").splitlines()[-_TAIL:]
        return ": " + "\n".join(["", *lines]) if lines else ""

    def _kill(self) -> None:
        if self._process is not None and self._process.returncode is None:
            self._process.send_signal(signal.SIGKILL)

    async def _end(self, patience: float = _PATIENCE) -> None:
        """End the guest: ask it to end, kill it after `patience` seconds, and remove all files but the results."""
        process, self._process = self._process, None
        try:
            if process is not None and process.returncode is None:
                if process.stdin is not None and self._ready is not None and self._ready.done():
                    process.stdin.write(b"end\n")
                    try:
                        await asyncio.wait_for(process.wait(), patience)
                    except TimeoutError:
                        process.kill()
                else:
                    process.kill()
                await process.wait()
        finally:
            if process is not None and process.returncode is None:
                process.kill()
            if self._listener is not None:
                await asyncio.gather(self._listener, return_exceptions=True)
            shutil.rmtree(self.share if self._own else self._commands, ignore_errors=True)


def script(argv: Sequence[str], env: Mapping[str, str], cwd: Path) -> str:
    """Return a shell script that runs a command in a folder, with additions to its environment."""
    lines = [f"export {name}={shlex.quote(value)}" for name, value in env.items()]
    return "\n".join([*lines, f"cd {shlex.quote(str(cwd))} || exit 125", f"exec {shlex.join(argv)}", ""])


@contextlib.asynccontextmanager
async def _following(file: Path, follow: Callable[[str], None] | None) -> AsyncIterator[None]:
    """Pass on to `follow` what is appended to a file, during the block and once more at its end."""
    if follow is None:
        yield
        return
    decoder, done = codecs.getincrementaldecoder("utf-8")("replace"), 0

    def look() -> None:
        nonlocal done
        if file.exists():
            with file.open("rb") as opened:
                opened.seek(done)
                new = opened.read()
            done += len(new)
            if text := decoder.decode(new):
                follow(text)

    async def keep_looking() -> None:
        while True:
            look()
            await asyncio.sleep(_LOOK)

    looking = asyncio.create_task(keep_looking())
    try:
        yield
    finally:
        looking.cancel()
        look()


def busybox() -> bytes:
    """Return the content of a busybox that needs no libraries: the guest has none before it mounts the host's files.

    MissingPart if this machine has none.
    """
    path = find("busybox", BUSYBOX)
    content = Path(os.path.realpath(path)).read_bytes()
    if b"/ld-linux" in content:
        raise MissingPart(
            f"{path} needs libraries, which a booting machine does not have", hint=how_to_install(BUSYBOX)
        )
    return content
