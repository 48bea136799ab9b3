"""Profile and topology files become checked data, or an error that says where and what would be right."""

from pathlib import Path

import pytest

from tunnelmark.errors import PlanError, UnknownName
from tunnelmark.plan.files import Files
from tunnelmark.plan.impairments import Direction
from tunnelmark.plan.load import load_profile, load_topology
from tunnelmark.plan.model import CARD, Link, Profile
from unit.plan.studies import FILES, write

PROFILE = '[profile]\ntitle = "T"\nsource = "S"\n'
TOPOLOGY = '[topology]\ntitle = "T"\nnodes = ["a", "b"]\n'


def profile(folder: Path, text: str) -> Profile:
    write(folder, text, "profiles/mine.toml")
    return load_profile("mine", Files((folder,)))


def refused_profile(folder: Path, text: str) -> PlanError:
    with pytest.raises(PlanError) as caught:
        profile(folder, text)
    assert caught.value.file.endswith("profiles/mine.toml")
    return caught.value


def refused_topology(folder: Path, text: str) -> PlanError:
    write(folder, text, "topologies/mine.toml")
    with pytest.raises(PlanError) as caught:
        load_topology("mine", Files((folder,)))
    return caught.value


@pytest.mark.parametrize("name", FILES.names("profile"))
def test_every_profile_of_ours_states_its_source(name):
    loaded = load_profile(name, FILES)
    assert loaded.name == name
    assert len(loaded.source) > 20


@pytest.mark.parametrize("name", FILES.names("topology"))
def test_every_topology_of_ours_loads(name):
    assert load_topology(name, FILES).name == name


class TestAProfile:
    def test_has_rate_and_queue(self, tmp_path):
        loaded = profile(tmp_path, PROFILE + 'rate = "20 Mbit/s"\nqueue = "64 KiB"\n')
        assert loaded.forward == loaded.back == Direction(rate=loaded.rate, queue=loaded.queue)
        assert loaded == Profile("mine", "T", "S", loaded.forward, loaded.back, card=CARD)
        assert (loaded.rate, loaded.queue) == (20_000_000, 65536)

    def test_or_neither(self, tmp_path):
        loaded = profile(tmp_path, PROFILE)
        assert (loaded.rate, loaded.queue) == (None, None)

    @pytest.mark.parametrize("rate", ['"-1 Gbit/s"', '"0 Mbit/s"', '"fast"', "1000", '""'])
    def test_refuses_a_rate_that_is_none(self, tmp_path, rate):
        error = refused_profile(tmp_path, PROFILE + f'rate = {rate}\nqueue = "64 KiB"\n')
        assert error.key == "profile.rate"
        assert error.hint == "should be a rate above zero such as '100 Mbit/s'"

    def test_refuses_a_unit_that_is_none_of_a_rate(self, tmp_path):
        error = refused_profile(tmp_path, PROFILE + 'rate = "1 GiB"\nqueue = "64 KiB"\n')
        assert "'GiB'" in error.hint
        assert "Gbit/s" in error.hint

    def test_needs_a_stated_queue_in_front_of_a_rate(self, tmp_path):
        error = refused_profile(tmp_path, PROFILE + 'rate = "1 Gbit/s"\n')
        assert error.key == "profile.queue"
        assert "512 KiB" in error.hint

    def test_has_no_queue_without_a_rate(self, tmp_path):
        assert refused_profile(tmp_path, PROFILE + 'queue = "64 KiB"\n').key == "profile.rate"

    def test_must_say_where_its_figures_come_from(self, tmp_path):
        assert refused_profile(tmp_path, '[profile]\ntitle = "T"\n').key == "profile.source"

    def test_of_an_unknown_name_gives_the_nearest(self):
        with pytest.raises(UnknownName) as caught:
            load_profile("gigbit", FILES)
        assert caught.value.hint == "did you mean gigabit?"

    def test_is_not_found_outside_of_the_folders(self, tmp_path):
        write(tmp_path, PROFILE, "mine.toml")
        (tmp_path / "profiles").mkdir()
        with pytest.raises(UnknownName):
            load_profile("../mine", Files((tmp_path,)))


class TestATopology:
    def test_may_be_a_switch(self):
        trio = load_topology("lan-3", FILES)
        assert trio.nodes == ("a", "b", "c")
        assert trio.links == (Link("switch", ("a", "b", "c")),)

    def test_links_only_its_own_nodes(self, tmp_path):
        error = refused_topology(tmp_path, TOPOLOGY + '[[link]]\nname = "w"\nnodes = ["a", "c"]\n')
        assert error.key == "link[0].nodes[1]"
        assert "no node or router called 'c' (in 'w')" in error.message

    def test_leaves_no_node_alone(self, tmp_path):
        text = TOPOLOGY.replace('"b"]', '"b", "c"]') + '[[link]]\nname = "w"\nnodes = ["a", "b"]\n'
        assert refused_topology(tmp_path, text).key == "topology.nodes[2]"

    def test_does_not_route_yet(self, tmp_path):
        links = '[[link]]\nname = "v"\nnodes = ["a", "b"]\n[[link]]\nname = "w"\nnodes = ["b", "c"]\n'
        error = refused_topology(tmp_path, TOPOLOGY.replace('"b"]', '"b", "c"]') + links)
        assert "'a' and 'c' are joined by no link and no router" in error.message
        assert "switch" in error.hint

    @pytest.mark.parametrize("nodes", ['["a"]', '["a", "a"]', "[]", '["a", "B"]'])
    def test_has_two_nodes_or_more_of_different_names(self, tmp_path, nodes):
        text = TOPOLOGY.replace('["a", "b"]', nodes) + '[[link]]\nname = "w"\nnodes = ["a", "b"]\n'
        assert refused_topology(tmp_path, text).key.startswith("topology.nodes")

    def test_has_links_of_different_names_and_nodes(self, tmp_path):
        error = refused_topology(tmp_path, TOPOLOGY + '[[link]]\nname = "w"\nnodes = ["a", "b", "a"]\n' * 2)
        assert error.key == "link[1].name"
        assert "link[0].nodes[2]" in error.message
