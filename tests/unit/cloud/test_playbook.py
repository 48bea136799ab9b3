"""The playbook that makes machines hosts of a lab: a dry run changes nothing, its files are those that `run` reads, and it does nothing twice."""

from __future__ import annotations

import subprocess
import zipfile
from pathlib import Path

import pytest

from support import ansible, open_tofu
from support.open_tofu import Tofu
from tunnelmark.cluster import ssh_hosts
from tunnelmark.lab.ssh import inventory

pytestmark = [pytest.mark.skipif(ansible.PROGRAM is None, reason=ansible.NEEDS), pytest.mark.slow]

THREE = """\
lab:
  hosts:
    alpha: {ansible_host: 192.0.2.11, lab_address: 198.51.100.11, lab_role: node}
    beta: {ansible_host: 192.0.2.12, ansible_user: admin, ansible_port: 2222, lab_address: 198.51.100.12}
    gamma: {ansible_host: 192.0.2.13, ansible_user: root, lab_address: 198.51.100.13, lab_role: middle}
"""

HOSTS = """\
hosts = {
  alpha = { ssh_address = "192.0.2.11", address = "198.51.100.11", role = "node" }
  beta  = { ssh_address = "192.0.2.12", address = "198.51.100.12", role = "node" }
  gamma = { ssh_address = "192.0.2.13", address = "198.51.100.13", role = "middle" }
}
user           = "admin"
mtu            = 9001
hours          = 8
at_most        = 50
price_per_hour = { amount = 1.5, currency = "USD", source = "an example", date = "2026-11-25" }
"""

SETUP = '#!/bin/sh\necho "setup $*" >>"$SAID"\n'
COMMAND = "import os, sys\ndef main():\n    open(os.environ['SAID'], 'a').write(' '.join(['tunnelmark', *sys.argv[1:]]) + '\\n')\n"


def test_the_playbook_can_be_read(tmp_path: Path):
    example = ansible.PLAYBOOK.with_name("inventory.example.yml")
    done = ansible.play(tmp_path, "--syntax-check", inventory=example, values={})
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.root
def test_a_dry_run_says_what_it_would_do_and_does_none_of_it(tmp_path: Path):
    rules = Path("/etc/sudoers.d/tunnelmark")
    before = rules.read_bytes() if rules.exists() else None
    values = {"folder": tmp_path / "opt", "to": tmp_path / "out"}
    (tmp_path / "out").mkdir()
    done = ansible.play(tmp_path, "--check", "--diff", inventory=THREE, values=values, mtu=9001)
    assert done.returncode == 0, done.stdout + done.stderr
    assert ansible.changed(done) == {"alpha": 4, "beta": 4, "gamma": 3, "localhost": 0}
    assert f"+admin ALL=(root) NOPASSWD: {tmp_path}/opt/bin/tunnelmark" in done.stdout
    assert '+interface = "card3"' in done.stdout
    assert not (tmp_path / "opt").exists()
    assert not list((tmp_path / "out").iterdir())
    assert (rules.read_bytes() if rules.exists() else None) == before


@pytest.mark.root
def test_its_files_are_those_that_run_reads(tmp_path: Path):
    values = {"to": tmp_path}
    done = ansible.play(tmp_path, "--tags", "files", inventory=THREE, values=values, mtu=1550)
    assert done.returncode == 0, done.stdout + done.stderr
    found = inventory.read(tmp_path / "hosts.toml")
    assert [(host.name, host.ssh, str(host.address), host.interface) for host in found.hosts] == [
        ("alpha", "192.0.2.11", "198.51.100.11", "card1"),
        ("beta", "-p 2222 admin@192.0.2.12", "198.51.100.12", "card2"),
        ("gamma", "root@192.0.2.13", "198.51.100.13", "card3"),
    ]
    assert [host.command for host in found.hosts] == [
        "/opt/tunnelmark/bin/tunnelmark",
        "sudo -n /opt/tunnelmark/bin/tunnelmark",
        "/opt/tunnelmark/bin/tunnelmark",
    ]
    assert [host.name for host in found.nodes] == ["alpha", "beta"]
    assert found.middle.name == "gamma"
    lines = ssh_hosts.read(tmp_path / "hosts.txt")
    assert lines[1] == ssh_hosts.Host(
        ("-p", "2222", "admin@192.0.2.12"), ("sudo", "-n", "/opt/tunnelmark/bin/tunnelmark")
    )
    again = ansible.play(tmp_path, "--tags", "files", inventory=THREE, values=values, mtu=1550)
    assert set(ansible.changed(again).values()) == {0}


@pytest.mark.root
@pytest.mark.skipif(open_tofu.PROGRAM is None, reason=open_tofu.NEEDS_PROGRAM)
def test_what_tofu_prints_is_what_the_playbook_reads(tmp_path: Path):
    tofu = Tofu.in_copy(tmp_path, tmp_path)
    (tmp_path / "tofu" / "lab" / "lab.tfvars").write_text(HOSTS)
    assert tofu.run("lab", "init", "-input=false").returncode == 0
    made = tofu.run("lab", "apply", "-no-color", "-input=false", "-auto-approve", "-var-file=lab.tfvars")
    assert made.returncode == 0, made.stderr  # which makes nothing: it has no resources
    printed = tofu.run("lab", "output", "-raw", "inventory").stdout
    done = ansible.play(tmp_path, "--tags", "files", inventory=printed, values={"to": tmp_path}, mtu=1500)
    assert done.returncode == 0, done.stdout + done.stderr  # lab_mtu says that 9001 is possible
    found = inventory.read(tmp_path / "hosts.toml")
    assert [host.ssh for host in found.nodes] == ["admin@192.0.2.11", "admin@192.0.2.12"]
    assert found.middle.name == "gamma"


@pytest.mark.root
def test_links_that_do_not_fit_into_the_networks_packets_end_it(tmp_path: Path):
    done = ansible.play(tmp_path, "--tags", "files", inventory=THREE, values={"to": tmp_path}, mtu=1500)
    assert done.returncode != 0
    assert "card1 of alpha has an MTU of 1500, and links of 1500 bytes need 1550 (VXLAN)" in done.stdout
    assert not (tmp_path / "hosts.toml").exists()
    smaller = {"to": tmp_path, "link_mtu": 1450}
    assert ansible.play(tmp_path, "--tags", "files", inventory=THREE, values=smaller, mtu=1500).returncode == 0


def test_an_address_that_no_card_has_ends_it(tmp_path: Path):
    elsewhere = "lab: {hosts: {alpha: {ansible_host: 192.0.2.11, lab_address: 203.0.113.77}}}\n"
    done = ansible.play(tmp_path, "--tags", "files", inventory=elsewhere, values={"to": tmp_path})
    assert done.returncode != 0
    assert "no interface of alpha has the address 203.0.113.77" in done.stdout


@pytest.mark.proof("the playbook installs what the checkout has, and nothing twice")
def test_it_installs_what_the_checkout_has_and_nothing_twice(tmp_path: Path):
    checkout = small_checkout(tmp_path / "checkout")
    values = {"folder": tmp_path / "opt", "to": tmp_path, "checkout_python": checkout / "python"}
    one = "lab: {hosts: {alpha: {ansible_host: 192.0.2.11, lab_address: 127.0.0.1}}}\n"

    def run() -> subprocess.CompletedProcess[str]:
        done = ansible.play(
            tmp_path,
            "-e",
            '{"packages": ["fastd"]}',
            inventory=one,
            values=values,
            playbook=checkout / "deploy" / "ansible" / "hosts.yml",
            environment={"SAID": str(tmp_path / "said")},
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done

    assert ansible.changed(run())["alpha"] >= 3
    assert (tmp_path / "said").read_text().splitlines() == [
        "setup --system",
        "tunnelmark packages install fastd",
        "tunnelmark doctor",
    ]
    assert inventory.read(tmp_path / "hosts.toml").hosts[0].command == f"{tmp_path}/opt/bin/tunnelmark"
    assert ansible.changed(run()) == {"alpha": 0, "localhost": 0}


def small_checkout(folder: Path) -> Path:
    """A checkout with the playbook, whose wheel is a command that notes how it was called, and whose lock asks for nothing."""
    (folder / "scripts").mkdir(parents=True)
    (folder / "scripts" / "setup").write_text(SETUP)
    (folder / "requirements.lock").write_text("# nothing\n")
    target = folder / "deploy" / "ansible"
    (target / "templates").mkdir(parents=True)
    for file in ansible.PLAYBOOK.parent.rglob("*"):
        if file.is_file():
            (target / file.relative_to(ansible.PLAYBOOK.parent)).write_bytes(file.read_bytes())
    (folder / "target" / "hosts").mkdir(parents=True)
    about = "tunnelmark-0.0.1.dist-info"
    with zipfile.ZipFile(folder / "target" / "hosts" / "tunnelmark-0.0.1-py3-none-any.whl", "w") as wheel:
        wheel.writestr("noted.py", COMMAND)
        wheel.writestr(f"{about}/METADATA", "Metadata-Version: 2.1\nName: tunnelmark\nVersion: 0.0.1\n")
        wheel.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{about}/entry_points.txt", "[console_scripts]\ntunnelmark = noted:main\n")
        wheel.writestr(f"{about}/RECORD", "")
    (folder / "python").write_text("#!/bin/sh\nexit 0\n")
    (folder / "python").chmod(0o755)
    return folder
