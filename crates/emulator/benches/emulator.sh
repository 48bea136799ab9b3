#!/usr/bin/env bash
# What the link costs: throughput of one TCP stream with super-packets and frame by frame, packets per second,
# added round-trip time, lateness at 500 Mbit/s. Needs root, iperf3, ping, ethtool; touches only namespaces of
# its own. Usage: emulator.sh [path of tunnelmark-emulator] [seconds a run] [extra options for the link...]
# The environment's `modes` and `only` (a pattern) choose:
#   xdp, veth, frames: frame by frame by AF_XDP, AF_PACKET and TAP; tap, super: super-packets by TAP and AF_PACKET;
#   direct: the two nodes joined by one veth pair without a link, frame by frame.
# The environment's `repeat` says how often all of it is done, one mode after the other.
set -eu
emulator=${1:-target/release/tunnelmark-emulator}
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
    case $1 in
    tap | frames) ports=(--tap "a.0=$a:eth0" --tap "b.0=$b:eth0") ;;
    direct) at "$a" ip link add eth0 type veth peer name eth0 netns "$b" ;;
    *)
        for node in a b; do
            at "$m" ip link add "$node.0" type veth peer name eth0 netns "${!node}"
            at "$m" ip link set "$node.0" up
        done
        [ "$1" = xdp ] && ports=(--xdp a.0 --xdp b.0) || ports=(--port a.0 --port b.0)
        ;;
    esac
    [ "$1" = tap ] || [ "$1" = frames ] || prepare "$1"
    echo "{\"directions\": [{\"name\": \"ab\", \"from\": \"a.0\", \"stages\": $2}, {\"name\": \"ba\", \"stages\": $2}]}" >"$scratch/link.json"
    mkfifo "$scratch/in" 2>/dev/null || true
    link=
    if [ "$1" != direct ]; then
        at "$m" "$emulator" --config "$scratch/link.json" "${ports[@]}" "${extra[@]}" <"$scratch/in" >"$scratch/out" &
        link=$!
        exec 9>"$scratch/in"
        until grep -q ready "$scratch/out"; do kill -0 $link; sleep 0.02; done
        [ "$1" != xdp ] || grep -q '"datapaths":."af_xdp"' "$scratch/out" || head -n 1 "$scratch/out"
    fi
    [ "$1" != frames ] || prepare "$1"
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
prepare() { # MODE: the nodes' interfaces as the lab has them
    for node in a b; do
        case $1 in
        super) ;;
        xdp) at "${!node}" ethtool -K eth0 tso off tx-udp-segmentation off tx off >/dev/null ;;
        *) at "${!node}" ethtool -K eth0 tso off tx-udp-segmentation off >/dev/null ;;
        esac
        at "${!node}" ip link set eth0 up
    done
}
stop() { # ends the link; prints its last report
    if [ -z "$link" ]; then
        kill "$a" "$b" "$m"
        return
    fi
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
    sent=$(at "$a" "$(dirname "$emulator")/examples/flood" eth0 "$seconds")
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
    run "every decision on emulator packets (loss of 1e-9)" '{"loss": {"kind": "independent", "probability": 1e-9}}' rtt stream -C cubic
    run "1 Gbit/s, 2 ms" '{"rate": {"rate_bps": 1000000000, "queue_bytes": 1000000}, "delay_us": 2000}' true stream -C cubic
    run "5 ms, ping only" '{"delay_us": 5000}' true rtt
    run "5 ms, 500 Mbit/s of UDP" '{"delay_us": 5000}' true stream -u -b 500M -l 1200 -w 4M --pacing-timer 100
}
run() { # TITLE STAGES COMMAND COMMAND...
    case $1 in ${only:-*}) ;; *) return ;; esac
    case $mode$2 in direct{}) ;; direct*) return ;; esac
    echo "$mode: $1"
    start "$mode" "$2"
    "$3"
    "${@:4}"
    stop
}
for _ in $(seq "${repeat:-1}"); do
    for mode in ${modes:-tap super frames veth xdp direct}; do cases; done
done
