"""What `new` writes loads and passes its checks as it is; nothing is overwritten, and a bad name is refused."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from tunnelmark import registry
from tunnelmark.cli import command as cli
from tunnelmark.cli.ab_command import ab
from tunnelmark.errors import OutputUnreadable, WorkloadFailed
from tunnelmark.lab.backends import backend_of
from tunnelmark.plan.files import PATH_VARIABLE, Files
from tunnelmark.plan.load import load_profile, load_topology
from tunnelmark.workloads.base import Workload
from unit.vpns.test_drivers import mesh
from unit.workloads.recorded import ends, recorded


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty current folder, which is the one in TUNNELMARK_PATH."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(PATH_VARIABLE, str(tmp_path))
    registry.vpns.cache_clear()
    registry.workloads.cache_clear()
    yield tmp_path
    registry.vpns.cache_clear()
    registry.workloads.cache_clear()


def printed(begin: str, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """The words of the command that was printed and begins like that."""
    line = next(line for line in capsys.readouterr().out.splitlines() if line.strip().startswith(begin))
    return shlex.split(line.strip().split("   ")[0])


@pytest.mark.parametrize(
    ("forge", "place"),
    [("github", ".github/workflows/tunnelmark-ab.yml"), ("gitlab", ".gitlab/tunnelmark-ab.yml")],
)
def test_a_new_workflow_asks_ab_as_the_command_takes_it(
    forge: str, place: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["new", "ab-workflow", "wireguard-go", "--forge", forge]) == 0
    assert f"wrote {here / place}" in capsys.readouterr().out
    text = (here / place).read_text()
    assert "@" not in text.replace("actions/checkout@", "").replace("upload-artifact@", "").replace("body@", "")
    assert " ab wireguard-go --old" in text
    assert "--program ./wireguard-go" in text
    known = {option for parameter in ab.params for option in parameter.opts}
    start = text.index("ab wireguard-go")
    asked = re.findall(r"(?<= )--[a-z-]+", text[start : text.index("comment.md", start)])
    assert len(asked) > 6
    assert set(asked) <= known
    assert cli.main(["new", "ab-workflow", "wireguard-go", "--forge", forge]) == 2
    assert "exists already" in capsys.readouterr().err


def test_a_new_profile_is_a_link_that_needs_no_emulator(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["new", "profile", "my-dsl"]) == 0
    assert printed("tunnelmark check-link", capsys)[2] == "./profiles/my-dsl.toml"
    loaded = load_profile("my-dsl", Files.standard())
    assert (loaded.forward.rate, loaded.back.rate) == (20_000_000, 5_000_000)
    assert backend_of(loaded) == "shaper"
    assert "@" not in (here / "profiles" / "my-dsl.toml").read_text()


def test_what_is_commented_out_in_a_new_profile_loads_too(here: Path) -> None:
    assert cli.main(["new", "profile", "all"]) == 0
    file = here / "profiles" / "all.toml"
    lines = file.read_text().splitlines()
    begin = lines.index("[profile]")
    file.write_text("\n".join(line.removeprefix("# ") if " = " in line else line for line in lines[begin:]))
    forward = load_profile("all", Files.standard()).forward
    assert None not in (forward.delay, forward.jitter, forward.loss, forward.reordering)


def test_a_new_topology_has_three_nodes(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["new", "topology", "my-site"]) == 0
    assert printed("tunnelmark lab up", capsys)[3] == "./topologies/my-site.toml"
    assert load_topology("my-site", Files.standard()).nodes == ("a", "b", "c")


def test_the_command_to_try_it_is_right_in_a_folder_with_a_blank(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli.main(["new", "profile", "mine", "--dir", "my links"]) == 0
    words = printed("tunnelmark compare", capsys)
    assert words[-1] == "./my links/profiles/mine.toml"
    assert cli.main([*words[1:], "--dry-run"]) == 0


class TestANewWorkload:
    @pytest.fixture
    def workload(self, here: Path) -> Workload:
        assert cli.main(["new", "workload", "my-stream"]) == 0
        assert "@" not in (here / "workloads" / "my_stream.py").read_text()
        registry.workloads.cache_clear()  # another command would look afresh
        return registry.workload("my-stream")

    def test_starts_a_server_and_then_its_client(self, workload: Workload) -> None:
        traffic = workload.traffic(ends(), workload.options())
        (server,) = traffic.servers
        assert (server.node, traffic.client.node) == ("b", "a")
        assert server.ready is not None
        assert traffic.window + traffic.warmup < traffic.timeout

    def test_reads_what_iperf3_printed(self, workload: Workload) -> None:
        reading = workload.read(recorded("tcp-ipv4"), workload.options())
        (goodput,) = reading.samples
        assert goodput.metric == workload.metrics[0].name
        assert 900e6 < goodput.value < 960e6  # of a link of 1 Gbit/s
        assert reading.congestion_control == ("cubic",)

    def test_tells_a_failure_from_what_cannot_be_read(self, workload: Workload) -> None:
        with pytest.raises(WorkloadFailed):
            workload.read(recorded("tcp-refused"), workload.options())
        for text in ("", "{}", '{"end": {}}'):
            with pytest.raises(OutputUnreadable):
                workload.read({"client": text}, workload.options())


@pytest.mark.parametrize(("like", "phases"), [("openvpn", 2), ("wireguard-go", 3)])
def test_a_new_driver_may_begin_as_a_hub_or_a_mesh(
    here: Path, like: str, phases: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["new", "vpn", "my-vpn", "--like", like]) == 0
    assert like in (here / "vpns" / "my_vpn.py").read_text().lower()
    registry.vpns.cache_clear()  # another command would look afresh
    assert len(registry.vpn("my-vpn").deploy(mesh(3), registry.vpn("my-vpn").options()).phases) == phases
    capsys.readouterr()
    assert cli.main(["matrix", "my-vpn"]) == 0
    said = capsys.readouterr().out
    assert "not stated" in said
    assert "matrix/my-vpn.toml" in said
    assert "?" not in said


def test_a_row_that_is_there_already_is_left_alone(here: Path) -> None:
    (here / "matrix").mkdir()
    (here / "matrix" / "my-vpn.toml").write_text("mine")
    assert cli.main(["new", "vpn", "my-vpn"]) == 0
    assert (here / "matrix" / "my-vpn.toml").read_text() == "mine"


@pytest.mark.parametrize(
    ("kind", "taken", "bad"),
    [
        ("profile", "gigabit", "My DSL"),
        ("topology", "pair", "../up"),
        ("workload", "tcp", "class"),
        ("vpn", "tinc", "2x"),
    ],
)
def test_a_name_that_is_taken_or_bad_is_refused(
    kind: str, taken: str, bad: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["new", kind, taken]) == 2
    assert f"called {taken} already" in capsys.readouterr().err
    assert cli.main(["new", kind, bad]) == 2
    assert "hint:" in capsys.readouterr().err
    assert not list(here.iterdir())


@pytest.mark.parametrize(("kind", "part"), [("workload", "base"), ("workload", "new-workload"), ("vpn", "new-driver")])
def test_a_name_of_a_part_of_its_package_is_refused(
    kind: str, part: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["new", kind, part]) == 2
    assert "names a part of tunnelmark itself" in capsys.readouterr().err
    assert not list(here.iterdir())


@pytest.mark.parametrize("kind", ["profile", "topology", "workload"])
def test_nothing_is_overwritten(kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["new", kind, "mine", "--dir", str(tmp_path)]) == 0
    (file,) = (path for path in tmp_path.rglob("mine*") if path.is_file())
    file.write_text("mine")
    assert cli.main(["new", kind, "mine", "--dir", str(tmp_path)]) == 2
    assert "exists already" in capsys.readouterr().err
    assert file.read_text() == "mine"
