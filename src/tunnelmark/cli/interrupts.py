"""Handles Ctrl-C: a command ends within two seconds of it, whatever it is doing, and says how to go on.

The first Ctrl-C raises KeyboardInterrupt wherever the command is, also in the middle of work that does not await
anything, and everything is taken down in order. If that takes too long, or at a second Ctrl-C, the process ends at
once: the kernel and the janitor remove what a lab has made, as after `kill -9`.
"""

from __future__ import annotations

import _thread
import logging
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

CODE = 130
"""The exit code of a command that was stopped: 128 + SIGINT, as shells have it."""

ANEW = "nothing is left of it; run the same command to start again"

_PATIENCE = 1.2  # seconds for an orderly end: less than two, because a machine may pause
_NUDGES = (0.01, 0.1, 0.5)  # seconds from one to the next
_SHOW_CURSOR = b"\x1b[?25h"  # a progress bar that is cut off leaves it hidden

_words: Callable[[], str] = lambda: ANEW  # noqa: E731  # the message if the command is stopped now
_stopped = False


def goes_on(words: str | Callable[[], str]) -> None:
    """Set the words that say how to go on if the command is stopped from now on: a sentence without its full stop."""
    global _words  # noqa: PLW0603  # one command runs in a process
    _words = words if callable(words) else lambda: words


def sentence() -> str:
    """Return the message that is printed when the command has been stopped."""
    return f"stopped; {_words()}"


@contextmanager
def heard() -> Iterator[None]:
    """Handle Ctrl-C for the length of a command; where it is ignored, as after a shell's `&`, it stays ignored."""
    goes_on(ANEW)
    try:
        before = signal.getsignal(signal.SIGINT)
        if before is signal.SIG_IGN:
            yield
            return
        signal.signal(signal.SIGINT, _hear)
    except ValueError:  # not in the main thread, where no signal is handled
        yield
        return
    try:
        with _nudged():
            yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _nudged() -> Iterator[None]:
    """Interrupt a system call that began just after a signal, while the block runs.

    If the signal comes after Python's last check for signals and before the call, Python sees it only when the call
    returns, which may be never. So a thread that the kernel's own handler informs of the signal ends the call by a
    further signal, which has no other effect.
    """
    reading, bell = os.pipe2(os.O_CLOEXEC)
    os.set_blocking(bell, False)
    urgent = signal.signal(signal.SIGURG, lambda *_: None)  # a signal that is ignored would end no call
    wakeup = signal.set_wakeup_fd(bell, warn_on_full_buffer=False)
    _thread.start_new_thread(_nudge, (reading, _thread.get_ident()))
    try:
        yield
    finally:
        signal.set_wakeup_fd(wakeup)
        signal.signal(signal.SIGURG, urgent)
        os.close(bell)  # ends the thread


def _nudge(reading: int, main: int) -> None:
    while said := os.read(reading, 64):
        for pause in _NUDGES if signal.SIGINT in said else ():
            time.sleep(pause)
            signal.pthread_kill(main, signal.SIGURG)
    os.close(reading)


def _hear(_: int, __: FrameType | None) -> None:
    global _stopped  # noqa: PLW0603
    if _stopped:
        _end()
    _stopped = True
    logging.getLogger("asyncio").addFilter(_says_more)
    # No `threading`: its locks may be held by the very code that was interrupted.
    _thread.start_new_thread(_insist, ())
    raise KeyboardInterrupt


def _says_more(record: logging.LogRecord) -> bool:
    """Filter the log: return False for asyncio's complaint that the KeyboardInterrupt of a task was never retrieved."""
    return not (record.exc_info and isinstance(record.exc_info[1], KeyboardInterrupt))


def _insist() -> None:
    time.sleep(_PATIENCE)
    _end()


def _end() -> None:
    try:
        if sys.stdout.isatty():
            os.write(1, _SHOW_CURSOR)
        os.write(2, f"\n{sentence()}\n".encode())
    finally:
        os._exit(CODE)
