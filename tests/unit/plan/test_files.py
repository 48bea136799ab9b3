"""Plan files are found by name in an ordered list of folders."""

import os
from pathlib import Path

import pytest

from tunnelmark.errors import UnknownName
from tunnelmark.plan.files import PACKAGED, Files
from unit.plan.studies import write


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


@pytest.mark.parametrize("folder", ["studies", "profiles", "topologies"])
def test_they_are_in_plain_sight_at_the_root_of_the_checkout(folder):
    root = Path(__file__).parents[3]
    assert (root / folder).resolve() == PACKAGED / folder
