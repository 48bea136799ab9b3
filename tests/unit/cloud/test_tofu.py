"""What deploy/tofu would make, planned with a stand-in for the provider: nothing is rented, and nothing is fetched but the stand-in's libraries."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from support.open_tofu import GO, NEEDS_GO, NEEDS_PROGRAM, PROGRAM, ROOT, Tofu, stand_in

pytestmark = [
    pytest.mark.skipif(PROGRAM is None, reason=NEEDS_PROGRAM),
    pytest.mark.slow,
]
PROVED = "the files for rented hosts plan what they say, with a provider of the same arguments"
needs_go = pytest.mark.skipif(GO is None, reason=NEEDS_GO)


def in_copy(folder: Path, *, with_provider: bool) -> Tofu:
    plugins = folder / "plugins"
    plugins.mkdir()
    if with_provider:
        stand_in(plugins)
    made = Tofu.in_copy(folder, plugins)
    made.values()
    assert made.run("aws", "get").returncode == 0  # modules alone: `init` would fetch the real provider
    return made


@pytest.fixture(scope="module")
def tofu(tmp_path_factory: pytest.TempPathFactory) -> Tofu:
    return in_copy(tmp_path_factory.mktemp("cloud"), with_provider=False)


@pytest.fixture(scope="module")
def with_provider(tmp_path_factory: pytest.TempPathFactory) -> Tofu:
    return in_copy(tmp_path_factory.mktemp("cloud"), with_provider=True)


def test_the_files_have_the_form_that_fmt_gives(tofu: Tofu):
    done = tofu.run(".", "fmt", "-check", "-recursive", "-diff")
    assert done.returncode == 0, done.stdout


def test_price_and_inventory_need_no_provider(tofu: Tofu):
    assert tofu.run("lab", "init", "-input=false").returncode == 0
    done = tofu.run("lab", "test", "-no-color")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "5 passed, 0 failed" in done.stdout


@needs_go
@pytest.mark.proof(PROVED)
def test_the_hosts_their_firewall_and_their_end(with_provider: Tofu):
    valid = with_provider.run("aws", "validate", "-no-color")
    assert valid.returncode == 0, valid.stdout + valid.stderr
    done = with_provider.run("aws", "test", "-no-color")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "5 passed, 0 failed" in done.stdout


@needs_go
@pytest.mark.proof(PROVED)
def test_a_plan_says_the_price_and_no_other_rule_lets_anything_in(with_provider: Tofu):
    plan = planned(with_provider)
    said = plan["planned_values"]["outputs"]["price"]["value"]
    assert said.startswith("3 hosts for 8 hours at 1.5 USD an hour each: 36.00 USD at most")
    assert "check it before use" in said
    made = [change["type"] for change in plan["resource_changes"]]
    assert made.count("aws_instance") == 3
    assert made.count("aws_vpc_security_group_ingress_rule") == 2  # what they are is in aws.tftest.hcl
    assert not {kind for kind in made if "security_group_rule" in kind} - {
        "aws_vpc_security_group_ingress_rule",
        "aws_vpc_security_group_egress_rule",
    }
    group = next(change for change in plan["resource_changes"] if change["type"] == "aws_security_group")
    assert not group["change"]["after"].get("ingress")


@needs_go
@pytest.mark.proof(PROVED)
def test_nothing_can_be_made_that_costs_more_than_allowed(with_provider: Tofu):
    done = with_provider.run("aws", "plan", "-no-color", "-input=false", "-var-file=lab.tfvars", "-var=at_most=35.9")
    assert done.returncode == 1
    assert "This would cost 36.00 USD, and at_most is 35.9: nothing is made." in " ".join(done.stderr.split())


@needs_go
@pytest.mark.proof(PROVED)
def test_a_misspelt_argument_is_found(with_provider: Tofu, tmp_path: Path):
    other = Tofu.in_copy(tmp_path, with_provider.plugins)
    file = tmp_path / "tofu" / "aws" / "main.tf"
    file.write_text(file.read_text().replace("instance_initiated_shutdown_behavior", "instance_shutdown_behavior"))
    assert other.run("aws", "get").returncode == 0
    done = other.run("aws", "validate", "-no-color")
    assert done.returncode == 1
    assert 'An argument named "instance_shutdown_behavior" is not expected here' in done.stderr


@needs_go
@pytest.mark.proof(PROVED)
def test_the_stand_in_makes_nothing(with_provider: Tofu):
    done = with_provider.run("aws", "apply", "-no-color", "-input=false", "-auto-approve", "-var-file=lab.tfvars")
    assert done.returncode == 1
    assert "the stand-in makes nothing" in done.stderr


def test_the_example_names_every_value_that_has_no_default():
    example = (ROOT / "deploy" / "tofu" / "aws" / "lab.tfvars.example").read_text()
    variables = (ROOT / "deploy" / "tofu" / "aws" / "variables.tf").read_text().split('variable "')[1:]
    needed = [text.partition('"')[0] for text in variables if "default " not in text]
    assert needed == ["ssh_from", "ssh_public_key", "hours", "price_per_hour", "at_most"]
    assert [name for name in needed if f"\n{name} " not in example] == []


def planned(tofu: Tofu) -> dict[str, Any]:
    done = tofu.run("aws", "plan", "-no-color", "-input=false", "-var-file=lab.tfvars", "-out=plan")
    assert done.returncode == 0, done.stdout + done.stderr
    shown = tofu.run("aws", "show", "-json", "plan")
    document: dict[str, Any] = json.loads(shown.stdout)
    return document
