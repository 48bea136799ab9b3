"""Flame graphs in the report: which there are, what their stacks add up to, and that the cells lead to them."""

from __future__ import annotations

import io
import json
import re
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
from rich.console import Console

from tunnelmark.analyse import judge
from tunnelmark.analyse.model import Scenario
from tunnelmark.cli.draw_flames import draw
from tunnelmark.host import programs
from tunnelmark.model import stack_kinds
from tunnelmark.record.results import Results
from tunnelmark.report import flame_graphs, formatting, html, markdown
from unit.builders import TCP, Study
from unit.report.test_html import Page

SENDER = """\
wireguard-go;runtime.goexit;device.send;entry_SYSCALL_64_[k];__sys_sendmsg_[k];udp_sendmsg_[k] 40
wireguard-go;runtime.goexit;device.send;__sys_sendmsg_[k];__local_bh_enable_ip_[k];handle_softirqs_[k];tcp_v4_rcv_[k] 20
wireguard-go;runtime.goexit;golang.org/x/crypto/chacha20poly1305.chacha20Poly1305Seal 30
wireguard-go;[wireguard-go] 6
iperf3;[unknown];__GI___libc_write;ksys_write_[k];sock_write_iter_[k] 3
sleep;main 1
"""
SETTING = Scenario("gigabit", "pair", "tcp")


def study(folder: Path, *, arms: tuple[str, ...] = ("direct", "wireguard-go"), text: str = SENDER) -> Results:
    """Results of three blocks, where every trial of wireguard-go has stacks of its sender."""
    found = Study(arms=arms, same_as={}, workloads=(TCP,), blocks=3, fails=(("wireguard-go", "tcp", 3),)).results()
    rows = []
    for row in found.trials:
        raw = row.raw
        if row.arm == "wireguard-go":
            home = folder / "raw" / row.trial
            home.mkdir(parents=True)
            (home / "watch.stacks.source.folded").write_text(text)
            (home / "watch.cost.json").write_text(json.dumps({"CPU seconds": {"cpu": 9.0, "stacks": 0.25}}))
            (home / "watch.stacks.json").write_text(json.dumps({"unwinding": "fp"}))
            raw += (f"raw/{row.trial}/watch.stacks.source.folded", f"raw/{row.trial}/watch.cost.json")
        rows.append(replace(row, raw=raw))
    return replace(found, path=folder, trials=tuple(rows), plan=replace(found.plan, watch=("stacks",)))


def test_the_stacks_of_all_good_trials_of_a_cell_and_side_are_one_graph(tmp_path: Path):
    found = flame_graphs.of_results(study(tmp_path))
    (graph,) = found.all
    assert (graph.arm, graph.setting, graph.side, graph.samples) == ("wireguard-go", SETTING, "source", 200)
    assert graph.file == "flames/wireguard-go.gigabit.pair.tcp.source.svg"
    assert [path.split(".")[0] for path in graph.folded] == ["raw/001", "raw/002"], "the third failed"
    assert found.of("wireguard-go", SETTING) == (graph,)
    assert found.of("direct", SETTING) == ()
    assert found.cost == 0.25


def test_what_a_side_s_samples_add_up_to(tmp_path: Path):
    (graph,) = flame_graphs.of_results(study(tmp_path)).all
    daemon, generator, others = graph.programs
    assert (daemon.name, daemon.share) == ("wireguard-go", 0.96)
    assert {kind: share for kind, share in daemon.kinds.items() if share} == {
        "socket send": 0.40,
        "soft interrupts": 0.20,
        "cryptography": 0.30,
        "other of the program": 0.06,
    }
    assert (generator.name, generator.kinds["socket send"]) == ("iperf3", 0.03)
    assert (others.name, others.share) == ("others", 0.01)
    assert graph.unnamed == pytest.approx(6 / 37)
    assert graph.subtitle == (
        "200 samples of 2 trials, callers by frame pointers; 16 % of what programs did themselves is in functions without a name"
    )


@pytest.mark.parametrize(
    ("frames", "kind"),
    [
        ("read;ksys_read_[k];vfs_read_[k];tun_chr_read_iter_[k];tun_do_read_[k];schedule_[k]", "TUN read"),
        ("write;ksys_write_[k];tun_chr_write_iter_[k];tun_get_user_[k]", "TUN write"),
        ("write;ksys_write_[k];tun_chr_write_iter_[k];__do_softirq_[k];tcp_v4_rcv_[k]", "soft interrupts"),
        ("sendmmsg;__sys_sendmmsg_[k];___sys_sendmsg_[k]", "socket send"),
        ("recvmmsg;do_recvmmsg_[k];___sys_recvmsg_[k];udp_recvmsg_[k]", "socket receive"),
        ("recv;__sys_recvfrom_[k];tcp_recvmsg_[k];schedule_[k]", "socket receive"),
        ("epoll_wait;do_epoll_wait_[k];ep_poll_[k];schedule_[k]", "waiting and waking"),
        ("main;asm_exc_page_fault_[k];handle_mm_fault_[k]", "other kernel"),
        ("main;[libcrypto.so.3]", "cryptography"),
        ("main;EVP_EncryptUpdate;[libcrypto.so.3]", "cryptography"),
        ("[unknown];ring_core_0_17_14__chacha20_poly1305_seal_avx2", "cryptography"),
        ("runtime.goexit;crypto/cipher.(*gcmAsm).Seal;runtime.memmove", "cryptography"),
        ("runtime.goexit;device.(*Device).RoutineEncryption", "other of the program"),
        ("[vpn]", "other of the program"),
        ("", "other of the program"),
    ],
)
def test_a_sample_is_what_the_names_of_its_functions_say(frames: str, kind: str):
    assert stack_kinds.kind(frames) == kind


def test_cells_lead_to_the_graphs_that_are_drawn(tmp_path: Path):
    results = study(tmp_path)
    file = "flames/wireguard-go.gigabit.pair.tcp.source.svg"
    undrawn = html.render(judge(results))
    assert file not in undrawn and "tunnelmark-flame" in undrawn
    (tmp_path / file).parent.mkdir()
    (tmp_path / file).write_text("<svg/>")
    page = Page(text := html.render(judge(results)))
    assert page.open == []
    assert page.links.count(file) == 2, "in the cell and in the table of where the CPU went"
    table = text.partition('aria-label="Where the CPU went, tcp"')[2].partition("</table>")[0]
    rows = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in table.split("<tr>")[2:]]
    assert [(row[0], re.sub(r"<.*?>", "", row[1]), row[2]) for row in rows] == [("wireguard-go", "sender", "200")] * 3
    assert "0.25&nbsp;s of CPU per trial" in text
    assert "Stacks were recorded while" in text
    said = markdown.render(judge(results))
    assert f"[wireguard-go, sender]({file})" in said
    assert f"| {formatting.percent(0.4)} |" in said and "0.25 s of CPU per trial" in said


def test_without_stacks_the_report_has_nothing_of_it():
    analysis = judge(Study(arms=("direct", "tinc"), workloads=(TCP,), blocks=3).results())
    for said in (html.render(analysis), markdown.render(analysis)):
        assert "Where the CPU went" not in said and "Stacks were recorded" not in said


def test_why_there_are_no_stacks_is_told(tmp_path: Path):
    results = Study(arms=("direct", "tinc"), same_as={}, workloads=(TCP,), blocks=1).results()
    refused = tuple(replace(row, notes={"stacks": "perf does not record: <no>"}) for row in results.trials)
    analysis = judge(replace(results, path=tmp_path, trials=refused))
    assert "perf does not record: &lt;no&gt;" in html.render(analysis)
    assert "perf does not record: &lt;no&gt;" in markdown.render(analysis)


@pytest.mark.parametrize("text", ["", "torn", "no count \n", "a;b x\n"])
def test_damaged_stacks_are_no_graph_and_no_error(tmp_path: Path, text: str):
    assert flame_graphs.of_results(study(tmp_path, text=text)).all == ()


def test_lost_files_are_no_graph_and_no_error(tmp_path: Path):
    results = study(tmp_path)
    for file in tmp_path.rglob("watch.*"):
        file.unlink()
    found = flame_graphs.of_results(results)
    assert (found.all, found.cost) == ((), None)


def test_without_the_program_that_draws_the_report_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(programs, "search_path", lambda: str(tmp_path))
    console = Console(record=True, width=200, file=io.StringIO())
    draw(study(tmp_path), console)
    assert "no flame graph is drawn: the program tunnelmark-flame is not installed" in console.export_text()


@pytest.mark.skipif(not (programs.BUILT / "tunnelmark-flame").exists(), reason="needs tunnelmark-flame (cargo build)")
def test_graphs_are_drawn_from_what_is_kept(tmp_path: Path):
    console = Console(record=True, width=200, file=io.StringIO())
    draw(study(tmp_path), console)
    assert console.export_text() == ""
    text = (tmp_path / "flames/wireguard-go.gigabit.pair.tcp.source.svg").read_text()
    assert ElementTree.fromstring(text).tag.endswith("svg")
    for said in (
        "wireguard-go: sender (tcp, gigabit, pair)",
        "200 samples of 2 trials",
        "udp_sendmsg (80 samples, 40.00%)",
    ):
        assert said in text
