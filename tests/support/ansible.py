"""Runs the playbook deploy/ansible/hosts.yml against this machine, by the local connection, and has the cards that its hosts would have."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[2]
PLAYBOOK = ROOT / "deploy" / "ansible" / "hosts.yml"
_HERE = Path(sys.executable).parent / "ansible-playbook"
PROGRAM = str(_HERE) if _HERE.exists() else shutil.which("ansible-playbook")
NEEDS = "needs ansible-playbook (ansible-core, which `make setup` installs)"

CARDS = """\
set -e
ip link set lo up
for n in 1 2 3; do
    ip link add card$n type veth peer name peer$n
    ip address add 198.51.100.1$n/24 dev card$n
    ip link set card$n mtu $MTU up
done
exec "$@"
"""
"""Three cards with addresses of the lab's network, in a network namespace that ends with the program."""


def play(
    folder: Path,
    *arguments: str,
    inventory: str | Path,
    values: Mapping[str, object],
    mtu: int | None = None,
    playbook: Path = PLAYBOOK,
    environment: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run the playbook; `inventory` is a file or its text. With `mtu`, where there are three cards of that MTU (root)."""
    assert PROGRAM is not None
    if isinstance(inventory, str):
        file = folder / "inventory.yml"
        file.write_text(inventory)
        inventory = file
    given = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable, "ansible_become": "false"}
    extra = [word for key, value in (given | dict(values)).items() for word in ("-e", f"{key}={value}")]
    argv: Sequence[str] = [PROGRAM, "-i", str(inventory), str(playbook), *extra, *arguments]
    if mtu is not None:
        argv = ["unshare", "--net", "sh", "-c", CARDS, "sh", *argv]
    return subprocess.run(
        argv,
        env={
            **{key: value for key, value in os.environ.items() if not key.startswith("ANSIBLE_")},
            "ANSIBLE_HOME": str(folder / "ansible"),
            "ANSIBLE_LOCAL_TEMP": str(folder / "ansible" / "tmp"),
            "ANSIBLE_REMOTE_TEMP": str(folder / "ansible" / "remote"),
            "ANSIBLE_NOCOLOR": "1",
            "ANSIBLE_PIPELINING": "1",
            "ANSIBLE_DISPLAY_SKIPPED_HOSTS": "1",
            "MTU": str(mtu),
            "LC_ALL": "C.UTF-8",
            **(environment or {}),
        },
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )


def changed(done: subprocess.CompletedProcess[str]) -> dict[str, int]:
    """How many tasks changed something, by host, from the recap."""
    rows = done.stdout.partition("PLAY RECAP")[2].splitlines()[1:]
    return {row.split()[0]: int(row.partition("changed=")[2].split()[0]) for row in rows if "changed=" in row}
