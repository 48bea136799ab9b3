"""What a study measures of all combinations: what it excludes, what of that it includes all the same, and a part of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tunnelmark import registry
from tunnelmark.errors import PlanError, UnknownName, UsageError
from tunnelmark.plan.design import ALL, CellPattern, Design
from tunnelmark.plan.files import Files
from tunnelmark.plan.load import load_study, save_inputs
from tunnelmark.plan.model import Study
from tunnelmark.plan.order import order, replacement
from tunnelmark.record.describe import describe
from tunnelmark.run.link_capacity import load_of
from unit.plan.studies import ARMS, CATALOGUE, FILES, STUDY, WORKLOADS, write

TEXT = (
    STUDY.replace('["gigabit"]', '["gigabit", "vdsl"]')
    + ARMS
    + '\n[[arm]]\nname = "tinc"\n\n[[arm]]\nname = "nebula"\n'
    + WORKLOADS
    + '\n[[workload]]\nworkload = "tcp"\n'
)
SLOW_TCP = '\n[[exclude]]\nprofiles = ["vdsl"]\nworkloads = ["tcp"]\n'


def study(folder: Path, more: str = "", **asked: object) -> Study:
    return load_study(write(folder, TEXT + more), FILES, CATALOGUE, **asked)  # type: ignore[arg-type]


def names(made: Study) -> set[str]:
    return {".".join((arm.name, profile.name, use.name)) for arm, profile, _, use in made.cells()}


def test_a_pattern_matches_what_all_of_its_axes_name():
    slow = CellPattern(profiles=("vdsl",), workloads=("tcp", "udp"))
    assert slow.matches(("tinc", "vdsl", "pair", "udp"))
    assert not slow.matches(("tinc", "gigabit", "pair", "udp"))
    assert str(slow) == "vdsl · tcp, udp"
    assert ALL.has(("tinc", "vdsl", "pair", "udp"))
    assert not Design((slow,)).has(("tinc", "vdsl", "pair", "udp"))
    assert Design((slow,), (CellPattern(arms=("tinc",)),)).has(("tinc", "vdsl", "pair", "udp"))


def test_what_is_excluded_is_not_measured_in_any_block_nor_in_place_of_one(tmp_path: Path):
    made = study(tmp_path, SLOW_TCP)
    assert len(made.cells()) == 4 * 4 - 4
    assert not any(name.endswith("vdsl.tcp") for name in names(made))
    trials = order(made).trials
    assert len(trials) == 2 * 12
    assert [trial.position for trial in trials] == list(range(24))
    extra = replacement(made, 2, len(trials))
    assert [trial.position for trial in extra] == list(range(36, 48))


def test_a_study_without_tables_is_ordered_as_ever(tmp_path: Path):
    whole, less = order(study(tmp_path)).trials, order(study(tmp_path, SLOW_TCP)).trials
    assert [one.id for one in whole if not one.id.endswith("vdsl.pair.tcp")] == [one.id for one in less]


def test_what_is_excluded_can_be_included_all_the_same(tmp_path: Path):
    kept = '\n[[include]]\narms = ["direct", "direct-again", "tinc"]\nworkloads = ["tcp"]\n'
    made = study(tmp_path, SLOW_TCP + kept)
    assert {name for name in names(made) if name.endswith("vdsl.tcp")} == {
        f"{arm}.vdsl.tcp" for arm in ("direct", "direct-again", "tinc")
    }


def test_a_part_has_the_arms_that_are_asked_for_and_what_they_are_compared_with(tmp_path: Path):
    made = study(tmp_path, only={"arms": ["tinc"], "profiles": ["vdsl"], "workloads": ["tcp"]})
    assert names(made) == {f"{arm}.vdsl.tcp" for arm in ("direct", "direct-again", "tinc")}
    assert [profile.name for profile in made.profiles] == ["vdsl"]
    assert [arm.name for arm in made.arms] == ["direct", "direct-again", "tinc"]
    every = {"studies/mine.toml", "profiles/gigabit.toml", "profiles/vdsl.toml", "topologies/pair.toml"}
    assert set(made.inputs) == every  # what the study's file names, else it could not be read again


@pytest.mark.parametrize("only", [{"arms": ["nebula"]}, {"profiles": ["vdsl"]}, {"workloads": ["ping"]}])
def test_a_part_is_loaded_again_from_its_inputs(tmp_path: Path, only: dict[str, list[str]]):
    """Also a part over one profile: the study's file names the others, and a run is resumed without them."""
    made = study(tmp_path, SLOW_TCP, only=only)
    save_inputs(made, tmp_path / "inputs")
    again = load_study("mine", Files((tmp_path / "inputs",)), CATALOGUE)
    assert again == made
    with pytest.raises(UsageError, match="is a part of a study"):
        load_study("mine", Files((tmp_path / "inputs",)), CATALOGUE, only=only)


def test_no_include_brings_back_what_is_outside_of_a_part(tmp_path: Path):
    kept = '\n[[include]]\nworkloads = ["tcp"]\n'
    made = study(tmp_path, SLOW_TCP + kept, only={"workloads": ["ping"]})
    assert not any(name.endswith("tcp") for name in names(made))


@pytest.mark.parametrize("name", [one.stem for one in Path("studies").glob("*.toml")])
def test_every_arm_of_every_study_can_be_measured_alone(name: str):
    whole = load_study(name, Files.standard(), registry.catalogue())
    for arm in whole.arms:
        part = load_study(name, Files.standard(), registry.catalogue(), only={"arms": [arm.name]})
        assert arm.name in {each.name for each in part.arms}
        assert len(part.arms) <= len(whole.arms)


@pytest.mark.parametrize(
    ("tables", "key", "said", "hint"),
    [
        ('\n[[exclude]]\narms = ["tink"]\n', "exclude[0].arms[0]", "no arm called 'tink'", "tinc"),
        ('\n[[exclude]]\nworkloads = ["tcp"]\n[[include]]\nprofiles = ["gigabyte"]\n', "include[0]", "gigabyte", "gigabit"),
        ("\n[[exclude]]\n", "exclude[0]", "names no cells", "state `arms`"),
        ('\n[[include]]\narms = ["tinc"]\n', "include", "nothing is excluded", "add a table [[exclude]]"),
        ('\n[[exclude]]\nprofiles = ["gigabit", "vdsl"]\n', "exclude", "nothing to measure", "leave one"),
        ('\n[[exclude]]\narms = ["direct"]\nprofiles = ["vdsl"]\n', "exclude", "vdsl · pair · ping has arms", "all arms"),
        ('\n[[exclude]]\narms = ["direct-again"]\nprofiles = ["vdsl"]\n', "exclude", "no two equal arms", "all arms"),
        ('\n[[exclude]]\nvpns = ["tinc"]\n', "exclude[0].vpns", "vpns", ""),
    ],
)  # fmt: skip
def test_a_design_that_cannot_be_is_refused_with_what_would_be_right(
    tmp_path: Path, tables: str, key: str, said: str, hint: str
):
    with pytest.raises(PlanError) as caught:
        study(tmp_path, tables)
    assert key in str(caught.value)
    assert said in str(caught.value)
    assert hint in (caught.value.hint or "")


@pytest.mark.parametrize("stated", ["behind-nat+symmetric+a-to-s", "behind-nat+a-to-s+symmetric"])
def test_a_topology_is_the_same_in_whichever_order_its_name_is_joined(tmp_path: Path, stated: str):
    shown = "behind-nat+symmetric+a-to-s"
    file = write(tmp_path, TEXT.replace('["pair"]', '["pair", "behind-nat+a-to-s+symmetric"]'))
    assert [each.name for each in load_study(file, FILES, CATALOGUE).topologies] == ["pair", shown]
    part = load_study(file, FILES, CATALOGUE, only={"topologies": [stated]})
    assert [each.name for each in part.topologies] == [shown]
    write(tmp_path, Path(file).read_text() + f'\n[[exclude]]\ntopologies = ["{stated}"]\n')
    assert [each.name for each in load_study(file, FILES, CATALOGUE).topologies] == ["pair"]


def test_a_part_of_what_is_not_there_names_the_nearest(tmp_path: Path):
    with pytest.raises(UnknownName) as caught:
        study(tmp_path, only={"arms": ["tink"]})
    assert str(caught.value) == "there is no arm in mine called 'tink'"
    assert "tinc" in (caught.value.hint or "")


def test_a_rule_asks_what_is_measured_and_not_what_is_excluded(tmp_path: Path):
    """As it was, a share of a link's rate was refused for a profile without a rate over which it was not measured."""
    shares = '\n[[workload]]\nname = "half"\nworkload = "udp"\noptions = { rate = "50 %" }\n'
    text = STUDY.replace('["gigabit"]', '["gigabit", "unshaped"]') + ARMS + WORKLOADS + shares
    with pytest.raises(PlanError, match="The profile 'unshaped' has no rate"):
        load_study(write(tmp_path, text), FILES, registry.catalogue())
    left_out = '\n[[exclude]]\nprofiles = ["unshaped"]\nworkloads = ["half"]\n'
    made = load_study(write(tmp_path, text + left_out), FILES, registry.catalogue())
    gigabit, free = made.profiles
    assert (
        load_of(made, registry.workloads(), gigabit).offered > 400e6 > load_of(made, registry.workloads(), free).offered
    )
    (info,) = (
        each for each in describe(order(made), registry.vpns(), registry.workloads()).workloads if each.name == "half"
    )
    assert list(info.offered_by) == ["gigabit"]
