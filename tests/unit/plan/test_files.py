"""Plan files are found by name in an ordered list of folders."""

import os
from pathlib import Path

import pytest

from tunnelmark.errors import PlanError, UnknownName, UsageError
from tunnelmark.plan.files import FORMER, PACKAGED, Files
from tunnelmark.plan.load import link_inputs, load_profile, load_study, load_topology, write_inputs
from unit.plan.studies import ARMS, CATALOGUE, FILES, STUDY, WORKLOADS, write

PROFILE = '[profile]\ntitle = "T"\nsource = "S"\n'


def test_our_own_come_first_then_the_folders_of_the_environment(tmp_path):
    one, other = tmp_path / "one", tmp_path / "other"
    files = Files.standard({"TUNNELMARK_PATH": f"{one}{os.pathsep}{other}"})
    assert files.folders == (PACKAGED, one, other)


def test_without_the_variable_there_are_only_our_own():
    assert Files.standard({}).folders == (PACKAGED,)
    assert Files.standard({"TUNNELMARK_PATH": ""}).folders == (PACKAGED,)


def test_the_first_folder_that_has_a_name_wins(tmp_path):
    for folder in ("one", "other"):
        write(tmp_path / folder, "", "profiles/p.toml")
    files = Files((tmp_path / "none", tmp_path / "one", tmp_path / "other"))
    assert files.find("profile", "p") == tmp_path / "one/profiles/p.toml"
    assert files.names("profile") == ("p",)


def test_names_are_sorted_over_all_folders(tmp_path):
    write(tmp_path / "one", "", "topologies/z.toml")
    write(tmp_path / "other", "", "topologies/a.toml")
    assert Files((tmp_path / "one", tmp_path / "other")).names("topology") == ("a", "z")


def test_an_unknown_name_says_what_it_should_be_the_name_of(tmp_path):
    with pytest.raises(UnknownName, match="no topology called 'pear'"):
        Files((PACKAGED, tmp_path)).find("topology", "pear")


class TestAFormerName:
    @pytest.mark.parametrize(("kind", "former"), [(kind, name) for kind, names in FORMER.items() for name in names])
    def test_is_heeded_with_a_warning(self, kind, former, caplog):
        now = FILES.current(kind, former)
        assert now in FILES.names(kind)
        assert f"the {kind} {former} is called {now} now" in caplog.text

    def test_works_where_files_are_named(self, tmp_path):
        assert FILES.with_paths("topology", "trio")[1] == "lan-3"
        assert FILES.find_study("thesis") == FILES.find_study("studies/thesis.toml") == FILES.find("study", "mesh-vpns")
        study = (STUDY + ARMS + WORKLOADS).replace('topologies = ["pair"]', 'topologies = ["trio"]')
        loaded = load_study(str(write(tmp_path, study, "mine.toml")), FILES, CATALOGUE)
        assert [topology.name for topology in loaded.topologies] == ["lan-3"]
        assert "topologies/lan-3.toml" in loaded.inputs

    def test_is_ones_own_where_a_folder_has_such_a_file(self, tmp_path, caplog):
        write(tmp_path, "", "topologies/trio.toml")
        assert Files((PACKAGED, tmp_path)).current("topology", "trio") == "trio"
        assert not caplog.records


@pytest.mark.parametrize("folder", ["studies", "profiles", "topologies"])
def test_they_are_in_plain_sight_at_the_root_of_the_checkout(folder):
    root = Path(__file__).parents[3]
    assert (root / folder).resolve() == PACKAGED / folder


class TestAPath:
    def test_names_a_file_that_stands_anywhere(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        write(tmp_path, PROFILE + 'delay = "5 ms"\n', "profiles/my-dsl.toml")
        files, name = FILES.with_paths("profile", "./profiles/my-dsl.toml")
        assert name == "my-dsl"
        monkeypatch.chdir("/")
        assert load_profile(name, files).forward.delay == 0.005
        assert "my-dsl" in files.names("profile")

    def test_may_be_joined_with_names_and_other_paths(self, tmp_path):
        one, other = (write(tmp_path, PROFILE, name) for name in ("one.toml", "other.toml"))
        files, name = FILES.with_paths("profile", f"{one}+gigabit+{other}")
        assert name == "one+gigabit+other"
        assert load_profile(name, files).rate == 10**9

    def test_may_have_a_plus_in_it(self, tmp_path):
        path = write(tmp_path, PROFILE, "c++/mine.toml")
        assert FILES.with_paths("profile", path)[1] == "mine"

    def test_of_a_topology_is_one_as_well(self, tmp_path):
        text = '[topology]\ntitle = "T"\nnodes = ["x", "y"]\n[[link]]\nname = "wire"\nnodes = ["x", "y"]\n'
        files, name = FILES.with_paths("topology", write(tmp_path, text, "mine.toml"))
        assert load_topology(name, files).nodes == ("x", "y")

    def test_to_a_file_that_is_known_by_its_name_is_that_name(self):
        path = PACKAGED / "profiles" / "gigabit.toml"
        assert FILES.with_paths("profile", str(path))[1] == "gigabit"

    def test_to_another_file_of_a_known_name_is_refused(self, tmp_path):
        path = write(tmp_path, PROFILE, "gigabit.toml")
        with pytest.raises(UsageError, match="is not the profile gigabit") as caught:
            FILES.with_paths("profile", path)
        assert "rename" in caught.value.hint

    def test_can_be_handed_on_with_all_that_it_is_joined_with(self, tmp_path):
        path = write(tmp_path, PROFILE + 'delay = "5 ms"\n', "mine.toml")
        files, name = FILES.with_paths("profile", f"{path}+gigabit")
        write_inputs(link_inputs(name, "pair", files), tmp_path / "there")
        there = Files((tmp_path / "there",))
        assert load_profile(name, there) == load_profile(name, files)
        assert load_topology("pair", there) == load_topology("pair", FILES)

    def test_whose_name_cannot_stand_in_results_is_refused(self, tmp_path):
        with pytest.raises(UsageError, match="not a profile file"):
            FILES.with_paths("profile", write(tmp_path, PROFILE, "My DSL.toml"))

    def test_that_leads_nowhere_names_the_files_beside_it(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        write(tmp_path, PROFILE, "profiles/my-dsl.toml")
        with pytest.raises(PlanError, match="no such file") as caught:
            FILES.with_paths("profile", "./profiles/my-dls.toml")
        assert caught.value.hint == "did you mean profiles/my-dsl.toml?"

    def test_that_leads_nowhere_at_all_names_the_nearest_profile(self):
        with pytest.raises(PlanError) as caught:
            FILES.with_paths("profile", "./nowhere/gigbit.toml")
        assert caught.value.hint == "did you mean gigabit?"


@pytest.mark.parametrize("place", ["profiles/my-dsl.toml", "my-dsl.toml"])
def test_a_name_that_is_a_file_near_by_is_told(place, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path, PROFILE, place)
    with pytest.raises(UnknownName) as caught:
        load_profile("my-dsl", FILES)
    assert f"./{place}" in caught.value.hint
    assert "TUNNELMARK_PATH" in caught.value.hint


def test_a_name_that_is_near_to_none_says_where_more_may_stand():
    with pytest.raises(UnknownName) as caught:
        load_profile("zzzzz", FILES)
    assert "gigabit" in caught.value.hint
    assert "TUNNELMARK_PATH" in caught.value.hint
