"""A fingerprint tells machines apart that have the same name, and says in which field."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from tunnelmark.host import fingerprint
from tunnelmark.record.fingerprint_diff import differences, kinship, name, plain

CPUINFO = """processor\t: {core}
vendor_id\t: AuthenticAMD
cpu family\t: 25
model\t\t: {model}
model name\t: AMD EPYC
stepping\t: 1
microcode\t: {microcode}
cpu MHz\t\t: 3400.0
bogomips\t: {bogomips:.2f}
flags\t\t: fpu vme sse2 aes {flags}

"""


def machine(root: Path, *, model: int = 1, microcode: str = "0xa0011d5", mhz: float = 2445.406, flags: str = "vaes",
            boot: str = "one", memory: int = 8_141_220, preempt: str = "PREEMPT_NONE", smt: str = "0") -> Path:  # fmt: skip
    """What /proc, /sys and /etc of such a machine hold; two cores of a virtual machine by default."""
    cpus = "".join(
        CPUINFO.format(core=core, model=model, microcode=microcode, bogomips=2 * mhz, flags=flags) for core in range(2)
    )
    sys = root / "sys/devices/system"
    files = {
        root / "proc/cpuinfo": cpus,
        root / "proc/meminfo": f"MemTotal:  {memory} kB\nMemFree: 1 kB\n",
        root / "proc/cmdline": "console=ttyS0 mitigations=auto\n",
        root / "proc/sys/kernel/osrelease": "6.18.44-fc\n",
        root / "proc/sys/kernel/version": "#1 SMP PREEMPT_DYNAMIC\n",
        root / "proc/sys/kernel/random/boot_id": f"{boot}\n",
        root / "etc/machine-id": "3d1219c7c4c5404aaa1f6d2a48adfda4\n",
        root / "sys/hypervisor/type": "kvm\n",
        sys / "clocksource/clocksource0/current_clocksource": "tsc\n",
        sys / "cpu/vulnerabilities/retbleed": "Mitigation: untrained return thunk\n",
        sys / "cpu/vulnerabilities/meltdown": "Not affected\n",
        sys / "cpu/cpu0/topology/thread_siblings_list": f"{smt}\n",
        sys / "cpu/cpu0/cache/index0/level": "1\n",
        sys / "cpu/cpu0/cache/index0/type": "Data\n",
        sys / "cpu/cpu0/cache/index0/size": "32K\n",
    }
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    with gzip.open(root / "proc/config.gz", "wt") as config:
        config.write(f"# CONFIG_PREEMPT is not set\nCONFIG_{preempt}=y\nCONFIG_PREEMPT_DYNAMIC=y\nCONFIG_HZ=250\n")
    return root


def read(root: Path) -> dict[str, object]:
    """Its fingerprint, as a results folder has it."""
    found: dict[str, object] = json.loads(json.dumps(plain(fingerprint.look(root))))
    return found


def test_it_reads_what_tells_machines_apart(tmp_path: Path):
    found = fingerprint.look(machine(tmp_path, smt="0-1"))
    cpu = found.cpu
    assert (cpu.vendor, cpu.family, cpu.model, cpu.stepping, cpu.microcode) == (
        "AuthenticAMD", "25", "1", "1", "0xa0011d5",
    )  # fmt: skip
    assert cpu.mhz == pytest.approx(2445.406)
    assert cpu.flags == ("aes", "fpu", "sse2", "vaes", "vme")
    assert cpu.caches == {"L1 Data": "32K"}
    assert (found.cores, found.memory, found.hypervisor) == (2, 8_141_220 * 1024, "kvm")
    assert (found.hz, found.preemption, found.clock_source) == (250, "none", "tsc")
    assert found.mitigations["retbleed"] == "Mitigation: untrained return thunk"
    assert found.siblings == ("0-1",)
    assert found.command_line == "console=ttyS0 mitigations=auto"
    assert found.boot == "one"


def test_the_frequency_is_the_highest_where_a_driver_says_it(tmp_path: Path):
    root = machine(tmp_path)
    highest = root / "sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq"
    highest.parent.mkdir(parents=True)
    highest.write_text("4100000\n")
    assert fingerprint.look(root).cpu.mhz == 4100.0


def test_what_the_kernel_says_of_the_board_is_no_core(tmp_path: Path):
    """The last block of /proc/cpuinfo of a Raspberry Pi."""
    root = machine(tmp_path)
    with (root / "proc/cpuinfo").open("a") as file:
        file.write("Revision\t: c03115\nSerial\t\t: 100000001e6a95\nModel\t\t: Raspberry Pi 4 Model B Rev 1.5\n")
    assert fingerprint.look(root).cores == 2


def test_it_hands_out_no_machine_id(tmp_path: Path):
    assert "3d1219c7" not in json.dumps(read(machine(tmp_path)))


def test_two_generations_of_one_name_differ_in_named_fields(tmp_path: Path):
    before = read(machine(tmp_path / "a"))
    now = read(machine(tmp_path / "b", model=17, microcode="0x1000065", mhz=2596.128, flags="vaes avx512f"))
    found = differences(before, now)
    assert [each.field for each in found] == ["CPU model", "CPU microcode", "MHz", "CPU flags"]
    assert str(found[0]) == "CPU model: 1, now 17"
    assert "avx512f" in str(found[3]) and "sse2" not in str(found[3])
    assert kinship({"fingerprint": before}, {"fingerprint": now}) == "other machine"


def test_a_setting_of_the_kernel_is_another_machine(tmp_path: Path):
    found = differences(read(machine(tmp_path / "a")), read(machine(tmp_path / "b", preempt="PREEMPT")))
    assert [str(each) for each in found] == ["preemption: none, now full"]


def test_a_boot_alone_is_no_other_machine(tmp_path: Path):
    # What the kernel measures at boot, and keeps of the memory, is never quite the same.
    before = read(machine(tmp_path / "a"))
    now = read(machine(tmp_path / "b", boot="two", mhz=2445.398, memory=8_141_184))
    assert differences(before, now) == ()
    assert kinship({"fingerprint": before}, {"fingerprint": now}) == "other boot"
    assert kinship({"fingerprint": before}, {"fingerprint": before}) == "same boot"


def test_results_from_before_are_of_no_known_machine(tmp_path: Path):
    assert kinship({}, {"fingerprint": read(machine(tmp_path))}) == "not known"


def test_preemption_is_what_is_chosen_rather_than_what_was_built(tmp_path: Path):
    root = machine(tmp_path)
    (root / "proc/cmdline").write_text("preempt=full\n")
    assert fingerprint.look(root).preemption == "full"
    chosen = root / "sys/kernel/debug/sched/preempt"
    chosen.parent.mkdir(parents=True)
    chosen.write_text("none (voluntary) full\n")
    assert fingerprint.look(root).preemption == "voluntary"


def test_a_guest_of_ours_has_no_boot_of_its_own(tmp_path: Path):
    found = fingerprint.look(machine(tmp_path), guest=True)
    assert (found.boot, found.identity, found.cpu.mhz) == ("", "", 0.0)


def test_a_machine_that_says_nothing_is_still_read(tmp_path: Path):
    found = fingerprint.look(tmp_path)
    assert (found.cores, found.memory, found.cpu.family, found.identity) == (0, 0, "", "")


def test_ticks_are_told_without_a_configuration():
    assert fingerprint._hz("", live=True) in {100, 250, 300, 1000}
    assert fingerprint._hz("CONFIG_HZ=300\n", live=True) == 300


def test_cores_are_read_as_the_kernel_lists_them(tmp_path: Path):
    assert fingerprint.siblings(machine(tmp_path, smt="0-1")) == (frozenset({0, 1}),)
    assert fingerprint.siblings(machine(tmp_path / "b", smt="0,32")) == (frozenset({0, 32}),)
    assert fingerprint.siblings(machine(tmp_path / "c", smt="0")) == ()


def test_this_machine_says_who_it_is():
    found = fingerprint.look()
    assert found.cores >= 1
    assert found.kernel and found.boot and found.hz >= 100
    assert found.cpu.flags
    assert found.kernel in name({"fingerprint": plain(found)})
