"""The set-up script with stand-ins for apt, dpkg and Python: what it says when something is missing, and what it leaves."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tunnelmark.linux import syscalls

ROOT = Path(__file__).parents[2]
POLICY = Path("/usr/sbin/policy-rc.d")


class Checkout:
    """A checkout with nothing but what the set-up reads, and a folder of stand-ins before everything else on PATH."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.bin = folder / "stand-ins"
        self.bin.mkdir()
        (folder / "scripts").mkdir()
        shutil.copy(ROOT / "scripts" / "setup", folder / "scripts" / "setup")
        (folder / "requirements.lock").write_text("one==1 \\\n    --hash=sha256:0\ntwo==2 \\\n    --hash=sha256:0\n")
        (folder / "pyproject.toml").write_text("")
        self.program("dpkg-query", 'for p in "$@"; do echo "installed $p"; done')
        self.program("apt-get", "echo apt must not be called; exit 9")
        self.program("systemctl", "exit 0")
        self.python()

    def program(self, name: str, text: str) -> None:
        file = self.bin / name
        file.write_text(f'#!/bin/sh\necho "{name} $*" >>"{self.folder}/calls"\n{text}\n')
        file.chmod(0o755)

    def python(self, pip: str = "exit 0") -> None:
        """A python3 whose virtual environments hold a python that does what `pip` says."""
        noted = f'echo "venv-python $*" >>"{self.folder}/calls"'
        (self.folder / "venv-python").write_text(f"#!/bin/sh\n{noted}\necho Collecting one\n{pip}\n")
        made = "mkdir -p .venv/bin && cp venv-python .venv/bin/python && chmod +x .venv/bin/python && echo x >>made"
        cases = f'"-m venv"*) {made};; *_base_executable*) echo "$0";; *) exec {sys.executable} "$@";;'
        self.program("python3", f'case "$*" in {cases} esac')

    def missing(self, *packages: str) -> None:
        gone = "|".join(packages)
        self.program("dpkg-query", f'for p in "$@"; do case $p in {gone}) ;; *) echo "installed $p";; esac; done')

    def run(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["scripts/setup", *arguments],
            cwd=self.folder,
            env={
                **{key: value for key, value in os.environ.items() if not key.startswith("TUNNELMARK")},
                "PATH": f"{self.bin}:{os.environ['PATH']}",
                "TUNNELMARK_PYTHON": str(self.bin / "python3"),
                "TMPDIR": str(self.folder),
                **environment,
            },
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    @property
    def environments_made(self) -> int:
        made = self.folder / "made"
        return len(made.read_text().splitlines()) if made.exists() else 0


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return Checkout(tmp_path)


pytestmark = pytest.mark.root


def test_it_says_each_step_and_how_long_it_took(checkout: Checkout) -> None:
    done = checkout.run()
    assert done.returncode == 0, done.stderr
    title, *steps = done.stdout.splitlines()
    assert title == "set-up"
    assert all(step.endswith(" s)") for step in steps)
    assert [step.split()[0] for step in steps] == ["machine", "Debian", "Python"]


def test_the_second_time_it_only_looks(checkout: Checkout) -> None:
    checkout.run()
    (checkout.folder / "calls").unlink()
    done = checkout.run()
    calls = (checkout.folder / "calls").read_text().splitlines()
    assert "in place" in done.stdout.splitlines()[-1]
    assert checkout.environments_made == 1
    installs = ("apt-get ", "venv-python ")
    assert not [call for call in calls if call.startswith(installs) or "-m venv" in call]


def test_a_path_with_spaces_for_the_checkout_and_the_python(tmp_path: Path) -> None:
    (tmp_path / "a path with spaces").mkdir()
    checkout = Checkout(tmp_path / "a path with spaces")
    done = checkout.run()
    assert done.returncode == 0, done.stderr
    assert "2 installed in .venv" in done.stdout
    assert "in place" in checkout.run().stdout
    assert checkout.environments_made == 1


def test_a_changed_lock_is_installed_anew(checkout: Checkout) -> None:
    checkout.run()
    (checkout.folder / "requirements.lock").write_text("one==2 \\\n    --hash=sha256:0\n")
    assert checkout.run().returncode == 0
    assert checkout.environments_made == 2


def test_a_failed_installation_shows_the_log_s_end_and_is_tried_again(checkout: Checkout) -> None:
    checkout.python(pip="echo no matching distribution for one >&2; exit 1")
    done = checkout.run()
    assert done.returncode == 2
    assert "no matching distribution for one" in done.stderr
    assert "error: Python packages failed\nhint: " in done.stderr
    checkout.python()
    assert checkout.run().returncode == 0


def test_no_python_that_is_new_enough(checkout: Checkout) -> None:
    done = checkout.run(TUNNELMARK_PYTHON="false")
    assert done.returncode == 2
    assert "error: no Python 3.11 or later was found" in done.stderr
    assert "hint: install python3.11" in done.stderr


def test_neither_root_nor_sudo(checkout: Checkout) -> None:
    checkout.program("id", "echo 1000")
    for tool in ("mktemp", "uname", "rm", "dirname", "bash", "env"):
        checkout.program(tool, f'exec {shutil.which(tool)} "$@"')
    done = checkout.run(PATH=str(checkout.bin))
    assert done.returncode == 2
    assert "error: neither root nor sudo is here" in done.stderr


def test_no_apt(checkout: Checkout) -> None:
    checkout.missing("tinc", "nebula")
    (checkout.bin / "apt-get").unlink()
    for tool in ("bash", "env", "mktemp", "uname", "rm", "dirname", "id", "awk", "grep", "basename"):
        checkout.program(tool, f'exec {shutil.which(tool)} "$@"')
    done = checkout.run(PATH=str(checkout.bin))
    assert done.returncode == 2
    assert "error: these Debian packages are missing and there is no apt-get: tinc nebula" in done.stderr


def test_only_missing_packages_are_installed_and_none_may_start_a_service(checkout: Checkout) -> None:
    checkout.missing("tinc")
    checkout.program(
        "apt-get",
        f'echo "$@" >>{checkout.folder}/apt; {POLICY} tinc start; echo "policy $?" >>{checkout.folder}/apt',
    )
    before = POLICY.read_bytes() if POLICY.exists() else None
    done = checkout.run()
    assert done.returncode == 0, done.stderr
    update, _, install, second = (checkout.folder / "apt").read_text().splitlines()
    assert update.endswith(" update")
    assert install.endswith("install -y --no-install-recommends tinc")
    assert second == "policy 101"
    assert (POLICY.read_bytes() if POLICY.exists() else None) == before


@pytest.mark.parametrize("owner", ["none", "allows"])
def test_an_owner_s_own_policy_is_never_written_to(checkout: Checkout, owner: str) -> None:
    """In a mount namespace whose /usr/sbin is a copy-on-write copy without a policy, or with one that allows."""
    checkout.missing("tinc")
    log = checkout.folder / "apt"
    checkout.program("apt-get", f'{POLICY} tinc start; echo "policy $?" >>{log}')
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            _shield_policy()
            if owner == "allows":
                POLICY.write_text("#!/bin/sh\nexit 0\n")
                POLICY.chmod(0o755)
            code = checkout.run().returncode
            left = POLICY.read_text() if POLICY.exists() else "gone"
            os.write(writing, f"{code} {left!r}".encode())
        finally:
            os._exit(0)
    os.close(writing)
    os.waitpid(child, 0)
    said = os.read(reading, 1000).decode()
    os.close(reading)
    assert said == ("0 'gone'" if owner == "none" else "0 '#!/bin/sh\\nexit 0\\n'")
    assert log.read_text().splitlines()[-1] == "policy 101"


def _shield_policy() -> None:
    syscalls.unshare(syscalls.NEWNS)
    syscalls.mount("", "/", "", syscalls.MS_REC | syscalls.MS_PRIVATE)
    syscalls.mount("tmpfs", "/mnt", "tmpfs")
    Path("/mnt/upper").mkdir()
    Path("/mnt/work").mkdir()
    syscalls.mount("overlay", "/usr/sbin", "overlay", 0, "lowerdir=/usr/sbin,upperdir=/mnt/upper,workdir=/mnt/work")
    POLICY.unlink(missing_ok=True)


MANIFEST = '[package]\nname = "emulator"\n\n[[bin]]\nname = "tunnelmark-emulator"\n\n[lib]\nname = "none"\n'


def with_crates(
    checkout: Checkout, cargo: str = 'mkdir -p target/release && cp "$0" target/release/tunnelmark-emulator'
) -> None:
    """The checkout has the source of a program, and a cargo that does this when it builds."""
    (checkout.folder / "crates" / "emulator").mkdir(parents=True)
    (checkout.folder / "crates" / "emulator" / "Cargo.toml").write_text(MANIFEST)
    (checkout.folder / "Cargo.toml").write_text('rust-version = "1.95"\n')
    (checkout.folder / "Cargo.lock").write_text('name = "one"\nname = "two"\n')
    checkout.program(
        "cargo", f'[ "$1" = --version ] || {{ echo "$@" >>cargo-called; echo "   Compiling one"; {cargo}; }}'
    )


def test_programs_are_built_once_and_again_when_their_source_changes(checkout: Checkout) -> None:
    with_crates(checkout)
    done = checkout.run()
    assert "own programs       built in target/release: tunnelmark-emulator (" in done.stdout, done.stderr
    assert "own programs       in place" in checkout.run().stdout
    calls = checkout.folder / "cargo-called"
    assert calls.read_text() == "build --release --locked --workspace --bins --target-dir target\n"
    (checkout.folder / "crates" / "emulator" / "Cargo.toml").write_text(MANIFEST + "edition = 2024\n")
    assert checkout.run().returncode == 0
    assert len(calls.read_text().splitlines()) == 2


def test_a_program_that_is_gone_is_built_again(checkout: Checkout) -> None:
    with_crates(checkout)
    checkout.run()
    (checkout.folder / "target" / "release" / "tunnelmark-emulator").unlink()
    assert "own programs       built in" in checkout.run().stdout


def test_a_build_that_fails_shows_the_end_of_what_cargo_said(checkout: Checkout) -> None:
    with_crates(checkout, "echo 'error: no such crate' >&2; exit 101")
    done = checkout.run()
    assert done.returncode == 2
    assert "no such crate" in done.stderr
    assert "cargo needs a reachable registry" in done.stderr
    assert not (checkout.folder / "target" / ".set-up").exists()


def test_without_cargo_the_hint_says_what_to_install(checkout: Checkout) -> None:
    with_crates(checkout)
    (checkout.bin / "cargo").unlink()
    here = {
        program: shutil.which(program) for program in ("bash", "sed", "awk", "dirname", "mktemp", "uname", "id", "rm")
    }
    here |= {
        program: shutil.which(program) for program in ("sha256sum", "grep", "cat", "env", "sh", "cut", "sort", "find")
    }
    for program, place in here.items():
        if place and not (checkout.bin / program).exists():
            (checkout.bin / program).symlink_to(place)
    for program in ("cp", "mkdir", "chmod", "sleep", "tail", "wc", "touch"):
        (checkout.bin / program).symlink_to(str(shutil.which(program)))
    done = checkout.run(PATH=str(checkout.bin), CARGO_HOME=str(checkout.folder))
    assert done.returncode == 2
    assert "there is no cargo" in done.stderr
    assert "Rust 1.95 or later" in done.stderr


def test_the_systems_part_alone_makes_no_environment_and_builds_nothing(checkout: Checkout):
    done = checkout.run("--system")
    assert done.returncode == 0, done.stderr
    assert "Debian packages" in done.stdout
    assert "Python packages" not in done.stdout
    assert checkout.environments_made == 0


def test_an_argument_that_it_does_not_have_ends_it(checkout: Checkout):
    done = checkout.run("--all")
    assert done.returncode == 2
    assert "error: it has no argument --all" in done.stderr
