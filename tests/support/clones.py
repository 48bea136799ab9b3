"""Makes real clones of this checkout in places of one's choice, installed as set-up does it but within seconds."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_GIT = "[safe]\n\tdirectory = *\n"
"""All of git's settings: it clones others' checkouts too, without hooks and templates of who runs the tests."""


def clone(folder: Path) -> Path:
    """A clone in a new folder `tunnelmark` there, with this checkout's code as it is now; returns its path.

    What set-up fetches and compiles is taken from this checkout: third-party packages are found here, and the programs in Rust
    are copies. The project itself is installed by pip, which also writes the command.
    """
    made = folder / "tunnelmark"
    with tempfile.NamedTemporaryFile("w") as settings:
        settings.write(_GIT)
        settings.flush()
        _do("git", "clone", "--quiet", "--local", str(ROOT), str(made), GIT_CONFIG_GLOBAL=settings.name)
    for part in ("src", "scripts"):  # what was not committed yet is tested too
        shutil.copytree(ROOT / part, made / part, dirs_exist_ok=True)
    _do(sys.executable, "-m", "venv", "--without-pip", str(made / ".venv"))
    python = made / ".venv" / "bin" / "python"
    packages = next((made / ".venv" / "lib").glob("python*/site-packages"))
    (packages / "third-party.pth").write_text("".join(f"{place}\n" for place in sys.path if "site-packages" in place))
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--disable-pip-version-check"]
    _do(*pip, "--no-deps", "--no-build-isolation", "--no-index", "--force-reinstall", "-e", str(made))
    programs = made / "target" / "release"
    programs.mkdir(parents=True)
    for program in (ROOT / "target" / "release").glob("tunnelmark-*"):
        if os.access(program, os.X_OK):
            shutil.copy2(program, programs)
    return made


def study(folder: Path, *, measured: bool = False) -> Path:
    """`make demo`'s study in a clone, shortened: one block, three of its arms, trials of a second.

    Its rate is what the machine carries (`measured`), or one that needs no measurement.
    """
    text = next(folder.glob("src/tunnelmark/data/studies/quick.toml")).read_text()
    for arm in (
        "anchor-chacha20",
        "wireguard-go",
        "openvpn",
        'openvpn-again"\nsame_as = "openvpn',
        "nebula",
        "yggdrasil",
    ):
        text = text.replace(f'[[arm]]\nname = "{arm}"\n\n', "")
    text = text.replace("blocks = 8", "blocks = 1").replace('duration = "2 s"', 'duration = "1 s"')
    assert text.count("[[arm]]") == 3, text
    if not measured:
        assert 'profiles = ["auto"]' in text
        text = text.replace('profiles = ["auto"]', 'profiles = ["fast-ethernet"]')
    file = folder / "short.toml"
    file.write_text(text)
    return file


def run(
    clone: Path, *arguments: str | Path, env: Mapping[str, str] | None = None, timeout: float = 240
) -> subprocess.CompletedProcess[str]:
    """Run the clone's own command as its Makefile does, from the clone."""
    return subprocess.run(
        ["scripts/as-root", ".venv/bin/tunnelmark", *map(str, arguments)],
        cwd=clone,
        env={name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
        | {"COLUMNS": "120", "TUNNELMARK_MEASURE": "no", "TUNNELMARK_NO_WAIT": "1"}
        | dict(env or {}),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


def _do(*argv: str, **git: str) -> None:
    env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    env |= {"GIT_CONFIG_NOSYSTEM": "1"} | git
    done = subprocess.run(argv, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
