"""Whether runs that add blocks keep their promises, at full size; `stopping_bars.py --quick` is the short form."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def test_runs_that_stop_when_they_are_precise_keep_their_promises() -> None:
    program = Path(__file__).with_name("stopping_bars.py")
    done = subprocess.run([sys.executable, program], check=False, capture_output=True, text=True)
    print(f"\n{done.stdout}")
    assert done.returncode == 0, done.stderr
