"""Runs a function inside the network namespace of another process, and no node is charged for its CPU time.

A thread of its own goes there and ends with it: a namespace is entered by a thread, and the command's must stay where
they are. A program that the thread starts is there too, and counts as the command's in every control group.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

from tunnelmark.linux import syscalls

_Result = TypeVar("_Result")


def network_of(pid: int, work: Callable[[], _Result]) -> _Result:
    """Run `work` in the network namespace of a process and return its result; an error of it is raised here."""
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
