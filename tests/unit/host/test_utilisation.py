"""Facts about the machine, read from text as other machines have it."""

from __future__ import annotations

import pytest

from tunnelmark.host import utilisation

PROC = {
    "/proc/cpuinfo": "processor\t: 0\nmodel name\t: AMD EPYC\nflags\t\t: fpu hypervisor lm\n",
    "/proc/meminfo": "MemTotal:       1000 kB\nMemFree:  10 kB\nMemAvailable:    500 kB\n",
}


@pytest.fixture
def files(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    files = dict(PROC)
    monkeypatch.setattr(utilisation, "_read", lambda path: files.get(path, ""))
    return files


def test_the_processor_and_memory_are_read(files: dict[str, str]) -> None:
    assert utilisation.cpu() == "AMD EPYC"
    assert utilisation.memory() == (1_024_000, 512_000)


def test_a_processor_without_a_name_is_its_architecture(files: dict[str, str]) -> None:
    files["/proc/cpuinfo"] = "processor\t: 0\nCPU implementer\t: 0x41\n"
    assert utilisation.cpu()


@pytest.mark.parametrize(("vendor", "name"), [("QEMU\n", "kvm"), ("Amazon EC2\n", "amazon"), ("", "hypervisor")])
def test_the_hypervisor_is_known_by_its_vendor(files: dict[str, str], vendor: str, name: str) -> None:
    files["/sys/class/dmi/id/sys_vendor"] = vendor
    assert utilisation.virtualisation() == name


def test_load_counts_neither_idle_nor_stolen_time_as_work(monkeypatch: pytest.MonkeyPatch) -> None:
    # user nice system idle iowait irq softirq steal guest guest_nice, in ticks of 10 ms
    looks = iter(["cpu 0 0 0 0 0 0 0 0 0 0\n", "cpu 50 0 50 100 20 0 0 30 50 0\n"])
    clock = iter([0.0, 1.0])
    monkeypatch.setattr(utilisation, "_read", lambda path: next(looks))
    monkeypatch.setattr("tunnelmark.host.utilisation.time.monotonic", lambda: next(clock))
    monkeypatch.setattr(utilisation, "_TICKS", 100)
    monkeypatch.setattr(
        "tunnelmark.host.keep_awake.own_seconds", lambda: 0.0
    )  # of a lab of another test in this process
    seen = utilisation.load(0)
    assert (seen.busy, seen.steal) == (1.0, 0.3)
