#!/usr/bin/env bash
# What the link costs: throughput of one TCP stream with super-packets and frame by frame, packets per second,
# added round-trip time, lateness at 500 Mbit/s. Needs root, iperf3, ping, ethtool; touches only namespaces of
# its own. Usage: wire.sh [path of tunnelmark-wire] [seconds a run] [extra options for the link...]
# The environment's `modes` (tap, veth: frame by frame, super: veth with super-packets) and `only` (a pattern) choose.
set -eu
wire=${1:-target/release/tunnelmark-wire}
seconds=${2:-2}
shift $(($# < 2 ? $# : 2))
extra=("$@")
scratch=$(mktemp -d)
pids=()
trap 'exec 9>&-; kill "${pids[@]}" 2>/dev/null; rm -rf "$scratch"' EXIT

namespace() { # VARIABLE: a process that holds a network namespace
    unshare -n sleep 1000 &
    pids+=($!)
    printf -v "$1" %s $!
    until [ "$(readlink /proc/$!/ns/net)" != "$(readlink /proc/self/ns/net)" ]; do sleep 0.01; done
}
at() { local pid=$1; shift; nsenter -t "$pid" -n "$@"; }

start() { # MODE STAGES: the link between fresh namespaces a and b
    namespace a; namespace b; namespace m
    local ports=()
    if [ "$1" = tap ]; then
        ports=(--tap "a.0=$a:eth0" --tap "b.0=$b:eth0")
    else
        for node in a b; do
            at "$m" ip link add "$node.0" type veth peer name eth0 netns "${!node}"
            at "$m" ip link set "$node.0" up
            [ "$1" = super ] || at "${!node}" ethtool -K eth0 tso off tx-udp-segmentation off >/dev/null
            at "${!node}" ip link set eth0 up
        done
        ports=(--port a.0 --port b.0)
    fi
    echo "{\"directions\": [{\"name\": \"ab\", \"from\": \"a.0\", \"stages\": $2}, {\"name\": \"ba\", \"stages\": $2}]}" >"$scratch/link.json"
    mkfifo "$scratch/in" 2>/dev/null || true
    at "$m" "$wire" --config "$scratch/link.json" "${ports[@]}" "${extra[@]}" <"$scratch/in" >"$scratch/out" &
    link=$!
    exec 9>"$scratch/in"
    until grep -q ready "$scratch/out"; do kill -0 $link; sleep 0.02; done
    at "$a" ip addr add 10.9.0.1/24 dev eth0
    at "$b" ip addr add 10.9.0.2/24 dev eth0
    if [ -n "${threaded:-}" ]; then
        for node in a b; do
            [ "$1" = tap ] || at "${!node}" ethtool -K eth0 gro on
            at "${!node}" unshare -m sh -c 'mount -t sysfs sysfs /sys && echo 1 >/sys/class/net/eth0/threaded'
        done
    fi
    at "$a" sh -c 'ip link set lo up'
    at "$b" sh -c 'ip link set lo up'
    at "$a" ping -c 3 -i 0.05 -q -W 1 10.9.0.2 >/dev/null || true
}
stop() { # ends the link; prints its last report
    exec 9>&-
    wait $link || true
    kill "$a" "$b" "$m"
    tail -n 1 "$scratch/out" | python3 -c '
import json, sys
r = json.loads(sys.stdin.read())["report"]
d = max(r["directions"], key=lambda d: d["bytes"])
late = d["lateness_us"]
gbit = sum(d["sent_bytes"] for d in r["directions"]) * 8e-9
drops = {k: v for k, v in d["dropped"].items() if v}
faults = {p["name"]: {k: v for k, v in p.items() if v and k != "name"} for p in r["ports"]}
print("    link: cpu %.2f s, %.3f cpu-s/Gbit, packets %d, units %d, late us p50 %.1f p99 %.1f p99.9 %.1f max %.0f, drops %s, faults %s" % (
    r["cpu_us"] / 1e6, r["cpu_us"] / 1e6 / max(gbit, 1e-9), d["packets"], d["units"], late["p50"], late["p99"], late["p999"], late["max"], drops, faults))'
}
stream() { # iperf3 from a to b with these options; prints Gbit/s received
    at "$b" iperf3 -s -1 -p 5301 >/dev/null 2>&1 &
    sleep 0.2
    at "$a" iperf3 -c 10.9.0.2 -p 5301 -t "$seconds" -J "$@" | python3 -c '
import json, sys
e = json.load(sys.stdin)["end"]
s = e["sum_received"]
print("    %.2f Gbit/s received" % (s["bits_per_second"] / 1e9), "%.0f kpps, %.1f %% lost" % (s["packets"] * (1 - s["lost_percent"] / 100) / s["seconds"] / 1e3, s["lost_percent"]) if "packets" in s else "%d retransmitted" % e["sum_sent"]["retransmits"])'
    wait %% 2>/dev/null || true
}
flood() { # as many small frames as one core sends
    local sent before after
    before=$(at "$b" ip -s -j link show eth0 | python3 -c 'import json, sys; print(json.load(sys.stdin)[0]["stats64"]["rx"]["packets"])')
    sent=$(at "$a" "$(dirname "$wire")/examples/flood" eth0 "$seconds")
    sleep 0.2
    after=$(at "$b" ip -s -j link show eth0 | python3 -c 'import json, sys; print(json.load(sys.stdin)[0]["stats64"]["rx"]["packets"])')
    python3 -c "print('    %.3f Mpps sent, %.3f Mpps received' % ($sent / $seconds / 1e6, ($after - $before) / $seconds / 1e6))"
}
rtt() { at "$a" ping -i 0.002 -c 500 -q 10.9.0.2 | tail -n 1 | sed 's/^/    /'; }

cases() { # MODE
    run "unimpaired" '{}' rtt stream -C cubic
    run "unimpaired, frames of 60 bytes" '{}' true flood
    run "1 ms, frames of 60 bytes" '{"delay_us": 1000}' true flood
    run "1 ms" '{"delay_us": 1000}' rtt stream -C cubic
    run "every decision on wire packets (loss of 1e-9)" '{"loss": {"kind": "independent", "probability": 1e-9}}' rtt stream -C cubic
    run "1 Gbit/s, 2 ms" '{"rate": {"rate_bps": 1000000000, "queue_bytes": 1000000}, "delay_us": 2000}' true stream -C cubic
    run "5 ms, ping only" '{"delay_us": 5000}' true rtt
    run "5 ms, 500 Mbit/s of UDP" '{"delay_us": 5000}' true stream -u -b 500M -l 1200 -w 4M --pacing-timer 100
}
run() { # TITLE STAGES COMMAND COMMAND...
    case $1 in ${only:-*}) ;; *) return ;; esac
    echo "$mode: $1"
    start "$mode" "$2"
    "$3"
    "${@:4}"
    stop
}
for mode in ${modes:-tap veth super}; do cases; done
