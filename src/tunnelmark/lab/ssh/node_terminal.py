"""Runs a program in a terminal of its own, on a node of another host.

Standard input carries the keys that are typed, standard output what the terminal shows. Started as `python -I
node_terminal.py ROWS COLUMNS PROGRAM...`, by its path, because a node's programs have no package. When its input ends,
the terminal hangs up.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import termios
from collections.abc import Sequence
from pathlib import Path

_MOST = 1 << 16  # bytes read at once


def wrapped(command: Sequence[str], rows: int, columns: int) -> list[str]:
    """Return the arguments of a command that runs `command` in a terminal of that size."""
    return [sys.executable, "-I", str(Path(__file__)), str(rows), str(columns), *command]


def main(rows: int, columns: int, command: Sequence[str]) -> int:
    """Run the command to its end; return its exit code as a shell would: 128 plus the number if a signal ended it."""
    ours, theirs = os.openpty()
    termios.tcsetwinsize(theirs, (rows, columns))
    began, begins = os.pipe()  # closed by exec: keys before that would be no one's
    pid = os.fork()
    if pid == 0:
        try:
            os.close(ours)
            os.login_tty(theirs)
            signal.signal(signal.SIGHUP, signal.SIG_DFL)  # under nohup it is ignored, also by programs that are started
            os.execvp(command[0], list(command))
        except OSError as error:
            os.write(2, f"{command[0]}: {error.strerror}\n".encode())
        finally:
            os._exit(127)
    os.close(theirs)
    os.close(begins)
    os.read(began, 1)
    _carry(ours)
    os.close(ours)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return code if code >= 0 else 128 - code


def _carry(terminal: int) -> None:
    """Carry bytes in both directions until either side ends."""
    os.set_blocking(terminal, False)
    typed = b""
    while True:
        reading = [terminal] if typed else [terminal, 0]
        ready, room, _ = select.select(reading, [terminal] if typed else [], [])
        try:
            if terminal in ready:
                shown = memoryview(os.read(terminal, _MOST))
                if not shown:
                    return
                while shown:
                    shown = shown[os.write(1, shown) :]
            if room:
                typed = typed[os.write(terminal, typed) :]
        except BlockingIOError:
            continue
        except OSError:  # EIO: no program has the terminal any more; or our reader is gone
            return
        if 0 in ready and not (typed := os.read(0, _MOST)):
            return


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]))
