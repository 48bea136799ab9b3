"""Whether the statistics keep their promises, in the short form; `statistics_bars.py` has all of it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def test_the_statistics_keep_their_promises() -> None:
    program = Path(__file__).with_name("statistics_bars.py")
    done = subprocess.run([sys.executable, program, "--quick"], check=False, capture_output=True, text=True)
    print(f"\n{done.stdout}")
    assert done.returncode == 0, done.stderr
