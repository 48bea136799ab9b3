"""A study file becomes a checked study, or an error that says where and what would be right."""

import dataclasses
from pathlib import Path

import pytest

from tunnelmark.errors import PlanError, UnknownName, UsageError
from tunnelmark.plan.files import Files
from tunnelmark.plan.load import load_study, save_inputs
from tunnelmark.plan.model import Arm, WorkloadUse
from tunnelmark.units import Duration, Rate
from unit.plan.studies import ARMS, CATALOGUE, FILES, STUDY, WORKLOADS, write


def refusal(folder: Path, text: str) -> PlanError:
    with pytest.raises(PlanError) as caught:
        load_study(write(folder, text), FILES, CATALOGUE)
    assert caught.value.file.endswith("mine.toml")
    return caught.value


class TestAGoodStudy:
    def test_has_everything_that_its_file_names(self, tmp_path):
        study = load_study(write(tmp_path, STUDY + ARMS + WORKLOADS), FILES, CATALOGUE)
        assert (study.name, study.title, study.seed, study.blocks) == ("mine", "Mine", 1, 2)
        assert study.ready_timeout == Duration(20)
        assert [profile.rate for profile in study.profiles] == [10**9]
        assert [topology.nodes for topology in study.topologies] == [("a", "b")]
        assert study.text == STUDY + ARMS + WORKLOADS

    def test_an_arm_is_the_vpn_of_its_name_unless_it_says_otherwise(self, tmp_path):
        more = '[[arm]]\nname = "openvpn"\n[[arm]]\nname = "plain"\nvpn = "openvpn"\noptions = {cipher = "none"}\n'
        study = load_study(write(tmp_path, STUDY + ARMS + more + WORKLOADS), FILES, CATALOGUE)
        assert study.arms[2:] == (Arm("openvpn", "openvpn"), Arm("plain", "openvpn", {"cipher": "none"}))

    def test_an_equal_arm_takes_vpn_and_options_from_the_one_it_names(self, tmp_path):
        more = '[[arm]]\nname = "o"\nvpn = "openvpn"\noptions = {port = 9}\n[[arm]]\nname = "o2"\nsame_as = "o"\n'
        study = load_study(write(tmp_path, STUDY + ARMS + more + WORKLOADS), FILES, CATALOGUE)
        assert study.arms[3] == Arm("o2", "openvpn", {"port": 9}, same_as="o")

    def test_options_are_equal_when_they_mean_the_same(self, tmp_path):
        more = '[[arm]]\nname = "openvpn"\n[[arm]]\nname="o2"\nvpn="openvpn"\nsame_as="openvpn"\noptions={port=1194}\n'
        study = load_study(write(tmp_path, STUDY + ARMS + more + WORKLOADS), FILES, CATALOGUE)
        assert study.arms[3].same_as == "openvpn"

    def test_a_workload_may_be_used_twice_under_two_names(self, tmp_path):
        more = '[[workload]]\nname = "long-ping"\nworkload = "ping"\noptions = {duration = "9 s"}\n'
        study = load_study(write(tmp_path, STUDY + ARMS + WORKLOADS + more), FILES, CATALOGUE)
        assert study.workloads == (WorkloadUse("ping", "ping"), WorkloadUse("long-ping", "ping", {"duration": "9 s"}))

    def test_blocks_and_seed_may_be_given_instead_of_those_in_the_file(self, tmp_path):
        study = load_study(write(tmp_path, STUDY + ARMS + WORKLOADS), FILES, CATALOGUE, blocks=9, seed=4)
        assert (study.blocks, study.seed) == (9, 4)

    @pytest.mark.parametrize("wrong", [{"blocks": 0}, {"seed": -1}])
    def test_but_only_sensible_ones(self, wrong):
        with pytest.raises(UsageError):
            load_study("quick", FILES, CATALOGUE, **wrong)


class TestTheQuickStudy:
    def test_is_what_the_readme_says(self):
        study = load_study("quick", FILES, CATALOGUE)
        assert [arm.name for arm in study.arms] == [
            *("direct", "direct-again", "anchor-chacha20", "wireguard-go", "tinc", "openvpn", "openvpn-again"),
            *("nebula", "yggdrasil"),
        ]
        assert study.arms[6] == Arm("openvpn-again", "openvpn", same_as="openvpn")
        assert study.arms[1] == Arm("direct-again", "direct", same_as="direct")
        assert [use.name for use in study.workloads] == ["ping", "tcp", "udp"]
        assert study.blocks == 8
        (auto,) = study.profiles
        assert (auto.name, auto.auto, str(auto.queue)) == ("auto", Rate.parse("1 Gbit/s"), "512 KiB")


class TestSavedInputs:
    def test_give_an_equal_study_without_any_other_file(self, tmp_path):
        own = tmp_path / "own"
        write(own, '[profile]\ntitle = "T"\nsource = "S"\nrate = "5 Mbit/s"\nqueue = "9 kB"\n', "profiles/slow.toml")
        write(own, STUDY.replace("gigabit", "slow") + ARMS + WORKLOADS, "studies/mine.toml")
        study = load_study("mine", Files((*FILES.folders, own)), CATALOGUE, blocks=3, seed=8)
        kept = tmp_path / "inputs"
        save_inputs(study, kept)
        write(own, "changed since", "profiles/slow.toml")
        assert load_study(study.name, Files((kept,)), CATALOGUE, blocks=study.blocks, seed=study.seed) == study

    def test_are_the_files_in_use_and_no_others(self, tmp_path):
        save_inputs(load_study("quick", FILES, CATALOGUE), tmp_path)
        assert sorted(str(file.relative_to(tmp_path)) for file in tmp_path.rglob("*.toml")) == [
            *("profiles/auto.toml", "studies/quick.toml", "topologies/pair.toml"),
        ]


class TestBrokenSyntax:
    def test_is_told_with_its_line(self, tmp_path):
        error = refusal(tmp_path, '[study]\nname = "mine"\nblocks 5\n')
        assert error.key.startswith("line 3")
        assert "not TOML" in error.message
        assert error.hint

    def test_at_the_end_of_the_file_is_told_too(self, tmp_path):
        assert "end of document" in refusal(tmp_path, '[study]\nname = "mi').message

    def test_a_key_that_stands_twice_is_told(self, tmp_path):
        assert "line 3" in refusal(tmp_path, "[study]\nblocks = 1\nblocks = 2\n").key

    def test_bytes_that_are_no_text_are_told(self, tmp_path):
        file = tmp_path / "mine.toml"
        file.write_bytes(b"\xff\xfe")
        with pytest.raises(PlanError, match="UTF-8"):
            load_study(str(file), FILES, CATALOGUE)


class TestAWrongShape:
    @pytest.mark.parametrize(
        ("wrong", "key", "hint"),
        [
            ('blocks = "five"', "study.blocks", "whole number"),
            ("blocks = 0", "study.blocks", "from 1 on"),
            ("blocks = true", "study.blocks", "whole number"),
            ("bloks = 5", "study.bloks", "did you mean blocks or max_blocks?"),
            ("blocks = 5\nseed = -1", "study.seed", "from 0 on"),
            ('blocks = 5\nready_timeout = "20"', "study.ready_timeout", "known units are us"),
            ('blocks = 5\nready_timeout = "-1 s"', "study.ready_timeout", "a duration above zero such as '10 ms'"),
            ("blocks = 5\nready_timeout = 20", "study.ready_timeout", "a duration above zero such as '10 ms'"),
        ],
    )
    def test_is_told_at_its_key_with_what_would_be_right(self, tmp_path, wrong, key, hint):
        error = refusal(tmp_path, STUDY.replace("blocks = 2", wrong) + ARMS + WORKLOADS)
        assert error.key == key
        assert hint in error.hint + error.message

    def test_in_a_table_of_a_list_is_told_with_the_name_too(self, tmp_path):
        error = refusal(tmp_path, STUDY + ARMS + '[[arm]]\nname = "tinc"\noption = {}\n' + WORKLOADS)
        assert error.key == "arm[2].option"
        assert "'tinc'" in error.message
        assert error.hint == "did you mean options?"

    def test_an_empty_file_lacks_its_tables(self, tmp_path):
        error = refusal(tmp_path, "")
        assert error.key == "study"
        assert "should be a table [study]" in error.message  # as the hint of the first of several
        assert "arm: is missing" in error.message
        assert "workload: is missing" in error.message

    def test_all_that_is_wrong_is_told_at_once(self, tmp_path):
        text = STUDY.replace("blocks = 2", "blocks = -2\nseeed = 1") + ARMS + '[[workload]]\nwork = "ping"\n'
        error = refusal(tmp_path, text)
        assert error.key == "study.seeed"
        for other in (
            "did you mean seed?",
            "study.blocks: -2 cannot be used",
            "from 1 on",
            "workload[0].workload: is missing",
            "workload[0].work:",
        ):
            assert other in error.message

    @pytest.mark.parametrize("name", ["Mine", "-mine", "my vpn", "../mine", "", "mine/x", "mine\\n"])
    def test_names_are_fit_for_folders(self, tmp_path, name):
        error = refusal(tmp_path, STUDY + ARMS + f'[[arm]]\nname = "{name}"\nvpn = "tinc"\n' + WORKLOADS)
        assert error.key == "arm[2].name"
        assert "lower-case" in error.hint


class TestNamesOfOtherThings:
    @pytest.mark.parametrize(
        ("good", "wrong", "key", "hint"),
        [
            ('profiles = ["gigabit"]', 'profiles = ["gigabyte"]', "study.profiles[0]", "did you mean gigabit?"),
            (
                'topologies = ["pair"]',
                'topologies = ["pair", "pair-jmbo"]',
                "study.topologies[1]",
                "did you mean pair-jumbo",
            ),
            ('workload = "ping"', 'workload = "pin"', "workload[0].workload", "did you mean ping?"),
            ('name = "direct-again"\n', 'name = "x"\nvpn = "wiregard-go"\n', "arm[1].vpn", "wireguard-go"),
            ('same_as = "direct"', 'same_as = "dirct"', "arm[1].same_as", "did you mean direct?"),
        ],
    )
    def test_that_are_unknown_give_the_nearest(self, tmp_path, good, wrong, key, hint):
        text = (STUDY + ARMS + WORKLOADS).replace(good, wrong)
        if 'vpn = "wiregard-go"' in wrong:
            text = text.replace('same_as = "direct"', "")
        error = refusal(tmp_path, text)
        assert error.key == key
        assert hint in error.hint

    def test_must_not_stand_twice(self, tmp_path):
        error = refusal(tmp_path, STUDY + ARMS + '[[arm]]\nname = "direct"\n' + WORKLOADS + WORKLOADS)
        assert error.key == "arm[2].name"
        assert "workload[1].name" in error.message

    def test_must_not_make_two_cells_one(self, tmp_path):
        arms = '[[arm]]\nname = "x"\nvpn = "tinc"\n[[arm]]\nname = "x.gigabit.pair"\nvpn = "tinc"\n'
        uses = '[[workload]]\nname = "gigabit.pair.ping"\nworkload = "ping"\n'
        error = refusal(tmp_path, STUDY + ARMS + arms + WORKLOADS + uses)
        assert "two cells" in error.message


class TestOptions:
    def test_are_checked_against_those_of_the_vpn(self, tmp_path):
        arm = '[[arm]]\nname = "o"\nvpn = "openvpn"\noptions = {ciper = "none", port = -4}\n'
        error = refusal(tmp_path, STUDY + ARMS + arm + WORKLOADS)
        assert error.key == "arm[2].options.ciper"
        assert "there is no such key (in 'o') (did you mean cipher?)" in error.message
        assert "arm[2].options.port: -4 cannot be used (in 'o') (should be greater than 0)" in error.message

    def test_tell_what_would_be_right(self, tmp_path):
        arm = '[[arm]]\nname = "openvpn"\noptions = {cipher = "rot13"}\n'
        error = refusal(tmp_path, STUDY + ARMS + arm + WORKLOADS)
        assert "'rot13' cannot be used (in 'openvpn')" in error.message
        assert error.hint == "should be 'aes-256-gcm' or 'none'"

    def test_of_a_vpn_without_any_are_refused(self, tmp_path):
        error = refusal(tmp_path, STUDY + ARMS + '[[arm]]\nname = "tinc"\noptions = {mtu = 1400}\n' + WORKLOADS)
        assert error.key == "arm[2].options.mtu"

    def test_of_a_workload_are_checked_too(self, tmp_path):
        error = refusal(tmp_path, STUDY + ARMS + WORKLOADS + "options = {duration = 2}\n")
        assert error.key == "workload[0].options.duration"


class TestEveryStudyCanJudgeItself:
    def test_it_needs_the_bare_link(self, tmp_path):
        arms = '[[arm]]\nname = "tinc"\n[[arm]]\nname = "tinc-again"\nsame_as = "tinc"\n'
        error = refusal(tmp_path, STUDY + arms + WORKLOADS)
        assert "bare link" in error.message
        assert 'name = "direct"' in error.hint

    def test_it_needs_an_equal_pair(self, tmp_path):
        error = refusal(tmp_path, STUDY + '[[arm]]\nname = "direct"\n' + WORKLOADS)
        assert "same as another" in error.message
        assert 'same_as = "direct"' in error.hint

    def test_an_equal_arm_must_be_equal(self, tmp_path):
        error = refusal(tmp_path, STUDY + ARMS.replace("same_as", 'vpn = "tinc"\nsame_as') + WORKLOADS)
        assert error.key == "arm[1].same_as"
        assert "vpn or options differ" in error.message

    def test_an_equal_arm_must_come_later(self, tmp_path):
        arms = '[[arm]]\nname = "a"\nsame_as = "direct"\n[[arm]]\nname = "direct"\n'
        assert refusal(tmp_path, STUDY + arms + WORKLOADS).key == "arm[0].same_as"


class TestWhereAStudyIsFound:
    def test_by_the_path_of_the_readme_from_any_directory(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        assert load_study("studies/quick.toml", FILES, CATALOGUE) == load_study("quick", FILES, CATALOGUE)

    def test_a_file_at_that_path_comes_first(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        write(tmp_path, STUDY + ARMS + WORKLOADS, "studies/quick.toml")
        assert load_study("studies/quick.toml", FILES, CATALOGUE).name == "mine"

    @pytest.mark.parametrize("path", ["./quik.toml", "quik.toml", "studies/quik.toml", "other/quick.toml"])
    def test_a_path_that_leads_nowhere_is_told(self, path):
        with pytest.raises(PlanError, match="no such file") as caught:
            load_study(path, FILES, CATALOGUE)
        assert caught.value.hint == "did you mean quick?"

    def test_an_unknown_name_gives_the_nearest(self):
        with pytest.raises(UnknownName) as caught:
            load_study("quik", FILES, CATALOGUE)
        assert caught.value.hint == "did you mean quick?"

    def test_a_folder_is_no_study(self, tmp_path):
        with pytest.raises(PlanError):
            load_study(str(tmp_path), FILES, CATALOGUE)


def test_a_study_is_frozen():
    study = load_study("quick", FILES, CATALOGUE)
    with pytest.raises(dataclasses.FrozenInstanceError):
        study.blocks = 7  # type: ignore[misc]
