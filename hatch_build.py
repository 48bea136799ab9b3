"""Puts the project's own programs, which are in Rust, into the wheel: built by cargo, on Linux, where there is a cargo.

Without them a wheel holds all that reads results (`tunnelmark report`, `merge`), and is for every system.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

FOLDER = "tunnelmark/bin"
"""Where they are in the package; `tunnelmark.host.programs` looks there."""


class Programs(BuildHookInterface):  # type: ignore[type-arg] # its configuration has no model
    """The hook of the wheel."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build the programs and have them taken along; an editable installation finds them in the checkout."""
        if version == "editable":
            return
        cargo = shutil.which("cargo", path=f"{os.environ.get('PATH', os.defpath)}:{Path.home()}/.cargo/bin")
        if not sys.platform.startswith("linux") or cargo is None:
            self.app.display_warning("without cargo on Linux the wheel can read results, but make no lab")
            return
        build_data["force_include"] |= {str(file): f"{FOLDER}/{file.name}" for file in self._built(cargo)}
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{sysconfig.get_platform().replace('-', '_').replace('.', '_')}"

    def _built(self, cargo: str) -> list[Path]:
        argv = [cargo, "build", "--release", "--locked", "--workspace", "--bins", "--message-format", "json"]
        done = subprocess.run(argv, cwd=self.root, stdout=subprocess.PIPE, text=True, check=True)
        messages = (json.loads(line) for line in done.stdout.splitlines() if line.startswith("{"))
        made = [Path(one["executable"]) for one in messages if one.get("executable")]
        return [file for file in made if file.name.startswith("tunnelmark-")]
