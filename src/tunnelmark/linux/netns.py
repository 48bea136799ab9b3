"""Runs a function inside the network namespace of another process, without charging a node for its CPU time.

The function runs in a thread of its own that enters the namespace and then ends: each thread has its own namespace, and
the command's threads must not change theirs. A program that the function starts is in the namespace too. It stays in
the command's control groups, which count its CPU time.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

from tunnelmark.linux import syscalls

_Result = TypeVar("_Result")


def network_of(pid: int, work: Callable[[], _Result]) -> _Result:
    """Run `work` in the network namespace of a process, and return its result; an error of `work` is raised here."""
    results: list[_Result] = []
    errors: list[BaseException] = []

    def enter() -> None:
        try:
            syscalls.enter(pid, "net")
            results.append(work())
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return results[0]
