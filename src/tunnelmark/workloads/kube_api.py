"""The workload `kube-api`: lists pods at a fixed rate, from a real Kubernetes API server with etcd.

Response times count from the intended send time. The workload relies on these facts about kube-apiserver 1.36. With
AlwaysAllow no client is anonymous, so even /readyz requires a token. The server ends within 2 s of SIGTERM when no
client is connected. It sends a list in chunks, without the list's length. It compresses a list above 128 KiB for a
client that accepts compression; the client here does not accept it. etcd 3.4 allocates 64 MB for its log when it
starts, here in the machine's memory.
"""

from __future__ import annotations

import json
import re
from typing import Annotated

import numpy as np
from pydantic import AwareDatetime, Field, model_validator

from tunnelmark.errors import OutputUnreadable
from tunnelmark.model.metrics import Metric, Sample
from tunnelmark.model.options import Options
from tunnelmark.model.steps import Command, CommandSucceeds, CopyFile, File, LogMatch, TcpPort
from tunnelmark.plan.fields import MomentText
from tunnelmark.units import Duration
from tunnelmark.workloads import _nginx, _vegeta
from tunnelmark.workloads._printed import ProgramOutput, understood
from tunnelmark.workloads.base import Endpoints, Program, Reading, Traffic, Workload

SERVER, STORE, PODS = "apiserver", "etcd", "pods"

_PORT, _ETCD_PORT, _ETCD_PEER_PORT = 6443, 2379, 2380
_PATIENCE_S = 30.0  # seconds that the server may take to become ready, and to end (2 s and 1 s on a quiet machine)
_USERS = _CLIENT, _ADMIN = "client", "admin"  # one lists pods, the other makes them; each name is its token, too
_LIST = "/api/v1/namespaces/default/pods"
_HEADERS = (f"Authorization: Bearer {_CLIENT}", "Accept-Encoding: identity")

_AUDIT = f"""apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
  users: [{_CLIENT}]  # so that the log has the listings that are measured, and nothing else
- level: None
"""

_POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"generateName": "pod-"},
    "spec": {"containers": [{"name": "main", "image": "registry.invalid/app:1"}]},
}

# Every vegeta here sends each of its targets once; the second column of its CSV is the status, the fifth the body's bytes.
_READY = """#!/bin/sh
url=$1 roots=$2
echo "GET $url" | vegeta attack -lazy -rate 100/1s -timeout 1s -root-certs "$roots" -header 'Authorization: Bearer admin' |
    vegeta encode --to csv | cut -d, -f2 | grep -qx 200
"""
_MAKE_PODS = """#!/bin/sh
# The same pod several times, each under a name of its own; then the size of their list, and waiting for the end.
folder=$1 url=$2 roots=$3 pods=$4
vegeta attack -lazy -targets "$folder/targets" -body "$folder/pod.json" -rate 0 -max-workers 4 -timeout 20s \\
    -root-certs "$roots" -header 'Authorization: Bearer admin' -header 'Content-Type: application/json' |
    vegeta encode --to json >"$folder/made" || exit 1
made=$(grep -c '"code":201,' "$folder/made")
if [ "$made" -ne "$pods" ]; then
    echo "only $made of $pods pods were made" >&2
    grep -v '"code":201,' "$folder/made" | head -n 1 >&2
    exit 1
fi
bytes=$(echo "GET $url" | vegeta attack -lazy -rate 100/1s -timeout 20s -root-certs "$roots" \\
    -header 'Authorization: Bearer admin' -header 'Accept-Encoding: identity' |
    vegeta encode --to csv | cut -d, -f2,5 | grep '^200,' | cut -d, -f2)
echo "$made pods, their list has $bytes bytes"
exec sleep infinity
"""
_SAID = r"^(\d+) pods, their list has (\d+) bytes$"


class KubeApiOptions(Options):
    """`requests` listings of `pods` pods are measured, at `rate` a second.

    Before them, the client sends listings at the same rate for the time `warmup`; these are not measured. With `http2`
    the client speaks HTTP/2, as kubectl does, else HTTP/1.1, as the tool (hey) of Kjorveziroski et al. 2024 did. They
    made 5000 requests at 10 a second; the default is shorter.
    """

    requests: Annotated[int, Field(ge=10, le=20_000)] = 50
    rate: Annotated[int, Field(ge=1, le=1000)] = 10
    warmup: MomentText = Duration(1)
    pods: Annotated[int, Field(ge=1, le=5000)] = 100
    http2: bool = False

    @model_validator(mode="after")
    def _warmup_is_short(self) -> KubeApiOptions:
        if self.attack.skipped > self.requests:
            raise ValueError("should have a warmup no longer than what is measured")
        return self

    @property
    def attack(self) -> _vegeta.Attack:
        """The requests to send. The warm-up makes the connection and fills the caches."""
        skipped = round(self.warmup * self.rate)
        return _vegeta.Attack(skipped + self.requests, self.rate, skipped=skipped)


class _Audited(ProgramOutput):
    """A line of the server's audit log."""

    stage: str
    requestReceivedTimestamp: AwareDatetime  # noqa: N815  the log's own names
    stageTimestamp: AwareDatetime  # noqa: N815


def _traffic(ends: Endpoints, options: KubeApiOptions) -> Traffic:
    here, folder = ends.target, ends.folder
    base = f"https://{_nginx.at(ends.target_address, _PORT)}"
    tls, certify = _nginx.certificate(here, ends.target_address, folder)
    roots = folder / "roots.crt"
    pods = folder / "pods"
    post, repeat_post = _vegeta.repeated(here, pods, [f"POST {base}{_LIST}"], options.pods)
    asked, repeat_asked, client = _vegeta.client(
        ends, options.attack, [base + _LIST], http2=options.http2, roots=roots, headers=_HEADERS
    )
    certificate = str(tls.certificate)
    make_pods = ("sh", str(pods / "make.sh"), str(pods), base + _LIST, certificate, str(options.pods))
    ready = ("sh", str(folder / "ready.sh"), f"{base}/readyz", certificate)
    return Traffic(
        servers=(
            _etcd(ends),
            Program(
                SERVER,
                here,
                _server(ends),
                ready=CommandSucceeds(here, ready),
                long_running=True,
                ready_timeout=_PATIENCE_S,
            ),
            Program(PODS, here, make_pods, ready=LogMatch(_SAID), long_running=True, ready_timeout=_PATIENCE_S),
        ),
        client=client,
        window=options.attack.window,
        warmup=options.attack.begins,
        timeout=options.attack.timeout,
        files=(
            File(here, folder / "tokens.csv", "".join(f'{user},{user},{user},"system:masters"\n' for user in _USERS)),
            File(here, folder / "audit.yaml", _AUDIT),
            File(here, folder / "ready.sh", _READY),
            File(here, pods / "make.sh", _MAKE_PODS),
            File(here, pods / "pod.json", json.dumps(_POD)),
            post,
            asked,
        ),
        setup=(
            Command(here, ("rm", "-rf", str(folder / "etcd"))),
            certify,
            Command(here, (_nginx.OPENSSL, "genrsa", "-out", str(folder / "accounts.key"), "2048")),
            CopyFile(here, folder / "tls.crt", ends.source, roots),
            repeat_post,
            repeat_asked,
        ),
    )


def _etcd(ends: Endpoints) -> Program:
    """Return the program etcd. Only its own node can reach it. Its files are in memory, like all files of a trial."""
    clients, peers = f"http://127.0.0.1:{_ETCD_PORT}", f"http://127.0.0.1:{_ETCD_PEER_PORT}"
    argv = (
        *("etcd", "--data-dir", str(ends.folder / "etcd")),
        *("--listen-client-urls", clients, "--advertise-client-urls", clients, "--listen-peer-urls", peers),
    )
    return Program(STORE, ends.target, argv, ready=TcpPort(_ETCD_PORT), long_running=True, ready_timeout=_PATIENCE_S)


def _server(ends: Endpoints) -> tuple[str, ...]:
    """Return the API server's command; it listens on the overlay address and prints its audit log to stdout."""
    folder, address = ends.folder, ends.target_address
    options = {
        "etcd-servers": f"http://127.0.0.1:{_ETCD_PORT}",
        "bind-address": address,
        "advertise-address": address,
        "secure-port": _PORT,
        "tls-cert-file": folder / "tls.crt",
        "tls-private-key-file": folder / "tls.key",
        "cert-dir": folder / "certificates",
        "service-account-key-file": folder / "accounts.key",
        "service-account-signing-key-file": folder / "accounts.key",
        "service-account-issuer": "https://kubernetes.default.svc",
        # The server refuses a range of another address family than its own address.
        "service-cluster-ip-range": "10.96.0.0/24" if address.version == 4 else "fd10:96::/112",
        "authorization-mode": "AlwaysAllow",
        "token-auth-file": folder / "tokens.csv",
        "disable-admission-plugins": "ServiceAccount",  # no controller makes the account that a pod would get
        "audit-policy-file": folder / "audit.yaml",
        "audit-log-path": "-",
    }
    return ("kube-apiserver", *(f"--{key}={value}" for key, value in options.items()))


def _read(outputs: dict[str, str], options: KubeApiOptions) -> Reading:
    attack = options.attack
    answers = _vegeta.read(outputs, attack)
    measured = answers[attack.skipped :]
    said = re.search(_SAID, outputs.get(PODS, ""), re.MULTILINE)
    if said is None:
        raise OutputUnreadable("nothing says how long the list of pods is", hint=f"see the output of {PODS}")
    latencies = [answer.latency for answer in measured]
    p50, p90, p99 = (float(value) for value in np.percentile(latencies, (50, 90, 99)))
    own = _own_times(outputs.get(SERVER, ""))
    answered = sum(not answer.error for answer in answers)
    if len(own) < answered:
        raise OutputUnreadable(
            f"the API server's log has {len(own)} listings, and {answered} were answered",
            hint=f"see the output of {SERVER}: it may have been cut short",
        )
    return Reading(
        samples=(
            Sample("p50", p50),
            Sample("p90", p90),
            Sample("p99", p99),
            Sample("max", max(latencies)),
            Sample("mean", float(np.mean(latencies))),
            Sample("server_p50", float(np.median(own[-len(measured) :]))),
            Sample("response", float(said[2])),
            *_vegeta.generator(measured, attack),
            *(Sample("latency", answer.latency, answer.due - attack.begins) for answer in measured),
        ),
        window=attack.window,
        warmup=attack.begins,
        starved=_vegeta.starved(measured, attack),
    )


def _own_times(log: str) -> list[float]:
    """Return for each request in the audit log the milliseconds from its arrival to the end of its answer."""
    hint = "this reader knows audit.k8s.io/v1; see the raw output, it may have been cut short"
    with understood("the API server's audit log has a line", hint):
        events = [_Audited.model_validate_json(line) for line in log.splitlines()]
    done = (event for event in events if event.stage == "ResponseComplete")
    return [1e3 * (event.stageTimestamp - event.requestReceivedTimestamp).total_seconds() for event in done]


WORKLOAD = Workload(
    name="kube-api",
    title="Pod listings from a Kubernetes API server (vegeta)",
    serves="a cluster's control",
    metrics=(
        Metric("p50", "ms", "median response time", "lower", "difference", primary=True, feels="delay"),
        Metric("p90", "ms", "90th percentile of response time", "lower", "difference", feels="delay"),
        Metric("p99", "ms", "99th percentile of response time", "lower", "difference", feels="tail"),
        Metric("max", "ms", "longest response time", "lower", "difference", feels="longest"),
        Metric("mean", "ms", "mean response time", "lower", "difference", feels="delay"),
        Metric("server_p50", "ms", "median time that the API server itself took", "lower", feels="processor"),
        Metric("response", "bytes", "size of a response's body", "lower", feels="counts"),
        *_vegeta.GENERATOR,
        Metric("latency", "ms", "response time of each request", "lower", feels="tail"),  # a series only
    ),
    traffic=_traffic,
    read=_read,
    programs=(_vegeta.PROGRAM, "kube-apiserver", "etcd", _nginx.OPENSSL),
    packages=("etcd-server", _nginx.OPENSSL_PACKAGE),
    options=KubeApiOptions,
    recipe="kube-apiserver",
)
