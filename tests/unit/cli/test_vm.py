"""`--backend vm` as the command line sees it: which kernels, which folders, which errors; no machine is booted here."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tunnelmark import errors
from tunnelmark.cli import command as cli
from tunnelmark.cli import vm
from tunnelmark.errors import DiskFull, LabError, UsageError

EMULATED = {"kernel": "6.1.0-56-amd64", "emulated": True}


def test_without_the_backend_no_machine_is_booted() -> None:
    assert vm.chosen(None, ()) == vm.chosen("netns", ()) == ()


def test_a_machine_has_the_distributions_kernel_unless_told() -> None:
    assert vm.chosen("vm", ()) == ("",)
    assert vm.chosen("vm", ("6.1", "6.12", "6.1")) == ("6.1", "6.12")


@pytest.mark.parametrize("backend", [None, "netns"])
def test_another_kernel_needs_a_machine(backend: str | None) -> None:
    with pytest.raises(UsageError, match="another kernel") as error:
        vm.chosen(backend, ("6.12",))
    assert "--backend vm" in error.value.hint


def test_each_of_several_kernels_has_a_folder_of_its_own() -> None:
    assert vm.places(Path("out"), ("",)) == {Path("out"): ""}
    assert vm.places(Path("out"), ("6.1", "6.12")) == {Path("out/linux-6.1"): "6.1", Path("out/linux-6.12"): "6.12"}


def test_results_go_on_with_the_kernel_they_were_begun_with(tmp_path: Path) -> None:
    environment = tmp_path / "environment.json"
    environment.write_text(json.dumps({"machine": {}}))
    assert vm.of_results(tmp_path) == ()
    environment.write_text(json.dumps({"machine": {}, "guest": EMULATED}))
    assert vm.of_results(tmp_path) == ("6.1.0-56-amd64",)


def test_the_machine_is_told_in_words() -> None:
    assert "software emulation" in vm.words(EMULATED)
    assert "KVM" in vm.words({"kernel": "6.1", "emulated": False})


def test_an_error_in_the_machine_is_the_same_error_outside() -> None:
    error = errors.again({"kind": "DiskFull", "message": "no space", "hint": "free some"})
    assert (type(error), error.message, error.hint) == (DiskFull, "no space", "free some")
    assert type(errors.again({"kind": "Exception", "message": "no", "hint": "none"})) is LabError


@pytest.mark.parametrize(
    "arguments",
    [
        ["compare", "wireguard", "--kernel", "6.12"],
        ["run", "quick", "--kernel", "6.12"],
        ["check-link", "gigabit", "--kernel", "6.12"],
    ],
)
def test_the_commands_refuse_a_kernel_without_a_machine(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(arguments) == 2
    assert "only a virtual machine can have another kernel" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["--backend", "vm"], ["--kernel", "6.12"]])
def test_a_resumed_run_takes_no_backend(
    arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["run", "--resume", str(tmp_path), *arguments]) == 2
    assert "keeps its seed, length, part, folder and backend" in capsys.readouterr().err


def test_a_machine_without_qemu_is_refused_with_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("tunnelmark.host.programs.search_path", lambda: str(tmp_path))
    assert cli.main(["compare", "wireguard", "--backend", "vm", "--out", str(tmp_path / "out")]) == 2
    said = capsys.readouterr().err
    assert "qemu-system-x86_64 is not installed" in said
    assert "apt-get install qemu-system-x86" in said


def test_results_are_not_written_over(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine").touch()
    assert cli.main(["compare", "wireguard", "--backend", "vm", "--out", str(tmp_path)]) == 2
    assert "is not empty" in capsys.readouterr().err


def test_a_slow_profile_is_taken_in_a_machine_unless_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["compare", "wireguard", "--backend", "vm", "--dry-run"]) == 0
    assert "fast-ethernet" in capsys.readouterr().out
    assert cli.main(["compare", "wireguard", "--backend", "vm", "--profile", "vdsl", "--dry-run"]) == 0
    assert "vdsl" in capsys.readouterr().out
    assert cli.main(["compare", "wireguard-go", "--dry-run"]) == 0
    assert "gigabit" in capsys.readouterr().out
