"""Delays the effect of Ctrl-C during a moment in which the program could not act upon it."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def held_back() -> Iterator[None]:
    """Let a Ctrl-C that comes within the body of the `with` statement take effect at the end of the body.

    Blocking the signal (pthread_sigmask(2)) would not do: it would reach another thread, and Python would raise
    KeyboardInterrupt in the main thread all the same.
    """
    came: list[int] = []
    try:
        before = signal.signal(signal.SIGINT, lambda number, _: came.append(number))
    except ValueError:  # not in the main thread, where nothing is raised
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if came:
            signal.raise_signal(signal.SIGINT)
