"""Runs a program whose input and output are far away (`far.py SECONDS PROGRAM ...`): each byte arrives later by so many seconds."""

from __future__ import annotations

import os
import queue
import subprocess
import sys
import threading
import time

_PIECE = 1 << 16


def carry(source: int, target: int, later: float) -> threading.Thread:
    """Copy from one open file to another, each piece so much later, and the end with it."""
    waiting: queue.SimpleQueue[tuple[float, bytes]] = queue.SimpleQueue()

    def take() -> None:
        while True:
            data = os.read(source, _PIECE)
            waiting.put((time.monotonic() + later, data))
            if not data:
                return

    def give() -> None:
        while True:
            due, data = waiting.get()
            time.sleep(max(due - time.monotonic(), 0.0))
            if not data:
                os.close(target)
                return
            view = memoryview(data)
            try:
                while view:
                    view = view[os.write(target, view) :]
            except BrokenPipeError:
                return

    threading.Thread(target=take, daemon=True).start()
    giving = threading.Thread(target=give, daemon=True)
    giving.start()
    return giving


def main() -> int:
    """The program's exit code, once all that it wrote has arrived."""
    later, program = float(sys.argv[1]), sys.argv[2:]
    with subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None and process.stdout is not None
        carry(0, os.dup(process.stdin.fileno()), later)
        process.stdin.close()
        carry(process.stdout.fileno(), 1, later).join()
        return process.wait()


if __name__ == "__main__":
    sys.exit(main())
