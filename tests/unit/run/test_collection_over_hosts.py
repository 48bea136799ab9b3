"""What each host's collectors saw becomes one: metrics that need both ends, files, and what one host could not see."""

from __future__ import annotations

import asyncio
import json
import time
import weakref
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import pytest

from tunnelmark.errors import LabError
from tunnelmark.host.pauses import Pause, PausesSeen
from tunnelmark.lab.labs import MIDDLE, Lab
from tunnelmark.lab.ssh.host_lab import HostLab
from tunnelmark.model.metrics import Sample
from tunnelmark.model.path_looks import DIRECT, RELAYED
from tunnelmark.plan.model import Link, Topology
from tunnelmark.run import collected_plain, host_collection
from tunnelmark.run.collection import Collection, CollectorFinding
from tunnelmark.run.collection_over_hosts import MACHINE, CollectionOverHosts
from tunnelmark.run.collectors import collectors, light
from tunnelmark.run.collectors.base import Collected, Collector, CollectorContext
from tunnelmark.run.collectors.traffic_path import AGE, SOON, TOO_LITTLE
from tunnelmark.run.host_collection import HostCollections, context_of, looks

PAIR = Topology("pair", "two nodes", ("a", "b"), (Link("link", ("a", "b")),))
ASKED: dict[str, Any] = {
    "source": "a",
    "target": "b",
    "card": "none",
    "begun": 10.0,
    "clock": 0.5,
    "nodes": {
        "a": {"interface": "tun0", "address": "10.60.0.1", "senders": {"10.50.0.2": "b"}},
        "b": {"interface": "tun0", "address": "10.60.0.2", "senders": {"10.50.0.1": "a"}},
    },
}


class Hosts:
    """Two hosts and what their relays answer at the end; or why one does not."""

    def __init__(self, **findings: list[CollectorFinding] | LabError) -> None:
        self._findings = findings
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.topology = PAIR
        self.dropped = 0
        self.machines: dict[str, dict[str, float]] = {}

    async def ask_hosts(self, op: str, *, what: str, **fields: Any) -> dict[str, Any]:
        self.asked.append((what, fields))
        if what != "end":
            return {host: {} for host in self._findings}
        return {
            host: found
            if isinstance(found, LabError)
            else {
                "machine": self.machines.get(host, {}),
                "findings": [collected_plain.plain(each) for each in found],
                "files": {
                    "watch.path.json": json.dumps({"looks": [{"time": ord(host[0])}], "bytes that arrived": {host: 1}})
                },
            }
            for host, found in self._findings.items()
        }

    async def link_counters(self) -> list[dict[str, dict[str, int]]]:
        self.dropped += 3
        counts = {"lost": 0, "sent_dropped": 0, "sent_lost": 0}
        return [{"a": {"dropped": 0, **counts}, "b": {"dropped": self.dropped, **counts}}]

    async def link_reports(self) -> list[dict[str, Any]]:
        return []


def watched(hosts: Hosts, raw: Path, *names: str) -> tuple[tuple[Sample, ...], CollectionOverHosts]:
    """What these collectors saw in a trial over these hosts, and they themselves."""
    collection = CollectionOverHosts(cast(Lab, hosts), "a", "b", raw, [collectors()[name] for name in names])

    async def trial() -> tuple[Sample, ...]:
        await collection.prepare(ASKED)
        await collection.begin()
        return await collection.end()

    return asyncio.run(trial()), collection


def seen(hosts: Hosts, raw: Path, *names: str) -> tuple[dict[str, float], dict[str, str], dict[str, float]]:
    """The values, notes and limits of a trial over these hosts."""
    samples, collection = watched(hosts, raw, *names)
    return {each.metric: each.value for each in samples if each.time is None}, collection.notes, collection.limits


def path(direct: float, relayed: float, *times: float, age: float = 4.0) -> CollectorFinding:
    """What one end saw, whose looks were at these times."""
    sums = {"inside": direct + relayed, "outside": 1e6, "direct": direct, "relayed": relayed, "over_tcp": 0.0}
    series = [Sample(name, share, time) for time in times for name, share in ((DIRECT, 100.0), (RELAYED, 0.0))]
    found = Collected(tuple(series), sums=sums, of_each_host={AGE: (age,)})
    return CollectorFinding(collectors()["path"], found, 0.25)


def test_the_path_is_that_of_what_arrived_at_both_ends(tmp_path: Path) -> None:
    values, notes, _ = seen(Hosts(alpha=[path(3e6, 0, 0.2)], beta=[path(0, 1e6, 0.1)]), tmp_path, "path")
    assert (values[DIRECT], values[RELAYED]) == (75, 25)
    assert values[SOON] == pytest.approx(4.1)
    assert values["watch_cpu"] == 0.5
    assert notes == {}


def test_the_vpn_has_one_age_however_many_hosts_say_it(tmp_path: Path) -> None:
    hosts = Hosts(alpha=[path(3e6, 0, 0.2, age=4.0)], beta=[path(0, 0, age=4.5)], gamma=[])
    values, notes, _ = seen(hosts, tmp_path, "path")  # nothing arrived at beta, and gamma has no end
    assert values[SOON] == pytest.approx(0.2 + 4.25)
    assert values[DIRECT] == 100 and notes == {}
    values, _, _ = seen(Hosts(alpha=[path(3e6, 0, 0.2, age=4.0)], gamma=[]), tmp_path, "path")
    assert values[SOON] == pytest.approx(4.2)
    values, notes, _ = seen(Hosts(alpha=[path(0, 0)], beta=[path(0, 0)]), tmp_path, "path")
    assert SOON not in values and set(notes.values()) == {TOO_LITTLE}


def test_files_of_all_hosts_become_one_in_the_order_of_time(tmp_path: Path) -> None:
    seen(Hosts(beta=[path(0, 1e6, 0.1)], alpha=[path(3e6, 0, 0.2)]), tmp_path, "path")
    found = json.loads((tmp_path / "watch.path.json").read_text())
    assert found == {"looks": [{"time": ord("a")}, {"time": ord("b")}], "bytes that arrived": {"alpha": 1, "beta": 1}}


def test_what_one_host_could_not_see_is_concluded_from_no_other(tmp_path: Path) -> None:
    blind = CollectorFinding(collectors()["path"], refused="no BPF")
    values, notes, _ = seen(Hosts(alpha=[path(3e6, 0, 0.2)], beta=[blind]), tmp_path, "path")
    assert DIRECT not in values
    assert set(notes.values()) == {"host beta: no BPF"}


def test_a_host_that_is_lost_fails_nothing_and_is_said(tmp_path: Path) -> None:
    gone = LabError("host beta did not answer", hint="look at it")
    values, notes, _ = seen(Hosts(alpha=[path(3e6, 0, 0.2)], beta=gone), tmp_path, "path")
    assert DIRECT not in values
    assert set(notes.values()) == {"host beta did not answer"}


@pytest.mark.parametrize(
    ("beta", "refused"),
    [
        ([CollectorFinding(collectors()["path"], refused="no BPF")], {"path": "host beta: no BPF"}),
        (LabError("host beta did not answer", hint="look at it"), {"path": "host beta did not answer"}),
        ([path(0, 0)], {}),  # too little to say anything is no refusal
    ],
)
def test_a_collector_that_a_host_refused_is_known(tmp_path: Path, beta: Any, refused: dict[str, str]) -> None:
    _, collection = watched(Hosts(alpha=[path(0, 0)], beta=beta), tmp_path, "path")
    assert collection.refused == refused


def test_what_the_links_dropped_is_asked_of_them_and_the_machine_is_no_node_s(tmp_path: Path) -> None:
    hosts = Hosts(alpha=[CollectorFinding(collectors()["limits"], Collected(limits={"core_source": 0.5}))])
    _, notes, limits = seen(hosts, tmp_path, "limits", "machine")
    lossless = {"drop_lossy_source": 0.0, "drop_lossy_target": 0.0}
    assert limits == {"core_source": 0.5, "drop_link_source": 3.0, "drop_link_target": 0.0} | lossless
    assert notes == {"machine": MACHINE}
    assert [what for what, _ in hosts.asked] == ["prepare", "begin", "end"]
    assert hosts.asked[0][1]["collectors"] == ["limits"]


def test_the_host_that_was_disturbed_most_counts_and_is_named(tmp_path: Path) -> None:
    hosts = Hosts(alpha=[], beta=[])
    quiet = {"steal": 0.01, "other_cpu": 0.05, "lab_cpu": 0.5, "softirq_cpu": 0.1, "pause_share": 0.0, "pauses": 1.0}
    hosts.machines = {"alpha": quiet, "beta": {**quiet, "other_cpu": 0.75, "pause_share": 0.02, "pauses": 9.0}}
    collection = CollectionOverHosts(cast(Lab, hosts), "a", "b", tmp_path, [])
    asyncio.run(collection.end())
    assert collection.machine == {
        "steal": 0.01,
        "other_cpu": 0.75,
        "lab_cpu": 1.0,
        "softirq_cpu": 0.2,
        "pause_share": 0.02,
        "pauses": 9.0,
    }
    assert collection.notes == {
        "hosts": "other work took 0.76 cores of host beta; host beta paused for 2 % of the time"
    }


def test_cpu_of_the_links_is_for_what_passed_the_sender_on_another_host(tmp_path: Path) -> None:
    cpu = collectors()["cpu"]
    sender = Collected(sums={"seconds_source": 2.0, "packets_source": 1e6, "bytes": 2e9})
    links = Collected(sums={"links": 1.0, "apart": 2})
    values, notes, _ = seen(
        Hosts(alpha=[CollectorFinding(cpu, sender)], gamma=[CollectorFinding(cpu, links)]), tmp_path, "cpu"
    )
    assert values["cpu_per_packet_source"] == pytest.approx(2.0)
    assert values["cpu_per_gb_lab"] == pytest.approx(0.5)
    assert set(notes) == {"cpu_per_packet_target"}


def test_a_finding_travels_as_it_is() -> None:
    found = CollectorFinding(
        collectors()["cpu"],
        Collected((Sample("cpu_source", 1.5, 0.5),), {"x": "y"}, 0.5, {"l": 1.0}, {"s": 2.0}, {"e": (3.0, 4.0)}),
        0.75,
    )
    assert collected_plain.read(json.loads(json.dumps(collected_plain.plain(found)))) == found


class TestOneHost:
    """A host looks at those of its nodes that are there."""

    top: Path | None = Path("/group")
    pauses: PausesSeen | None = None

    def lab(self, tmp_path: Path, *names: str) -> HostLab:
        async def unseen() -> PausesSeen | None:
            return self.pauses

        return HostLab("lab1", dict.fromkeys(names, 1), (), self.top, tmp_path, unseen)

    def test_ends_are_those_that_are_there(self, tmp_path: Path) -> None:
        context = context_of(ASKED, self.lab(tmp_path, "b", MIDDLE), tmp_path)
        assert context.ends == {"target": "b"}
        assert context.nodes["b"].group == Path("/group/lab1.b")
        assert context.nodes["b"].senders == {"10.50.0.1": "a"}
        assert context.middle is not None and context.middle.cores == (), "they are the node's, too"

    def test_only_what_has_something_to_look_at_is_made(self, tmp_path: Path) -> None:
        these = [collectors()[name] for name in (*light(), "tcp", "machine")]

        def made(*names: str) -> set[str]:
            context = context_of(ASKED, self.lab(tmp_path, *names), tmp_path)
            return {each.name for each in these if looks(each, context)}

        assert "tcp" in made("a") and "tcp" not in made("b") and "machine" not in made("a")
        assert made(MIDDLE) == {"cpu", "limits"}

    def test_a_collection_is_of_one_kernel(self, tmp_path: Path) -> None:
        context = context_of(ASKED, self.lab(tmp_path), tmp_path)
        assert asyncio.run(Collection(context, ()).end()) == ()

    def test_a_trial_that_does_not_begin_leaves_nothing(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        made: list[weakref.ref[Any]] = []

        class Holding:
            """Holds something of the node, and has written a file."""

            def __init__(self, context: CollectorContext) -> None:
                (context.raw / "watch.test").write_text("")
                made.append(weakref.ref(self))

        test = Collector("test", "test", (), cast(Any, Holding))
        monkeypatch.setattr(host_collection, "collectors", lambda: {"test": test})
        hosts, lab = HostCollections(), self.lab(tmp_path, "a")

        async def failed_trial() -> None:
            await hosts.asked({"what": "prepare", "collectors": ["test"], **ASKED}, lab)
            assert made[-1]() is not None and list(tmp_path.rglob("watch.test"))
            await hosts.asked({"what": "give up"}, lab)
            assert made[-1]() is None
            assert list(tmp_path.iterdir()) == []

        asyncio.run(failed_trial())
        assert len(made) == 1

    def test_what_has_ended_is_given_up_without_harm(self, tmp_path: Path) -> None:
        self.top = None
        hosts, lab = HostCollections(), self.lab(tmp_path)

        async def trial() -> dict[str, Any]:
            await hosts.asked({"what": "prepare", "collectors": [], **ASKED}, lab)
            await hosts.asked({"what": "begin"}, lab)
            found = dict(await hosts.asked({"what": "end"}, lab))
            return found | dict(await hosts.asked({"what": "give up"}, lab))

        found = asyncio.run(trial())
        assert (found["findings"], found["files"]) == ([], {})
        assert set(found["machine"]) == {"steal", "softirq_cpu"}, "nothing saw pauses, or what the nodes used"

    def test_what_the_host_did_besides_is_said_with_its_pauses(self, tmp_path: Path) -> None:
        self.top = None
        hosts = HostCollections()

        async def trial() -> Mapping[str, Any]:
            await hosts.asked({"what": "prepare", "collectors": [], **ASKED}, lab := self.lab(tmp_path))
            await hosts.asked({"what": "begin"}, lab)
            begun = time.monotonic_ns()
            await asyncio.sleep(0.1)
            self.pauses = PausesSeen(
                time.monotonic_ns(), (Pause(0, 0, 0, 1), Pause(0, begun, begun, begun + 50_000_000))
            )
            return await hosts.asked({"what": "end"}, lab)

        machine = asyncio.run(trial())["machine"]
        assert machine["pauses"] == 1 and machine["pause_longest"] == pytest.approx(0.05)
        assert 0 < machine["pause_share"] <= 0.5
