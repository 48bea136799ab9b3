"""A machine made slower: a control group with a quota on the CPU, below which labs get theirs (TUNNELMARK_CGROUP).

As a program: `python slow_machine.py SHARE COMMAND...` runs a command whose labs, all cores together, may use so much of this
machine's CPU (0.25: a quarter). The command itself, which measures nothing while a trial runs, is not slowed.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

PERIOD_US = 100_000
"""The kernel's usual one. It hands the quota out in slices of 5 ms a core: of a period of 10 ms one core took all, and
programs on the other stood still at any load.
"""


@contextlib.contextmanager
def slowed(share: float) -> Iterator[dict[str, str]]:
    """The environment for commands whose labs may use that share of all cores; the group is gone afterwards."""
    from tunnelmark.linux import cgroup_cleanup, cgroups

    found = cgroups.find()
    assert found.cpu is not None, "this machine has no CPU controller"
    folder = found.cpu / f"slow-{os.getpid()}"
    quota = max(round(share * PERIOD_US * (os.cpu_count() or 1)), 1000)  # the kernel takes no less than 1 ms
    folder.mkdir()
    try:
        if (folder / "cpu.max").exists():
            (folder / "cpu.max").write_text(f"{quota} {PERIOD_US}")
        else:
            (folder / "cpu.cfs_period_us").write_text(str(PERIOD_US))
            (folder / "cpu.cfs_quota_us").write_text(str(quota))
            with contextlib.suppress(OSError):  # the emulator's, of which a group of v1 has none by itself
                (folder / "cpu.rt_runtime_us").write_text("200000")
        yield {cgroups.VARIABLE: folder.name}
    finally:
        for _ in range(100):  # until the last of the lab's processes is gone from it
            cgroup_cleanup.remove(str(folder))
            if not folder.exists():
                break
            time.sleep(0.1)


def throttled(environment: dict[str, str]) -> int:
    """How often the kernel has held the group of that environment back since it was made."""
    return _counted(environment, "nr_throttled")


def enforced(environment: dict[str, str]) -> int:
    """In how many periods the kernel has watched the quota of that group: those in which it had something to run.

    On a machine that is busy with other work it is not held back, because it does not even get its quota.
    """
    return _counted(environment, "nr_periods")


def _counted(environment: dict[str, str], name: str) -> int:
    from tunnelmark.linux import cgroups

    cpu = cgroups.find().cpu
    assert cpu is not None
    found = dict(line.split() for line in Path(cpu, environment[cgroups.VARIABLE], "cpu.stat").read_text().splitlines())
    return int(found[name])


if __name__ == "__main__":
    with slowed(float(sys.argv[1])) as extra:
        code = subprocess.run(sys.argv[2:], env=os.environ | extra, check=False).returncode
        print(f"held back {throttled(extra)} times", file=sys.stderr)
    sys.exit(code)
