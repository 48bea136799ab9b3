"""Whether the machine as a level keeps its promises, in the short form; `machine_level.py` has all of it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def test_the_machine_as_a_level_keeps_its_promises() -> None:
    program = Path(__file__).with_name("machine_level.py")
    done = subprocess.run([sys.executable, program, "--quick"], check=False, capture_output=True, text=True)
    print(f"\n{done.stdout}")
    assert done.returncode == 0, done.stderr
