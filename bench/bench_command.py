"""How long the command takes until it says something: `make bench` prints the median of ten."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

ROUNDS = 10
BOUND = 0.25  # seconds, median; a shell that completes names waits as long


def test_help_is_there_at_once() -> None:
    took = []
    for _ in range(ROUNDS):
        began = time.monotonic()
        subprocess.run(
            [sys.executable, "-c", "import sys; from tunnelmark.cli import main; sys.exit(main())", "--help"],
            check=True,
            capture_output=True,
        )
        took.append(time.monotonic() - began)
    print(f"\n--help: median {1e3 * statistics.median(took):.0f} ms, slowest {1e3 * max(took):.0f} ms")
    assert statistics.median(took) < BOUND
