"""Whether `tunnelmark ab` keeps its promises on simulated builds, at full size; `ab.py --quick` is the short form."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def test_equal_builds_stay_silent_and_slow_ones_are_found() -> None:
    program = Path(__file__).with_name("ab.py")
    done = subprocess.run([sys.executable, program], check=False, capture_output=True, text=True)
    print(f"\n{done.stdout}")
    assert done.returncode == 0, done.stderr
