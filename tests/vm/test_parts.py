"""The pure parts of the virtual machine: order of modules, first file system, command lines; and of the comparison."""

from __future__ import annotations

import platform
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from tunnelmark.errors import MissingPart, UsageError
from tunnelmark.lab.vm import Hardware, initramfs, kernel, modules, qemu
from tunnelmark.lab.vm.guest import script
from vm import compare
from vm.compare import Probes
from vm.guest import frame, number_of
from vm.settings import SETTINGS, Setting

DEPENDENCIES = modules.parse(
    "kernel/a/nine.ko.xz: kernel/a/net-nine.ko kernel/b/scache.ko\n"
    "kernel/a/net-nine.ko:\n"
    "kernel/b/scache.ko: kernel/b/base.ko\n"
    "kernel/b/base.ko:\n"
    "kernel/c/other.ko: kernel/a/net-nine.ko\n"
)


def line(hardware: Hardware, accelerator: qemu.Accelerator = "tcg", share: str = "/s") -> str:
    paths = {"kernel": Path("/k"), "initramfs": Path("/i"), "console": Path(share, "c")}
    return " ".join(qemu.command_line(hardware, accelerator, share=Path(share), **paths))


class TestModules:
    def test_each_stands_once_and_after_what_it_needs(self) -> None:
        order = modules.closure(["nine", "other"], DEPENDENCIES)
        assert sorted(order) == sorted(DEPENDENCIES)
        for path in order:
            assert all(order.index(needed) < order.index(path) for needed in DEPENDENCIES[path])

    def test_names_are_the_kernels(self) -> None:
        assert modules.name("kernel/a/net-nine.ko.xz") == "net_nine"
        assert modules.closure(["net-nine"], DEPENDENCIES) == modules.closure(["net_nine"], DEPENDENCIES)

    def test_what_is_inside_the_kernel_is_not_loaded(self) -> None:
        assert modules.closure(["overlay"], DEPENDENCIES, builtin=["kernel/fs/overlay.ko"]) == []

    def test_a_module_that_is_not_there_is_named(self) -> None:
        with pytest.raises(MissingPart, match="no module netem") as error:
            modules.closure(["netem"], DEPENDENCIES)
        assert error.value.hint


class TestInitramfs:
    CONTENT = initramfs.build(
        b"busybox", {"a.ko": b"A" * 5, "b.ko": b""}, "6.1-x", "/cache/it's", "/results", "/results/vm"
    )

    def test_the_same_input_gives_the_same_bytes(self) -> None:
        again = initramfs.build(
            b"busybox", {"a.ko": b"A" * 5, "b.ko": b""}, "6.1-x", "/cache/it's", "/results", "/results/vm"
        )
        assert again == self.CONTENT

    @pytest.mark.skipif(shutil.which("cpio") is None, reason="needs cpio, to read what was written")
    def test_cpio_reads_it(self, tmp_path: Path) -> None:
        subprocess.run(["cpio", "-id", "--quiet"], input=self.CONTENT, cwd=tmp_path, check=True)
        assert (tmp_path / "modules/a.ko").read_bytes() == b"AAAAA"
        assert (tmp_path / "init").stat().st_mode & 0o111
        for scripted in ("init", "agent"):
            assert subprocess.run(["sh", "-n", tmp_path / scripted], check=False).returncode == 0
        assert "insmod /modules/a.ko\ninsmod /modules/b.ko\n" in (tmp_path / "init").read_text()
        assert """/cache/it'"'"'s""" in (tmp_path / "init").read_text()

    def test_headers_are_aligned(self) -> None:
        assert len(self.CONTENT) % 4 == 0
        at = 0
        names: list[str] = []
        while not names or names[-1] != "TRAILER!!!":
            fields = [int(self.CONTENT[at + 6 + 8 * n : at + 14 + 8 * n], 16) for n in range(13)]
            assert self.CONTENT[at : at + 6] == b"070701"
            size, length = fields[6], fields[11]
            names.append(self.CONTENT[at + 110 : at + 110 + length - 1].decode())
            at += 110 + length + -(110 + length) % 4 + size + -size % 4
        assert at == len(self.CONTENT)
        assert names.index("modules") < names.index("modules/a.ko")


class TestCommandLine:
    def test_software_emulation(self) -> None:
        said = line(Hardware(cores=2, memory=512))
        assert "-accel tcg,thread=multi -cpu Nehalem,+rdrand -smp 2 -m 512" in said
        assert "icount" not in said

    def test_kvm_gives_the_hosts_processor(self) -> None:
        assert "-accel kvm -cpu host" in line(Hardware(), "kvm")

    def test_a_counted_clock_is_emulated_even_where_kvm_works(self) -> None:
        said = line(Hardware(cores=1, virtual_clock=True, instruction_ns=8), "kvm")
        assert "-accel tcg,thread=single -icount shift=3,sleep=off" in said

    def test_the_hosts_files_are_read_only_and_the_share_is_not(self) -> None:
        assert "path=/,mount_tag=host,security_model=none,multidevs=remap,readonly=on" in line(Hardware())
        assert "path=/s,mount_tag=share,security_model=none,multidevs=remap" in line(Hardware())
        assert line(Hardware()).count("readonly=on") == 1

    @pytest.mark.parametrize(
        "wrong",
        [{"cores": 0}, {"memory": 64}, {"virtual_clock": True, "cores": 2}, {"instruction_ns": 3}],
    )
    def test_what_cannot_be_is_refused(self, wrong: dict[str, Any]) -> None:
        with pytest.raises(UsageError) as error:
            Hardware(**wrong)
        assert error.value.hint

    def test_a_comma_in_a_path_is_refused(self) -> None:
        with pytest.raises(UsageError, match="a,b"):
            line(Hardware(), share="/a,b")


class TestKernel:
    def test_the_release_is_what_the_meta_package_depends_on(self) -> None:
        said = "linux-image-amd64\n  Depends: linux-image-6.1.0-40-amd64\n  Recommends: firmware\n"
        assert kernel._release(said) == "6.1.0-40-amd64"

    def test_without_the_meta_package_there_is_a_hint(self) -> None:
        with pytest.raises(MissingPart) as error:
            kernel._release("")
        assert "apt-get update" in error.value.hint

    def test_kernels_are_cached_where_the_user_says(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("XDG_CACHE_HOME", "/c")
        assert kernel.cache_folder() == Path("/c/tunnelmark/kernels")
        monkeypatch.setenv("XDG_CACHE_HOME", "relative")
        assert kernel.cache_folder() == Path.home() / ".cache/tunnelmark/kernels"


def test_a_command_keeps_its_words() -> None:
    done = subprocess.run(
        ["sh", "-c", script(["sh", "-c", 'echo "$1" "$WORD"', "-", "a  'b"], {"WORD": "$x y"}, Path("/"))],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "a  'b $x y\n"


class TestFigures:
    def probes(self, number: list[int], offered: int = 6, delay: int = 0) -> Probes:
        found = {"number": number, "left_ns": [1000 * n + delay for n in number], "damaged": []}
        return Probes.read(found, range(0, 1000 * offered, 1000))

    def test_losses_and_their_runs(self) -> None:
        some = self.probes([0, 3, 4])
        assert (compare.lost(some), compare.loss_runs(some)) == (3, 2)
        assert compare.loss_runs(self.probes([])) == 1

    def test_copies_are_neither_lost_nor_reordered(self) -> None:
        some = self.probes([0, 1, 1, 2, 0, 3, 4, 5])
        assert (compare.lost(some), compare.duplicates(some), compare.reordered(some)) == (0, 2, 0)

    def test_reordering_is_that_of_rfc_4737(self) -> None:
        """A packet is reordered when one with a greater number came before it: one that overtakes three makes three."""
        assert compare.reordered(self.probes([0, 4, 1, 2, 3, 5])) == 3

    def test_delays(self) -> None:
        assert compare.delay_mean(self.probes([0, 1, 2], delay=7000)) == 7.0
        assert compare.delay_deviation(self.probes([0, 1, 2], delay=7000)) == 0.0

    def test_a_frame_with_a_flipped_bit_keeps_its_number(self) -> None:
        sent = frame(7_654_321, 100)
        for bit in range(8 * 26):
            flipped = bytearray(sent)
            flipped[bit // 8] ^= 1 << bit % 8
            assert number_of(bytes(flipped)) == 7_654_321


class TestVerdicts:
    RANDOM = np.random.default_rng(5)

    def test_a_late_sample_agrees_and_an_early_one_does_not(self) -> None:
        expected = np.sort(self.RANDOM.normal(0, 100, 200_000))
        late = self.RANDOM.normal(0, 100, 10_000) + 20
        bound = compare.ks_bound(10_000, 200_000, 1e-4)
        assert compare.ks_distance(late, expected, 0) > bound
        assert compare.ks_distance(late, expected, 25) < bound
        assert compare.ks_distance(late - 40, expected, 25) > bound

    def test_without_lateness_it_is_the_statistic_of_kolmogorov_and_smirnov(self) -> None:
        one, other = self.RANDOM.normal(0, 1, 500), self.RANDOM.normal(0.2, 1, 900)
        assert compare.ks_distance(one, np.sort(other), 0) == pytest.approx(stats.ks_2samp(one, other).statistic)

    def test_a_wrong_probability_is_found(self) -> None:
        setting = Setting("loss", "loss 2%", {}, count=10_000)
        assert not self.differing(setting, 0.02)
        assert "lost" in self.differing(setting, 0.03)

    def differing(self, setting: Setting, probability: float) -> set[str]:
        def sample(p: float) -> Probes:
            number = np.flatnonzero(self.RANDOM.random(setting.count) >= p)
            return Probes.read({"number": number, "left_ns": number, "damaged": []}, np.arange(setting.count))

        rows = compare.compare(setting, sample(probability), [sample(0.02) for _ in range(200)], 1e-4, 10.0)
        return {row.figure for row in rows if not row.agrees}

    def test_the_settings_have_names_of_their_own(self) -> None:
        assert len({setting.name for setting in SETTINGS}) == len(SETTINGS) >= 12


COUNTS = """
import os, time
from tunnelmark.host import keep_awake
from tunnelmark.lab.vm.clock_keepalive import ClockLoop
loop = ClockLoop(4)
while not (before := loop.spent()[0][0]):
    time.sleep(0.01)
while (after := loop.spent()[0][0]) == before:
    time.sleep(0.01)
assert keep_awake.STANDING == [loop] and 0 < loop.in_process() and keep_awake.process_seconds() < time.process_time()
rounds = after / (20 * 4e-9)
print(abs(rounds - round(rounds)) < 1e-6 * rounds, flush=True)
os._exit(0)
"""


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the loop is machine code of x86-64")
def test_the_loop_that_keeps_a_guest_awake_counts_its_own_instructions() -> None:
    """Twenty to a round, 4 ns each; it never ends by itself, so it has a process of its own."""
    done = subprocess.run([sys.executable, "-c", COUNTS], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "True\n"), done.stderr
