"""Finds installed Debian packages with their versions, and installs others by apt without starting a service.

`scripts/setup` installs the packages that every lab needs in the same way. Both write a file policy-rc.d that forbids
services to start, and a marker in that file, by which each knows the other's file and may remove it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

POLICY = Path("/usr/sbin/policy-rc.d")
_MARKER = "# tunnelmark set-up: no package may start a service"
_DENIED = 101  # what policy-rc.d answers where no service may be started (invoke-rc.d(8))

# $1: the policy's path; the rest: apt's packages. An owner's own policy is never written to: apt sees ours over it, in a
# mount namespace of its own. A unit that was enabled would start at the next boot, so it is disabled.
SCRIPT = f"""
set -eu
policy=$1
shift
deny() {{ printf '#!/bin/sh\\n%s\\nexit {_DENIED}\\n' '{_MARKER}' >"$1"; chmod 755 "$1"; }}
ours() {{ grep -qsF '{_MARKER}' "$policy"; }}
export DEBIAN_FRONTEND=noninteractive NEEDRESTART_SUSPEND=1
apt="apt-get -o DPkg::Lock::Timeout=600"
over=
if ours || [ ! -e "$policy" ]; then
    trap 'if ours; then rm -f "$policy"; fi' EXIT
    trap 'exit 130' INT TERM
    deny "$policy"
elif "$policy" openvpn start >/dev/null 2>&1; [ $? -ne {_DENIED} ]; then
    over=$(mktemp)
    trap 'rm -f "$over"' EXIT
    deny "$over"
fi
quietly() {{
    if [ -n "$over" ]; then
        unshare --mount sh -c 'mount --bind "$0" "$1" && shift && exec "$@"' "$over" "$policy" "$@"
    else
        "$@"
    fi
}}
# Lists that are there may do; the second time is for those that are missing or too old.
if ! quietly $apt install -y --no-install-recommends "$@"; then
    $apt update
    quietly $apt install -y --no-install-recommends "$@"
fi
command -v systemctl >/dev/null || exit 0
dpkg -L "$@" | grep -E '/systemd/system/[^/@]+\\.service$' | while read -r unit; do
    systemctl disable "$(basename "$unit")" >/dev/null 2>&1 || true
done
"""


def command(packages: Sequence[str]) -> tuple[str, ...]:
    """Return the command that installs packages; it begins with sudo if this process is not root."""
    root = () if os.geteuid() == 0 else ("sudo",)
    return (*root, "sh", "-c", SCRIPT, "apt", str(POLICY), *packages)


def versions(packages: Sequence[str]) -> dict[str, str]:
    """Return the version of each of these packages that is installed; {} without dpkg-query."""
    if shutil.which("dpkg-query") is None:
        return {}
    argv = ["dpkg-query", "-W", "-f", "${db:Status-Status} ${Package} ${Version}\n", *packages]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    found = (line.split() for line in done.stdout.splitlines())
    return {words[1]: words[2] for words in found if len(words) == 3 and words[0] == "installed"}
