"""The recipes that come with the project: complete, pinned, and what the drivers ask for."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tunnelmark import registry
from tunnelmark.cli.packages_command import _short
from tunnelmark.errors import PlanError, UnknownName
from tunnelmark.packages.recipe import Recipe, load, recipe, recipes
from tunnelmark.packages.status import recipe_for
from tunnelmark.plan.files import PACKAGED
from tunnelmark.units import clock

ROOT = Path(__file__).parents[3]
ALL = list(recipes().values())
BUILT = [one for one in ALL if one.built]
CI_SECONDS = 15 * 60  # of building on two cores, within CI's 90 minutes


def name(one: Recipe) -> str:
    return one.name


def test_the_link_at_the_top_leads_to_the_recipes() -> None:
    assert (ROOT / "recipes").resolve() == (PACKAGED / "recipes").resolve()


def test_every_folder_belongs_to_a_recipe() -> None:
    folders = {folder.name for folder in (PACKAGED / "recipes").iterdir() if folder.is_dir()}
    assert folders <= set(recipes())


@pytest.mark.parametrize("one", BUILT, ids=name)
def test_what_is_built_has_an_exact_version(one: Recipe) -> None:
    assert re.fullmatch(r"\d+(\.\d+)+(-[0-9a-f-]+)?", one.about.version)


@pytest.mark.parametrize("one", [one for one in ALL if one.file.go], ids=name)
def test_a_go_module_of_ours_pins_every_module_by_its_hash(one: Recipe) -> None:
    pinned = ""
    for table in one.file.go:
        folder = one.folder / table.module
        asked = dict(re.findall(r"^(?:require\s+|\t)(\S+) (v\S+)", (folder / "go.mod").read_text(), re.MULTILINE))
        hashed = (folder / "go.sum").read_text()
        for package in table.programs.values():
            module = next(module for module in asked if f"{package}/".startswith(f"{module}/"))
            assert f"{module} {asked[module]} h1:" in hashed
            pinned += asked[module] + " "
        assert "tunnelmark.invalid/" in (folder / "go.mod").read_text()
        # A module that is replaced by a folder of ours has no hash; its bytes are in the recipe's digest.
        assert not [line for line in hashed.splitlines() if " h1:" not in line]
    assert f"v{one.about.version}" in pinned or one.file.crate
    assert set(one.versions()) == {program for table in one.file.go for program in table.programs}


def test_programs_of_one_recipe_may_differ_in_version() -> None:
    assert recipe("tailscale").versions() == {
        "tailscaled": "1.98.0",
        "tailscale": "1.98.0",
        "derper": "1.98.0",
        "headscale": "0.26.1",
    }


@pytest.mark.parametrize("one", [one for one in ALL if one.file.crate], ids=name)
def test_a_crate_is_pinned_by_version_and_hash(one: Recipe) -> None:
    assert {table.version for table in one.file.crate} == {one.about.version}
    assert len({table.sha256 for table in one.file.crate}) == len(one.file.crate)


@pytest.mark.parametrize("one", [one for one in ALL if one.file.pypi], ids=name)
def test_a_python_package_is_pinned_by_version_and_hash(one: Recipe) -> None:
    assert one.file.pypi
    lock = (one.folder / one.file.pypi.requirements).read_text()
    assert re.search(r"^[a-z0-9-]+==\S+ \\\n    --hash=sha256:[0-9a-f]{64}", lock, re.MULTILINE)


def test_no_source_of_a_third_party_is_carried_along() -> None:
    allowed = {"go.mod", "go.sum", "tools.go", "requirements.lock", "easytier.py", "protect.go"}
    assert {file.name for one in ALL for file in one.files()} <= allowed


@pytest.mark.parametrize("arm", registry.parts())
def test_what_a_driver_needs_is_brought_by_a_recipe(arm: str) -> None:
    part = registry.parts()[arm]
    found = recipe_for(part)
    if part.recipe:
        assert found is not None, f"there is no recipe {part.recipe}"
        assert set(part.programs) & set(found.programs), "none of its programs is in the recipe"
        assert not found.packages, "Debian's packages need no recipe's folder"
    elif found is not None:
        assert set(part.packages) & set(found.packages)


def test_ci_builds_what_it_promises_within_its_time() -> None:
    quick = [one for one in ALL if one.about.ci]
    assert not [one.name for one in quick if one.file.makers]
    assert len(quick) >= 12
    assert sum(float(one.about.takes) for one in quick) / 2 < CI_SECONDS


def row(one: Recipe) -> str:
    """A recipe's row in docs/packages.md."""
    programs = ", ".join(f"`{program}`" for program in one.programs)
    version = _short(one.about.version) or ("the system's" if one.packages else "its makers'")
    takes = "-" if one.file.makers else clock(float(one.about.takes)).replace(" 00 s", "")
    return f"| {one.name} | {version} | {' and '.join(one.sources)} | {programs} | {takes} | {'✓' if one.about.ci else ''} |"


@pytest.mark.parametrize("one", ALL, ids=name)
def test_the_document_has_every_peer_as_it_is(one: Recipe) -> None:
    known = set((ROOT / "docs" / "packages.md").read_text().splitlines())
    assert row(one) in known, f"docs/packages.md lacks this row: {row(one)}"


def test_an_unknown_peer_has_the_nearest_as_a_hint() -> None:
    with pytest.raises(UnknownName) as caught:
        recipe("nebula-1.11")
    assert "nebula-1.10" in caught.value.hint


HEAD = '[recipe]\ntitle = "x"\nhomepage = "https://example.org"\nprograms = ["x"]\n'


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (HEAD, "no table: this does not say where it comes from"),
        (HEAD + '[debian]\npackages = ["x"]\n[makers]\nwhere = "https://example.org"\n', "debian and makers"),
        (HEAD + '[[crate]]\nname = "x"\nversion = "1.0"\nsha256 = "' + "0" * 64 + '"\n', "version: is missing"),
        (HEAD + 'version = "1.0"\n[[crate]]\nname = "x"\nversion = "^1"\nsha256 = "' + "0" * 64 + '"\n', "'^1'"),
        (HEAD + 'version = "1.0"\n[[crate]]\nname = "x"\nversion = "1.0"\nsha256 = "abc"\n', "'abc'"),
        (HEAD + 'version = "1.0"\n[[go]]\nprograms = {x = "example.org/x"}\n', "go.sum is not there"),
        (HEAD + 'version = "1.0"\n[[go]]\nmodule = "../other"\nprograms = {x = "example.org/x"}\n', "is not there"),
        (HEAD + 'version = "1.0"\n[[go]]\nprograms = {y = "example.org/y"}\n', "are not what is built"),
        (HEAD + '[debian]\npackage = ["x"]\n', "there is no such key"),
        (HEAD.replace("https:", "ftp:") + '[debian]\npackages = ["x"]\n', "'ftp://example.org'"),
    ],
)
def test_a_wrong_recipe_is_refused_with_file_key_and_hint(tmp_path: Path, text: str, problem: str) -> None:
    file = tmp_path / "x.toml"
    file.write_text(text)
    with pytest.raises(PlanError) as caught:
        load(file)
    assert problem in caught.value.message
    assert str(file) in caught.value.message
    assert caught.value.hint


def test_a_recipe_s_digest_follows_what_is_installed_and_nothing_else(tmp_path: Path) -> None:
    file = tmp_path / "x.toml"
    text = HEAD + 'version = "1.0"\n[[go]]\nprograms = {x = "example.org/x"}\n'
    folder = tmp_path / "x"
    folder.mkdir()
    (folder / "go.mod").write_text("module x\n")
    (folder / "go.sum").write_text("")

    def digest(changed: str) -> str:
        file.write_text(changed)
        return load(file).digest()

    before = digest(text)
    assert digest(text.replace('title = "x"', 'title = "y"\ntakes = "9 s"\nci = true')) == before
    assert digest(text.replace("1.0", "1.1")) != before
    (folder / "go.sum").write_text("example.org/x v1.0.0 h1:other\n")
    assert digest(text) != before


def test_a_recipe_of_before_is_read_with_a_note(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A folder `peers/` and a table [peer]; what was installed of it is not built again."""
    text = '[recipe]\ntitle = "x"\nhomepage = "https://example.org"\nprograms = ["x"]\n\n[debian]\npackages = ["x"]\n'
    for folder, table in (("recipes", "[recipe]"), ("peers", "[peer]")):
        (tmp_path / folder / "recipes").mkdir(parents=True)
        (tmp_path / folder / "recipes" / "x.toml").write_text(text.replace("[recipe]", table))
    new, old = (load(tmp_path / folder / "recipes" / "x.toml") for folder in ("recipes", "peers"))
    assert old.digest() == new.digest()
    assert "[peer] is called [recipe] now" in caplog.text
