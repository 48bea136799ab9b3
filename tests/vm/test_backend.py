"""`--backend vm` as a user runs it: a study in a guest ends with its results on the host, and says where it was measured."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tunnelmark.host import kernel_features
from tunnelmark.lab.vm import Guest, Hardware
from tunnelmark.record import store
from vm.agreement import needs_qemu
from vm.test_machine import guests, in_guest

pytestmark = [
    pytest.mark.root,
    pytest.mark.slow,
    pytest.mark.timeout(1800),
    needs_qemu,
    pytest.mark.proof("a study runs in a virtual machine, with the kernel's own WireGuard and netem"),
]

TUNNELMARK = Path(sys.executable).with_name("tunnelmark")

NETEM = """
[profile]
title = "netem on the {place}"
source = "made for a test"
model = "netem"
backend = "netem"
place = "{place}"
unit = "{unit}"
delay = "10 ms"
jitter = "2 ms"
loss = "1 %"
"""

STUDY = """
[study]
name = "netem"
title = "netem in a guest"
blocks = 1
profiles = ["on-middle", "on-sender"]
topologies = ["pair"]

[[arm]]
name = "direct"

[[arm]]
name = "direct-again"
same_as = "direct"

[[workload]]
workload = "ping"
"""


def tunnelmark(arguments: Sequence[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """The command in a folder, with the files below it as its own."""
    return subprocess.run(
        [TUNNELMARK, *arguments],
        cwd=folder,
        env=os.environ | {"TUNNELMARK_PATH": str(folder), "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
    )


def trials(results: Path) -> dict[str, str]:
    return {row.trial: row.outcome + (f": {row.message}" if row.message else "") for row in store.load(results).trials}


def checks(results: Path) -> list[tuple[str, str]]:
    return [(check.when, f"{check.verdict}{check.reason or ''}") for check in store.load(results).link_checks]


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """Kernel WireGuard beside the bare link on a slow line, on whatever kernel the host has."""
    folder = tmp_path_factory.mktemp("compare")
    wanted = ("--workload", "ping", "--workload", "tcp", "--profile", "vdsl", "--blocks", "1", "--out", "out")
    done = tunnelmark(["compare", "wireguard", "--backend", "vm", *wanted], folder)
    assert done.returncode == 1, done.stdout + done.stderr  # one block is too few for the A/A pair
    return folder / "out", done.stdout


def test_every_trial_of_a_comparison_in_a_guest_succeeds(compared: tuple[Path, str]) -> None:
    results, _ = compared
    assert len(trials(results)) == 10  # of five arms: direct and WireGuard twice, the anchor
    assert set(trials(results).values()) == {"ok"}
    assert store.load(results).finished


def test_the_link_is_proved_in_the_guest_by_the_same_bounds(compared: tuple[Path, str]) -> None:
    assert checks(compared[0]) == [("before", "verified"), ("after", "verified")]


def test_raw_output_reports_and_what_the_guest_said_are_on_the_host(compared: tuple[Path, str]) -> None:
    results, _ = compared
    for row in store.load(results).trials:
        assert row.raw and all((results / file).is_file() for file in row.raw)
    assert {path.name for path in (results / "vm").iterdir()} == {"console.log", "qemu.log"}
    for report in ("report.md", "report.html"):
        assert "Emulated: measured with Linux" in (results / report).read_text()


def test_the_kernel_the_accelerator_and_the_clock_are_recorded(compared: tuple[Path, str]) -> None:
    results, said = compared
    environment: dict[str, Any] = store.load_environment(results)
    guest = environment["guest"]
    assert environment["machine"]["kernel"].split()[0] == guest["kernel"] != os.uname().release
    assert environment["vpns"]["wireguard"]["version"] == guest["kernel"]
    assert guest["emulated"] is (guest["accelerator"] == "tcg")
    assert environment["lab"]["backend"] == "vm"
    assert environment["command"][:3] == ["tunnelmark", "compare", "wireguard"]
    assert f"Linux {guest['kernel']} in QEMU" in said


def test_progress_is_told_while_it_goes(compared: tuple[Path, str]) -> None:
    assert "[10/10]" in compared[1]


def test_what_kernel_threads_do_in_a_guest_is_the_labs_work(compared: tuple[Path, str]) -> None:
    assert all(row.host["other_cpu"] == 0 for row in store.load(compared[0]).trials)


def test_a_profile_of_the_kernels_netem_is_run_and_proved_in_a_guest(tmp_path: Path) -> None:
    (tmp_path / "profiles").mkdir()
    for place, unit in (("middle", "wire"), ("sender", "gso")):
        (tmp_path / f"profiles/on-{place}.toml").write_text(NETEM.format(place=place, unit=unit))
    (tmp_path / "netem.toml").write_text(STUDY)
    done = tunnelmark(["run", "./netem.toml", "--backend", "vm", "--out", "out"], tmp_path)
    assert done.returncode == 1, done.stdout + done.stderr  # one block is too few for the A/A pair
    results = tmp_path / "out"
    assert set(trials(results).values()) == {"ok"}, done.stdout
    assert [verdict for _, verdict in checks(results)] == ["verified"] * 4
    made = store.load_environment(results)["lab"]["shaper"]
    assert made["on-middle"].startswith("netem on the middle") and made["on-sender"].startswith("netem on the sender")
    trip = next(s.value for row in store.load(results).trials for s in row.samples if s.metric == "rtt_median")
    assert 18 < trip < 22  # 10 ms each way


@pytest.mark.parametrize(("taken", "counted"), [('loss = "10 %"', "lossy"), ("limit = 30", "link")])
def test_what_the_kernels_netem_drops_is_its_loss_or_its_queue(tmp_path: Path, taken: str, counted: str) -> None:
    """2,500 packets a second of which each waits 20 ms: a queue of 30 holds 60 % of them, and all that a look at the link sends."""
    (tmp_path / "profiles").mkdir()
    for place, unit in (("middle", "wire"), ("sender", "gso")):
        profile = NETEM.format(place=place, unit=unit).replace('jitter = "2 ms"\nloss = "1 %"', taken)
        (tmp_path / f"profiles/on-{place}.toml").write_text(profile.replace("10 ms", "20 ms"))
    udp = 'workload = "udp"\noptions = { rate = "4 Mbit/s", length = "200 B", duration = "2 s" }'
    (tmp_path / "netem.toml").write_text(STUDY.replace('workload = "ping"', udp))
    tunnelmark(["run", "./netem.toml", "--backend", "vm", "--out", "out"], tmp_path)
    # With a loss of 10 % a trial may be void for the datagram that opens its stream; it is made again.
    rows = [row for row in store.load(tmp_path / "out").trials if row.outcome == "ok"]
    assert {row.profile for row in rows} == {"on-middle", "on-sender"}
    other = {"link": "lossy", "lossy": "link"}[counted]
    for row in rows:
        assert row.limits[f"drop_{counted}_source"] >= 50, row.trial
        assert row.limits[f"drop_{other}_source"] == 0, row.trial


def test_on_a_sending_host_netem_counts_what_its_profile_says(tmp_path: Path) -> None:
    """Packets of the wire, or all that TCP hands over at once, up to 64 KiB: 60 of either wait 20 ms each."""
    (tmp_path / "profiles").mkdir()
    for name, unit in (("on-middle", "wire"), ("on-sender", "gso")):  # both on the sender
        profile = NETEM.format(place="sender", unit=unit).replace('jitter = "2 ms"\nloss = "1 %"', "limit = 60")
        (tmp_path / f"profiles/{name}.toml").write_text(profile.replace("10 ms", "20 ms"))
    tcp = 'workload = "tcp"\noptions = { duration = "1 s", warmup = "500 ms" }'
    (tmp_path / "netem.toml").write_text(STUDY.replace('workload = "ping"', tcp))
    tunnelmark(["run", "./netem.toml", "--backend", "vm", "--out", "out"], tmp_path)
    rates = {(row.arm, row.profile): row.samples[0].value for row in store.load(tmp_path / "out").trials}
    most = 60 * 1448 * 8 / 0.02  # bit/s, of 60 full segments in each 20 ms
    for arm in ("direct", "direct-again"):
        assert 0.2 * most < rates[arm, "on-middle"] <= most, rates
        assert rates[arm, "on-sender"] > 3 * most, rates


def test_workloads_run_inside_a_geneve_that_the_guests_kernel_has(tmp_path: Path) -> None:
    study = STUDY.replace(
        'profiles = ["on-middle", "on-sender"]', 'profiles = ["vdsl"]\ninner = {{ geneve = true, {} }}'
    )
    over_ipv6 = '[[arm]]\nname = "direct-6"\nvpn = "direct"\nunderlay = "ipv6"\n\n'
    arms = f'[[arm]]\nname = "tinc"\n\n{over_ipv6}[[workload]]'
    for family, inner in (("ipv4", "mtu = 1280"), ("ipv6", "mtu = 1280, ipv6 = true")):
        (tmp_path / f"{family}.toml").write_text(study.format(inner).replace("[[workload]]", arms))
        done = tunnelmark(["run", f"./{family}.toml", "--backend", "vm", "--out", family], tmp_path)
        assert done.returncode == 1, done.stdout + done.stderr  # one block is too few for the A/A pair
        assert set(trials(tmp_path / family).values()) == {"ok"}, done.stdout


def test_a_run_that_was_stopped_leaves_no_guest_and_goes_on_in_another(tmp_path: Path) -> None:
    before = guests()
    wanted = ("--workload", "ping", "--profile", "vdsl", "--blocks", "1", "--out", "out")
    started = subprocess.Popen(
        [TUNNELMARK, "compare", "wireguard", "--backend", "vm", *wanted],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # a shell's `&` has it ignored
    )
    assert started.stdout is not None
    with started:
        assert any(line.startswith("[1/5]") for line in started.stdout)
        started.send_signal(signal.SIGINT)
        rest = started.stdout.read()
        assert started.wait() == 130
    assert "every finished trial is kept" in rest
    deadline = time.monotonic() + 5
    while guests() - before and time.monotonic() < deadline:
        time.sleep(0.05)
    assert guests() <= before
    assert 1 <= len(trials(tmp_path / "out")) < 5
    assert not (tmp_path / "out/vm/.request").exists()
    done = tunnelmark(["run", "--resume", "out"], tmp_path)
    assert done.returncode == 1, done.stdout + done.stderr
    assert set(trials(tmp_path / "out").values()) == {"ok"} and store.load(tmp_path / "out").finished
    assert (tmp_path / "out/vm.2/console.log").exists()


def test_a_link_is_proved_in_a_guest_and_its_raw_output_kept(tmp_path: Path) -> None:
    done = tunnelmark(
        ["check-link", "wifi-good", "--probes", "500", "--backend", "vm", "--out", "out", "--json"], tmp_path
    )
    assert done.returncode == 0, done.stdout + done.stderr
    check = json.loads(done.stdout)
    assert check["verdict"] == "verified"
    assert check["guest"]["kernel"] != os.uname().release
    assert (tmp_path / "out/probe.plan.json").is_file()


def test_an_error_in_the_guest_is_told_with_its_hint(tmp_path: Path) -> None:
    (tmp_path / "profiles").mkdir()
    done = tunnelmark(["check-link", "vdsl", "--backend", "vm", "--kernel", "0.0.1-none"], tmp_path)
    assert done.returncode == 2
    assert "0.0.1-none" in done.stderr
    assert "hint:" in done.stderr


def test_kernel_wireguard_passes_the_contract_suite(tmp_path: Path) -> None:
    """In a guest where this kernel has no WireGuard; where it has, the suite itself runs it."""
    if not kernel_features.found()["wireguard"]:
        pytest.skip("this kernel has WireGuard, so tests/contract runs it without a guest")
    root = Path(__file__).resolve().parents[2]
    suite = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/contract/test_vpns.py", "-k", "[wireguard]"]

    async def body(machine: Guest) -> str:
        done = await machine.run([sys.executable, *suite], None, cwd=root, env={"HOME": os.environ["HOME"]})
        return done.stdout + done.stderr + f"\nended with {done.code}"

    said = in_guest(body, tmp_path, Hardware(cores=2, memory=2048))
    assert "ended with 0" in said and " passed" in said, said[-3000:]
