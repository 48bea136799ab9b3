"""Finding programs, their versions and hashes, and the hint when one is missing."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from tunnelmark.errors import MissingPart
from tunnelmark.host import programs
from tunnelmark.host.programs import Requirement


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    return tmp_path


def script(folder: Path, name: str, text: str) -> Path:
    file = folder / name
    file.write_text("#!/bin/sh\n" + text)
    file.chmod(0o755)
    return file


def test_find_gives_the_path(folder: Path) -> None:
    file = script(folder, "some-daemon-of-a-test", "exit 0")
    assert programs.find("some-daemon-of-a-test") == file


def test_a_missing_program_says_which_package_brings_it() -> None:
    with pytest.raises(MissingPart) as caught:
        programs.find("no-such-daemon", ["no-such-package"])
    assert caught.value.message == "the program no-such-daemon is not installed"
    assert caught.value.hint == "apt-get install no-such-package"


def test_a_missing_program_of_no_package_has_a_hint_too() -> None:
    with pytest.raises(MissingPart) as caught:
        programs.find("no-such-daemon")
    assert "PATH" in caught.value.hint


def test_a_missing_tool_knows_its_own_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "search_path", lambda: "/nowhere")
    with pytest.raises(MissingPart) as caught:
        programs.find("iperf3")
    assert caught.value.hint == "apt-get install iperf3"


def test_folders_of_daemons_are_searched_though_path_lacks_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/bin::/usr/sbin")
    assert programs.search_path().split(":") == ["/bin", "/usr/sbin", "/usr/local/sbin", "/sbin", str(programs.BUILT)]


@pytest.mark.parametrize("text", ["echo Daemon 1.2.3 built today", "echo Daemon 1.2.3 >&2; exit 1"])
def test_the_version_is_read_from_either_stream_whatever_the_exit_code(folder: Path, text: str) -> None:
    script(folder, "daemon-of-a-test", text)
    assert programs.version(["daemon-of-a-test", "--version"], r"Daemon (\S+)") == "1.2.3"


def test_an_unreadable_version_is_unknown(folder: Path) -> None:
    script(folder, "daemon-of-a-test", "echo hello")
    assert programs.version(["daemon-of-a-test"], r"Daemon (\S+)") == "unknown"


def test_a_program_that_hangs_has_an_unknown_version(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "_TIMEOUT", 0.1)
    script(folder, "daemon-of-a-test", "exec sleep 5")
    assert programs.version(["daemon-of-a-test"], r"(.*)") == "unknown"


def test_a_program_that_cannot_be_started_is_a_missing_part(folder: Path) -> None:
    file = folder / "daemon-of-a-test"
    file.write_bytes(b"\x7fELF broken")
    file.chmod(0o755)
    with pytest.raises(MissingPart, match="cannot be started"):
        programs.version(["daemon-of-a-test"], r"(.*)", ["daemon"])


def test_a_part_needs_all_its_programs(folder: Path) -> None:
    script(folder, "daemon-of-a-test", "echo 7")
    part = Requirement("x", ("daemon-of-a-test", "its-missing-tool"), ("x",), ("daemon-of-a-test",), r"(\d)")
    with pytest.raises(MissingPart, match="its-missing-tool"):
        programs.part_version(part)


def test_the_hash_is_that_of_the_bytes(tmp_path: Path) -> None:
    file = tmp_path / "bytes"
    file.write_bytes(b"abc")
    assert programs.sha256(file) == hashlib.sha256(b"abc").hexdigest()
