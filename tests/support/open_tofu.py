"""Runs OpenTofu, or Terraform, which reads the same files, on a copy of deploy/tofu, with a stand-in for the provider that is built here."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PROGRAM = shutil.which("tofu") or shutil.which("terraform")
GO = shutil.which("go", path=f"{os.environ.get('PATH', os.defpath)}:/usr/local/go/bin")
NEEDS_PROGRAM = "needs tofu (or terraform)"
NEEDS_GO = "needs Go, which builds the stand-in for the provider"

OVERRIDES = """\
provider_installation {{
  dev_overrides {{
    "hashicorp/aws" = "{folder}"
  }}
  direct {{}}
}}
"""

VALUES = """\
ssh_from       = "203.0.113.7/32"
ssh_public_key = "ssh-ed25519 AAAA me@laptop"
hours          = {hours}
at_most        = {at_most}
price_per_hour = {{ amount = 1.5, currency = "USD", source = "an example", date = "2026-11-25" }}
"""


def stand_in(folder: Path) -> None:
    """Build the stand-in into a folder, by the name that the program looks for. The first time takes half a minute."""
    assert GO is not None
    argv = [GO, "build", "-o", str(folder / "terraform-provider-aws"), "."]
    subprocess.run(argv, cwd=ROOT / "tools" / "cloud-stand-in", check=True, timeout=500)


@dataclass(frozen=True)
class Tofu:
    """A copy of deploy/tofu, in which nothing is fetched: `plugins` has the stand-in."""

    folder: Path
    plugins: Path

    @classmethod
    def in_copy(cls, folder: Path, plugins: Path) -> Tofu:
        shutil.copytree(
            ROOT / "deploy" / "tofu", folder / "tofu", ignore=shutil.ignore_patterns(".terraform*", "*.tfstate*")
        )
        (folder / "tofu.rc").write_text(OVERRIDES.format(folder=plugins))
        return cls(folder, plugins)

    def values(self, *, hours: float = 8, at_most: float = 50) -> None:
        (self.folder / "tofu" / "aws" / "lab.tfvars").write_text(VALUES.format(hours=hours, at_most=at_most))

    def run(self, module: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        assert PROGRAM is not None
        environment = {key: value for key, value in os.environ.items() if not key.startswith(("TF_", "AWS_"))}
        environment |= {"TF_CLI_CONFIG_FILE": str(self.folder / "tofu.rc"), "CHECKPOINT_DISABLE": "1"}
        return subprocess.run(
            [PROGRAM, *arguments],
            cwd=self.folder / "tofu" / module,
            env=environment,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
