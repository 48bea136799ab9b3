"""Whether TCP's receive window grows over a link with a delay, inside a VXLAN, where the emulator shares a core with the receiver.

    python bench/window_over_delay.py [--connections N] [--profile NAME]

Each connection is of three seconds on a link of its own; the window is what the receiver has announced at the end. One that has stayed
at 64 KiB (`stuck`) carries 10 Mbit/s at 50 ms, whatever the link.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from support.windows import FIRST, SECONDS, window


def main() -> None:
    """Print how many connections are stuck, and the windows of all."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--connections", type=int, default=10, metavar="N")
    parser.add_argument("--profile", default="edge-delay-50+gigabit", metavar="NAME")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as logs:
        found = [asyncio.run(window(chosen.profile, Path(logs))) for _ in range(chosen.connections)]
    stuck = sum(each <= FIRST for each in found)
    middle = statistics.median(found) / 1024
    print(
        f"{chosen.profile}: {stuck} of {len(found)} stuck at {FIRST >> 10} KiB, median {middle:.0f} KiB after {SECONDS} s"
    )
    print("KiB: " + " ".join(f"{each / 1024:.0f}" for each in found))


if __name__ == "__main__":
    main()
