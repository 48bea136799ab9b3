"""A program in a terminal of its own, as on a node of another host: its size, its keys, its end."""

from __future__ import annotations

import subprocess

import pytest

from tunnelmark.lab.ssh import node_terminal


def ran(*command: str, typed: bytes = b"") -> tuple[int, str]:
    """How a command ended in a terminal, and what that showed; its input stays open until then."""
    with subprocess.Popen(
        node_terminal.wrapped(command, 33, 99), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as process:
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(typed)
        process.stdin.flush()
        shown = process.stdout.read()
        code = process.wait()
    return code, shown.decode().replace("\r\n", "\n")


def test_it_is_a_terminal_of_the_size_that_was_asked_for():
    assert ran("sh", "-c", "test -t 0 && test -t 1 && test -t 2 && stty size; exit 7") == (7, "33 99\n")


def test_keys_are_keys():
    code, shown = ran("sh", "-c", "echo ready; exec sleep 20", typed=b"\x03")
    assert code == 130, shown


def test_much_is_shown_whole():
    code, shown = ran("seq", "100000")
    assert code == 0 and shown.splitlines() == [str(number) for number in range(1, 100_001)]


def test_a_program_that_is_not_there_is_named():
    assert ran("no-such-program") == (127, "no-such-program: No such file or directory\n")


@pytest.mark.parametrize("under", [[], ["nohup"]])
def test_the_end_of_its_input_hangs_up(under: list[str]):
    done = subprocess.run(
        [*under, *node_terminal.wrapped(["sleep", "20"], 24, 80)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=15,
        check=False,
    )
    assert done.returncode == 129, "SIGHUP"
