"""A wheel holds all that the project is: its data, its programs in Rust, and what reads results where no lab can be made."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "docs" / "demo" / "results"
PROGRAMS = {f"tunnelmark-{name}" for name in ("anchor", "cores", "flame", "probe", "quic", "emulator")}


def do(*argv: str | Path, **env: str) -> subprocess.CompletedProcess[str]:
    """Run a command in an environment of its own, without a compiler; its output."""
    done = subprocess.run(argv, env=env, cwd="/", capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stdout + done.stderr  # 1: a gate of the results has not passed
    return done


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this checkout, whose programs in Rust set-up has built."""
    folder = tmp_path_factory.mktemp("wheel")
    argv = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (made,) = folder.glob("*.whl")
    return made


def reads_results(python: Path, folder: Path, **env: str) -> None:
    """`tunnelmark report` prints the published table and writes its reports."""
    copy = folder / "results"
    shutil.copytree(RESULTS, copy)
    command: list[str | Path] = [python, "-c", "from tunnelmark.cli import main; raise SystemExit(main())"]
    shown = do(*command, "report", copy, PATH="/nonexistent", HOME=str(folder), COLUMNS="112", **env)
    assert "against direct" in shown.stdout
    assert {"report.html", "report.md", "samples.parquet", "trials.parquet"} <= set(os.listdir(copy))
    said = json.loads(do(*command, "report", copy, "--json", PATH="/nonexistent", HOME=str(folder), **env).stdout)
    assert said["gates"]


def test_a_wheel_has_data_and_programs(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {name.rpartition("/")[2] for name in names if name.startswith("tunnelmark/bin/")} == PROGRAMS
    for kind in ("profiles", "topologies", "studies", "recipes", "matrix"):
        ours = {str(file.relative_to(ROOT / "src")) for file in (ROOT / "src/tunnelmark/data" / kind).rglob("*.toml")}
        assert ours <= names, kind
    assert "tunnelmark/report/web/report.js" in names
    assert not [name for name in names if name.startswith("tests/")]


def test_what_a_wheel_installs_finds_its_programs_and_reads_published_results(wheel: Path, tmp_path: Path) -> None:
    installed = tmp_path / "installed"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--no-index"]
    subprocess.run([*pip, "--target", installed, wheel], check=True)
    others = os.pathsep.join(place for place in sys.path if "site-packages" in place)
    env = {"PYTHONPATH": f"{installed}{os.pathsep}{others}"}
    where = "from tunnelmark.host.programs import find; print(find('tunnelmark-emulator'))"
    assert do(sys.executable, "-c", where, PATH="", **env).stdout.strip() == str(
        installed / "tunnelmark/bin/tunnelmark-emulator"
    )
    reads_results(Path(sys.executable), tmp_path, **env)


@pytest.mark.proof("a wheel, installed in an empty environment, reads published results without a compiler")
def test_a_wheel_installs_into_an_empty_environment(wheel: Path, tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "env"], check=True)
    python = tmp_path / "env" / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "--quiet", "--only-binary", ":all:", wheel], check=True)
    reads_results(python, tmp_path)
    command = tmp_path / "env" / "bin" / "tunnelmark"
    assert "lan-3" in do(command, "list", "topologies", PATH="/nonexistent", HOME=str(tmp_path)).stdout
