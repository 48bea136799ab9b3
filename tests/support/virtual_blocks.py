"""What a worker carries out in tests of the cluster in place of a lab: blocks that take a moment and say who measured them."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from tunnelmark.cluster import worker
from tunnelmark.cluster.tasks import BlockDone, BlockTask, WorkerFacts
from tunnelmark.errors import LabError

SECONDS = 0.3


def facts(task: BlockTask, name: str) -> WorkerFacts:
    """Programs that are the same everywhere."""
    return WorkerFacts(name, {"tunnelmark": "0.1.0"}, "same")


def measured(task: BlockTask, name: str) -> BlockDone:
    """A block that takes `SECONDS`, or as many as the task's settings say."""
    time.sleep(task.settings.get("seconds", SECONDS))
    assert task.number is not None
    return BlockDone(task.number, name, "", "{}", (), b"", SECONDS)


def held(task: BlockTask, name: str) -> BlockDone:
    """A block that is measured once there is the file that the task's settings name for its worker."""
    while not Path(task.settings["until"][name]).exists():
        time.sleep(0.02)
    return measured(task, name)


def fails(task: BlockTask, name: str) -> BlockDone:
    """A block that cannot be measured."""
    raise LabError("no room", hint="make some")


def fails_on_w1(task: BlockTask, name: str) -> BlockDone:
    """A block that the worker w1 cannot measure."""
    return fails(task, name) if name == "w1" else measured(task, name)


def endless(task: BlockTask, name: str) -> BlockDone:
    """A block by a process of its own that ends only with its input; the task's study names a file for the number of that process."""
    begins = f"import os, pathlib, sys; pathlib.Path({task.study!r}).write_text(str(os.getpid())); sys.stdin.read()"
    worker.listening([sys.executable, "-c", begins])
    raise LabError("it was ended")


def says_nothing(task: BlockTask, name: str) -> WorkerFacts:
    """What a worker would measure with, which it does not say."""
    time.sleep(3600)
    return facts(task, name)
