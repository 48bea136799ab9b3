"""Finds what limited each trial and each cell: a core, loss, a window, the link, the load, the generator, the emulator.

If different things limit the two sides of a ratio, the ratio measures the machine (`apart`): direct at the rate of the
link against a VPN at the rate of its processor is another number on every machine. So a report says next to the ratio
what limited each side.

The evidence is what the nodes counted while the traffic ran (`run.collectors.limits`), and how much of the load
arrived. The first of these conditions that holds is the answer:
- the whole load arrived;
- the generator says that it was at its own limit;
- the link was full, or its queue overflowed, and the receiver dropped almost nothing of what the link had carried;
- the emulator's cores were busy all the time, or an end waited for its core mostly while the emulator used it;
- a VPN that sends its packets over TCP took in far more packets than its TCP carried;
- the core of the sender or of the receiver was busy all the time;
- TCP waited for a window;
- packets were lost in some place;
- the program had nothing to send.
If no condition holds, the answer is `unknown`; nothing is guessed. Cores come before windows and losses, because a
program that gets no processor leaves its window closed and its buffers full. The window and the losses are then only
consequences.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from statistics import fmean

from tunnelmark.analyse.ceilings import AT_LOAD, is_throughput
from tunnelmark.analyse.model import BY_ITS_TCP, PROCESSOR, VPN_BUFFER, Analysis, Bottleneck, MetricCell, Scenario, What
from tunnelmark.analyse.pairing import setting_of
from tunnelmark.model.grades import others
from tunnelmark.record.results import MetricInfo, PlanInfo, TrialRow, WorkloadInfo

CORE = 0.95
"""A core, or a thread of a daemon, that had work for at least this share of the time had almost no rest."""

MOSTLY = 0.85
"""Other work's share of a core is not subtracted if the node itself used the core for at least this share of the time.

Nor is it if the node used the core or waited for it in a share of `CORE`. By its weight the lab leaves to other work
only what the node does not use, and softirq work that interrupts the other work is billed to that work."""

WAITED = 0.5
"""The emulator was the limit of an end that waited for its core in at least this share of the time, if the links'
programs ran for at least `MOSTLY` of that time."""

FULL = 0.97
"""From this share of the link's rate on, counted in Ethernet frames as the shaper counts them, the link is full."""

OVERFLOWED = 0.5
"""The link was the limit if its queue dropped at least this many packets for each packet that left the sender.

How busy the cores were does not matter then: at least a third of what came to the queue found no room, so a sender that
is slower by a third would have got the same through. A flood keeps its core busy, whether its packets arrive or not."""

WINDOW = 0.5
"""A window or buffer is the limit if TCP waited for it in at least this share of the time with something to send."""

STARVED = 0.9
"""If TCP had something to send in less than this share of the time, the program was the limit."""

BUSY = 0.5
"""Losses limit only a TCP connection that had something to send for at least this share of the time.

TCP has something to send as long as a segment waits to be sent again or acknowledged. So a connection that losses hold
back is busy nearly all the time, except when its program did not get the processor. If it is less busy than this, it
mostly waited for its program, and losses only made it send again. Nor do they alone limit a connection that had
nothing to send for a tenth of the time (`STARVED`) on a core that was busy all the time, by whatever work."""

LOST, FEW = 1e-4, 5
"""A place counts as losing packets if it lost at least this share of those sent, and at least this many packets.

With that share of losses, CUBIC's window (RFC 9438, section 5) still carries a gigabit per second over some
milliseconds, so a smaller share limits nothing here."""

SHARED = 0.25
"""A place is named for a cell if on average it lost at least this share of the packets that its trials lost.

By Mathis et al. ("The macroscopic behavior of the TCP congestion avoidance algorithm", CCR 27(3), 1997) a stream is
slower by the square root of its losses: without a quarter of them it is faster by 15 %."""

LOST_INSIDE = 1e-3
"""`LOST` for packets that are missing and that no drop counter has.

It is a larger share, because some packets are still on their way when they are counted."""

MERGED = 1.05
"""Packets that arrive this many times larger than sent were merged; wireguard-go has merged datagrams since 2024."""

_QUEUE = "the link's queue"
_PLACES = {
    "the sender's tunnel interface": ("tun", True),
    "a send buffer of the sender": ("sndbuf", True),
    "the sender's network interface": ("card", True),
    _QUEUE: ("link", True),
    "the link, as its profile says": ("lossy", True),
    "the receiver's network interface": ("card", False),
    VPN_BUFFER: ("rcvbuf", False),
    "the workload's receive buffer": ("rcvbuf_app", False),
}
"""Where a packet may be lost, in the order of its path: the counter of the collector, and whether the sender has it."""
_BY_TCP = 50.0  # per cent of the bytes between the nodes from which on the VPN's transfer is one by TCP (the collector `path`)

WHOLE = 1.5
"""Up to this many packets outside of the tunnel for one inside, the counts inside are of packets.

With more, they are of super-packets, or the packets were fragmented."""


def of_trial(row: TrialRow, use: WorkloadInfo, rate: int | None, back: int | None = None) -> Bottleneck | None:
    """Return what limited a trial; None if it has no result, or if the collector did not watch it.

    `rate`: the link's rate in bit/s; None if the link is not shaped. `back`: the rate of the opposite direction in
    bit/s; None if it equals `rate`.
    """
    limits = row.limits
    if row.outcome != "ok" or not limits:
        return None
    values = {sample.metric: sample.value for sample in row.samples if sample.time is None}
    found = _arrived(use, row.profile, values)
    if found is not None:
        return found
    sender, receiver = _ways(limits)
    rate = back if sender == "target" and back is not None else rate
    if rate is not None and limits.get(f"wire_{sender}", 0.0) >= FULL * rate and _kept(limits, sender, receiver):
        return Bottleneck("link", why=f"{100 * limits[f'wire_{sender}'] / rate:.0f} % of its rate left the sender")
    if (overflowed := _overflowed(limits, sender)) is not None and _kept(limits, sender, receiver):
        return overflowed
    if limits.get("emulator", 0.0) >= CORE:
        return Bottleneck("emulator", why=f"the links' programs used {limits['emulator']:.2f} cores")
    if (discarded := _discarded(limits, values, sender, receiver)) is not None:
        return discarded
    ends = (receiver,) if _all_left(use, row, sender, values) else (sender, receiver)
    cores = _cores(limits, sender, ends, others(row.host))
    if cores is not None:
        return _taken(limits, sender, receiver, cores) or cores
    window, buffer = (limits.get(f"tcp_{name}_{sender}", 0.0) for name in ("window", "buffer"))
    if window + buffer >= WINDOW:  # where both are small, TCP waits for one or the other
        words = "the receiver's window" if window >= buffer else "its send buffer"
        return Bottleneck("window", why=f"TCP waited for {words} in {100 * max(window, buffer):.0f} % of the time")
    busy = limits.get(f"tcp_busy_{sender}", 1.0)
    lost = _lost(limits, sender, receiver)
    if lost is not None and busy >= BUSY:
        if _without_core(limits, sender, busy):
            return Bottleneck("unknown")
        if values.get("retransmits") == 0:  # of the window; packets are counted from the warm-up on
            return replace(lost, why=f"{lost.why}, all before the window: TCP still grows from what that left")
        return lost
    if busy < STARVED and not _some_lost(limits, sender):
        return Bottleneck("generator", why=f"TCP had something to send in {100 * busy:.0f} % of the time")
    return Bottleneck("unknown")


def _arrived(use: WorkloadInfo, profile: str, values: Mapping[str, float]) -> Bottleneck | None:
    """Return the load, if all of it arrived, or the generator, if it reports that it was the limit; else None."""
    offered = use.offers(profile)
    for metric in (metric for metric in use.metrics if metric.primary and metric.name in values):
        if offered is not None and is_throughput(metric) and values[metric.name] >= AT_LOAD * offered:
            return Bottleneck("load", why=f"{100 * values[metric.name] / offered:.1f} % of what was offered arrived")
        if metric.limited_by and values.get(metric.limited_by, 0.0) > 0:
            return Bottleneck("generator", why="it says that it was at its own limit")
    return None


def _ways(limits: Mapping[str, float]) -> tuple[str, str]:
    """Return the end that sent the data and the end that received it; in a download the target is the sender."""
    back = limits.get("wire_target", 0.0) > 2 * limits.get("wire_source", 0.0)
    return ("target", "source") if back else ("source", "target")


def _overflowed(limits: Mapping[str, float], sender: str) -> Bottleneck | None:
    """Return the link's queue, if it had no room for a large part of what came to it; else None."""
    dropped, out = limits.get(f"drop_link_{sender}", 0.0), limits.get(f"out_{sender}", 0.0)
    if dropped < max(OVERFLOWED * out, FEW):
        return None
    return Bottleneck("loss", _QUEUE, f"{dropped:.0f} packets found no room, and {out:.0f} left the sender")


def _discarded(
    limits: Mapping[str, float], values: Mapping[str, float], sender: str, receiver: str
) -> Bottleneck | None:
    """Return the loss inside a VPN over TCP, if it took in far more packets than its own TCP carried; else None.

    Its core was then quick enough to throw the rest away. None also if the receiver's core was always busy, which may
    be why the transfer was slow.
    """
    sent, got = limits.get(f"sent_{sender}", 0.0), limits.get(f"got_{receiver}")
    if (
        got is None
        or _merged(limits, sender, receiver)
        or values.get("path_tcp", 0.0) < _BY_TCP
        or limits.get(f"core_{receiver}", 0.0) >= CORE
    ):
        return None
    if sent - got < max(OVERFLOWED * got, FEW):
        return None
    return Bottleneck("loss", BY_ITS_TCP, f"it took in {sent:.0f} packets, and its TCP carried {got:.0f}")


def _merged(limits: Mapping[str, float], sender: str, receiver: str) -> bool:
    """Return whether the VPN hands over several packets as one."""
    return limits.get(f"got_size_{receiver}", 0.0) > MERGED * limits.get(f"sent_size_{sender}", 0.0) > 0


def _kept(limits: Mapping[str, float], sender: str, receiver: str) -> bool:
    """Return whether what left the sender was not dropped at the receiver.

    Behind a full link, the receiver's queues may still have no room for a datagram.
    """
    places = ("card", "rcvbuf", "rcvbuf_app")
    lost = sum(limits.get(f"drop_{place}_{receiver}", 0.0) for place in places)
    return lost <= (1 - FULL) * limits.get(f"out_{sender}", 0.0)


def _all_left(use: WorkloadInfo, row: TrialRow, sender: str, values: Mapping[str, float]) -> bool:
    """Return whether the sender offered the whole load, so that its core, however busy, held nothing back.

    Always False for a tunnel: what the workload gave to the VPN's program may not have left.
    """
    offered = use.offers(row.profile)
    return (
        offered is not None and f"sent_{sender}" not in row.limits and values.get("offered", 0.0) >= AT_LOAD * offered
    )


def _cores(limits: Mapping[str, float], sender: str, ends: Iterable[str], other: float) -> Bottleneck | None:
    """Return the core of the busier end, if it was busy all the time; else None.

    Other work may have used the same core: `other`, in cores, is subtracted, because such work is not the arm's limit.
    """
    shares = list[tuple[float, What, str]]()
    for end in ends:
        what: What = "sender's core" if end == sender else "receiver's core"
        core = without_rest(limits, end, other)
        thread = limits.get(f"thread_{end}", 0.0)
        words = "its core had work" if core >= thread else "a thread of its daemon ran"
        shares.append((max(core, thread), what, f"{words} in {100 * max(core, thread):.0f} % of the time"))
    share, busier, why = max(shares, key=lambda found: found[0])
    return None if share < CORE else Bottleneck(busier, why=why)


def _taken(limits: Mapping[str, float], sender: str, receiver: str, core: Bottleneck) -> Bottleneck | None:
    """Return the emulator, if the end that `core` names mostly waited for its core, and for the emulator; else None.

    On few cores an end and the links' programs share one. The core is then always busy, but not with the end's work.
    """
    end, name = (sender, "sender") if core.what == "sender's core" else (receiver, "receiver")
    waited, emulator = limits.get(f"waited_{end}", 0.0), limits.get("emulator", 0.0)
    if waited < WAITED or emulator < MOSTLY * waited:
        return None
    shares = f"in {100 * waited:.0f} % of the time, and the links' programs used {emulator:.2f} cores"
    return Bottleneck("emulator", why=f"the {name} waited for its core {shares}")


def without_rest(limits: Mapping[str, float], end: str, other: float) -> float:
    """Return the share of the time (0 to 1) in which the core of an end was busy, without the time of other work.

    `limits`: what was counted in the trial. `end`: `source` or `target`. `other`: how many cores other work used (0.3
    is 30 % of one core). `other` is subtracted from the share in which the core was busy, but at least the share in
    which the node itself used the core is left. There are two exceptions, in which nothing is subtracted: the node
    itself used the core for at least `MOSTLY` of the time, or the times in which the node used the core or waited for
    it sum to at least `CORE`.
    """
    own, waited, core = (limits.get(f"{what}_{end}", 0.0) for what in ("used", "waited", "core"))
    return core if own >= MOSTLY or own + waited >= CORE else max(own, core - other)


def _without_core(limits: Mapping[str, float], sender: str, busy: float) -> bool:
    """Return whether TCP had nothing to send for a part of the time, while the sender's core was busy all the time."""
    return busy < STARVED and limits.get(f"core_{sender}", 0.0) >= CORE


def _some_lost(limits: Mapping[str, float], sender: str) -> bool:
    """Return whether the link lost at least a share `LOST` of the packets, even if these were few.

    Few losses may hold a slow stream back: it then waits for acknowledgements more than for its program.
    """
    lost = sum(limits.get(f"drop_{place}_{sender}", 0.0) for place in ("link", "lossy"))
    return 0 < LOST * limits.get(f"out_{sender}", 0.0) <= lost


def _lost(limits: Mapping[str, float], sender: str, receiver: str) -> Bottleneck | None:
    """Return the place on the data's path that lost the most packets, if these were enough to count; else None."""
    out = limits.get(f"out_{sender}", 0.0)
    if out <= 0:
        return None
    named = {
        place: limits.get(f"drop_{key}_{sender if at_sender else receiver}", 0.0)
        for place, (key, at_sender) in _PLACES.items()
    }
    # What a queue of the sender's own interface refuses is counted once more, by the socket or the tunnel that handed it
    # over (udp_send_skb() and iptunnel_xmit() of the kernel).
    refused = limits.get(f"drop_refused_{sender}", 0.0)
    for again in ("a send buffer of the sender", "the sender's tunnel interface"):
        twice = min(named[again], refused)
        named[again], refused = named[again] - twice, refused - twice
    place, count = max(named.items(), key=lambda found: found[1])
    if count >= max(LOST * out, FEW):
        shares = {name: lost / sum(named.values()) for name, lost in named.items() if lost}
        return Bottleneck("loss", place, f"{count:.0f} packets, and {out:.0f} left the sender", lost=shares)
    sent, got = limits.get(f"sent_{sender}", 0.0), limits.get(f"got_{receiver}")
    if _merged(limits, sender, receiver):
        return None  # the VPN hands over several packets as one, so their number says nothing
    if got is not None and 0 < out <= WHOLE * sent and sent - got >= max(LOST_INSIDE * sent, FEW):
        return Bottleneck("loss", "inside the VPN", f"{sent - got:.0f} packets that no counter has")
    return None


def of_cell(bounds: Iterable[Bottleneck | None]) -> Bottleneck | None:
    """Return the bottleneck of more than half of the watched trials; None if no trial was watched.

    `bounds`: the bottleneck of each trial; None for a trial that was not watched. If the trials differ so much that no
    bottleneck has more than half of them, the result is `unknown`. The cores of the two ends count together, and so do
    losses in different places. A loss names the place that lost the most packets, or each place that lost at least a
    share `SHARED` of the lost packets.
    """
    seen = [bound for bound in bounds if bound is not None]
    if not seen:
        return None
    losses = [bound for bound in seen if bound.what == "loss"]
    if 2 * len(losses) > len(seen):
        return _losses(losses, len(seen))
    names = Counter((bound.what, bound.place) for bound in seen)
    (what, place), count = names.most_common(1)[0]
    whole = Counter(bound.what for bound in seen)
    cores = Counter(bound.what for bound in seen if bound.what in PROCESSOR)
    if 2 * count <= len(seen) < 2 * cores.total():  # sometimes the one end's core, sometimes the other's
        what, place, count = cores.most_common(1)[0][0], "", cores.total()
    if 2 * count <= len(seen):
        said = ", ".join(f"{name} {times}" for name, times in sorted(whole.items()))
        return Bottleneck("unknown", "", f"it differs from trial to trial: {said}", count, len(seen))
    why = next(bound.why for bound in seen if bound.what == what and bound.place == place)
    return Bottleneck(what, place, why, count, len(seen))


def _losses(trials: Sequence[Bottleneck], total: int) -> Bottleneck:
    """Return the losses of these trials as one bottleneck, which names the places that lost most, along the path."""
    each = [trial.lost or {trial.place: 1.0} for trial in trials]
    shares = {
        place: fmean(lost.get(place, 0.0) for lost in each) for place in (*_PLACES, *(trial.place for trial in trials))
    }
    most = [place for place in shares if shares[place] >= SHARED] or [max(shares, key=lambda place: shares[place])]
    *first, last = most
    named = f"{', '.join(first)}{',' if ',' in ''.join(first) else ''} and {last}" if first else last
    lost = {place: share for place, share in shares.items() if share}
    why = "; ".join(f"{place}: {100 * share:.0f} %" for place, share in lost.items())
    by_trial = {
        place: (min(of.get(place, 0.0) for of in each), max(of.get(place, 0.0) for of in each)) for place in lost
    }
    return Bottleneck("loss", named, f"shares of the lost packets: {why}", len(trials), total, lost, by_trial)


def bound_by(plan: PlanInfo, trials: Iterable[TrialRow]) -> Mapping[tuple[str, Scenario], Bottleneck]:
    """Return the bottleneck of each arm in each setting whose trials were watched."""
    profiles = {profile.name: profile for profile in plan.profiles}
    uses = {use.name: use for use in plan.workloads}
    found: dict[tuple[str, Scenario], list[Bottleneck | None]] = {}
    for row in trials:
        profile = profiles[row.profile]
        bound = of_trial(row, uses[row.workload], profile.rate, profile.rate_of(back=True))
        found.setdefault((row.arm, setting_of(row)), []).append(bound)
    told = {key: of_cell(each) for key, each in found.items()}
    return {key: bound for key, bound in told.items() if bound is not None}


def bound_of(analysis: Analysis, arm: str | None, setting: Scenario, metric: MetricInfo) -> Bottleneck | None:
    """Return what limited an arm, if the metric says how much was transferred or how long that took.

    None for other metrics, if `arm` is None, or if the arm's trials were not watched.
    """
    if arm is None or metric.feels != "transfer" or metric.compare != "ratio":
        return None
    return analysis.bound_by.get((arm, setting))


def apart(one: Bottleneck | None, other: Bottleneck | None) -> str:
    """Say that different things limit the two sides of a ratio; "" if the same thing does, or if it is not known.

    The core of either end, and a buffer that a program emptied too late, count as the same thing: the processor. The
    text has a placeholder `{}` for the name of the other side.
    """
    if one is None or other is None or "unknown" in (one.what, other.what):
        return ""
    if (one.what, one.place) == (other.what, other.place) or (one.processor and other.processor):
        return ""
    return f"bound by {one.text}, while {{}} is bound by {other.text}"


def apart_from_direct(analysis: Analysis, cell: MetricCell) -> str:
    """Say that different things limit a cell and direct, so that their ratio measures the machine; else "".

    Of a twin of direct nothing is said: what limits it is near its limit in both.
    """
    if cell.arm in {arm.name for arm in analysis.results.plan.arms if analysis.reference in (arm.name, arm.same_as)}:
        return ""
    own = bound_of(analysis, cell.arm, cell.setting, cell.metric)
    theirs = bound_of(analysis, analysis.reference, cell.setting, cell.metric)
    return apart(own, theirs).format(analysis.reference)
