"""Judges what probes met on a link against what was asked: exact intervals, Kolmogorov-Smirnov, tolerances. Pure.

A test has a p-value and is judged at 99 %; of many, one in a hundred is outside by chance. So a run as a whole fails on a
test only when its p-value is below 1 % divided by the number of tests (Bonferroni), which was fixed before any run.
A bound is a tolerance that was asked for; outside of it, a run fails.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from scipy import signal, stats
from scipy.special import kolmogi, ndtr

from support.accuracy import Look
from tunnelmark.analyse.link.jitter_distributions import latent_correlation, quantile
from tunnelmark.analyse.link.statistics import Flags, Floats, bursts, lag1, reordered
from tunnelmark.model.probe_plan import SIZE
from tunnelmark.plan.impairments import Chance, Direction, GilbertElliott, Jitter

LEVEL = 0.01
"""Probability that a test is outside by chance; of one test alone, and of all together for the run."""

MEAN_SHARE, MEAN_SLACK = 0.01, 50e-6
LAG = 0.02
_CHANCE = 3.3  # standard errors: one in a thousand

_STEP = 0.25e-6  # seconds; what a packet's path varies by is twenty times as much and more

_BITS = 8 * (SIZE + 28)  # of a frame without its Ethernet header: where a bit is inverted
_FATAL, _SHOWN = 207 / _BITS, 513 / _BITS  # bits that lose the probe, and those that a probe tells; 16 do neither


@dataclass(frozen=True, slots=True)
class Line:
    """One judged figure: what was asked, what came out, what was allowed; `p` None: a bound and not a test."""

    setting: str
    what: str
    asked: str
    achieved: str
    allowed: str
    inside: bool
    p: float | None = None
    note: str = ""

    def fails(self, tests: int) -> bool:
        """Whether the run fails on it, given how many tests the run makes."""
        return not self.inside if self.p is None else not self.p >= LEVEL / max(tests, 1)  # also of a NaN


def judge(look: Look) -> Iterator[Line]:
    """All lines of one setting."""
    way, row = look.setting.way, look.row
    yield from _lost(look)
    if way.duplication is not None or way.loss is None:
        yield _share(look, "copies", _copied(way), row.duplicated)
    if way.corruption is not None:
        chance = float(way.corruption.probability) * _SHOWN * (1 - _mean_loss(way)[0])
        yield _share(look, "corrupted, seen", chance, row.corrupted)
    if way.reordering is not None:
        came = ~np.isnan(row.delay)
        p, c = float(way.reordering.probability), float(way.reordering.correlation)
        skipped = row.delay < row.floor
        yield _share(look, "skipped the delay", p, skipped[came], c)
        yield _lag(look, "skips, lag-1", np.where(came, skipped, np.nan), c)
    yield from _delays(look)
    yield _bound(look, "lost or dropped unasked", 0, _unasked(look), 0, "packets")


# Shares of packets


def _lost(look: Look) -> Iterator[Line]:
    way, row = look.setting.way, look.row
    share, correlation = _mean_loss(way)
    fatal = float(way.corruption.probability) * _FATAL if way.corruption else 0.0
    if way.corruption is not None:  # a copy, never corrupted itself, stands in for its original
        extra = (1 - share) * fatal * (1 - (float(way.duplication.probability) if way.duplication else 0.0))
    else:
        extra = 0.0
    yield _share(look, "lost", share + extra, row.lost, correlation, extra)
    if way.loss is not None and not extra:
        yield _lag(look, "losses, lag-1", row.lost.astype(float), correlation)
    if isinstance(way.loss, GilbertElliott) and not extra:
        lengths = bursts(row.lost)
        r = float(way.loss.r)
        sd = float(np.sqrt(1 - r) / r / np.sqrt(len(lengths)))
        yield _normal(look, "losses, mean burst", 1 / r, float(lengths.mean()), sd, "packets", "geometric")


def _mean_loss(way: Direction) -> tuple[float, float]:
    """The share that the loss stage loses, and the lag-1 correlation of losses."""
    match way.loss:
        case None:
            return 0.0, 0.0
        case Chance(probability, correlation):
            return float(probability), float(correlation)
        case GilbertElliott(p, r):  # all of the bad state and nothing of the good one is lost here
            return float(p / (p + r)), float(1 - p - r)
    raise NotImplementedError(way.loss)


def _copied(way: Direction) -> float:
    """The share of probes that arrive twice."""
    if way.duplication is None:
        return 0.0
    fatal = float(way.corruption.probability) * _FATAL if way.corruption else 0.0
    return float(way.duplication.probability) * (1 - _mean_loss(way)[0]) * (1 - fatal)


def _share(look: Look, what: str, asked: float, struck: Flags, correlation: float = 0.0, plain: float = 0.0) -> Line:
    """A probability. Correlated strikes are a Markov chain: the variance of their number is larger by (1 + c)/(1 - c).

    `plain` is the part of the probability that is not correlated.
    """
    n, k = len(struck), int(np.count_nonzero(struck))
    if asked == 0.0:
        return _bound(look, what, 0, k, 0, "packets")
    if correlation:
        variance = (asked - plain) * (1 - asked + plain) * (1 + correlation) / (1 - correlation) + plain * (1 - plain)
        sd = float(np.sqrt(variance / n))
        return _normal(look, what, 100 * asked, 100 * k / n, 100 * sd, "%", "Markov variance")
    law = stats.binom(n, asked)
    low, high = law.ppf(LEVEL / 2), law.isf(LEVEL / 2)
    p = min(1.0, 2 * min(float(law.cdf(k)), float(law.sf(k - 1))))
    allowed = f"{100 * low / n:.4f} to {100 * high / n:.4f} %"
    return Line(
        look.setting.title,
        what,
        f"{100 * asked:.4g} %",
        f"{100 * k / n:.4f} %",
        allowed,
        low <= k <= high,
        p,
        "binomial",
    )


def _normal(look: Look, what: str, asked: float, found: float, sd: float, unit: str, note: str) -> Line:
    half = float(stats.norm.isf(LEVEL / 2)) * sd
    p = 2 * float(stats.norm.sf(abs(found - asked) / sd))
    allowed = f"{asked - half:.4f} to {asked + half:.4f} {unit}"
    inside = abs(found - asked) <= half
    return Line(look.setting.title, what, f"{asked:.4g} {unit}", f"{found:.4f} {unit}", allowed, inside, p, note)


def _bound(look: Look, what: str, asked: float, found: float, room: float, unit: str, note: str = "") -> Line:
    digits = ".0f" if unit == "packets" else ".4f"
    allowed = f"{asked - room:{digits}} to {asked + room:{digits}} {unit}".strip() if room else f"{asked:g} {unit}"
    asked_text, achieved = (f"{value:{digits}} {unit}".strip() for value in (asked, found))
    inside = abs(found - asked) <= room
    return Line(look.setting.title, what, asked_text, achieved, allowed, inside, None, note)


def _lag(look: Look, what: str, values: Floats, asked: float) -> Line:
    """A correlation; with few values chance alone does more than the bound, and then that is what is allowed."""
    known = values[~np.isnan(values)]
    share = float(known.mean())
    # Of strikes: the error of the share of those that are followed by another. Of delays: that of independent ones.
    once = set(np.unique(known[:1000])) <= {0.0, 1.0}
    after = share + asked * (1 - share)
    error = np.sqrt(after * (1 - after) / (share * len(known))) if once else 1 / np.sqrt(len(known))
    return _bound(look, what, asked, lag1(values), max(LAG, _CHANCE * float(error)), "")


def _unasked(look: Look) -> int:
    """Packets that are missing though neither the loss stage nor a corrupted header took them.

    The emulator also counts what is no probe (neighbour discovery), so that its losses may be some more.
    """
    missing = int(np.count_nonzero(look.row.lost)) - int(look.said["dropped"]["loss"])
    corrupted = int(look.said["realised"]["corrupted"])
    return look.unplanned + max(0, missing - corrupted)


# Delays


def _delays(look: Look) -> Iterator[Line]:
    way, row = look.setting.way, look.row
    jitter = way.jitter
    chosen = look.stated & (row.delay >= row.floor)
    if jitter is not None and jitter.keep_order and not _held(look):
        chosen &= _alone(look, jitter)
    delay = np.where(chosen, row.delay, np.nan)
    known = delay[~np.isnan(delay)]
    asked = float(way.delay or 0.0)
    if jitter is not None and jitter.keep_order:
        yield _bound(look, "out of order", 0, _overtaken(look), 0, "packets")
    if jitter is not None and _held(look):
        expected = kept(look)
        yield _mean(look, "mean delay, as held", float(expected.mean()), known)
        return
    yield _mean(look, "mean delay", asked, known)
    if jitter is not None:
        yield _lag(look, "delays, lag-1", delay, float(jitter.correlation))
        yield _shape(look, jitter, np.sort(known))


def _mean(look: Look, what: str, asked: float, known: Floats) -> Line:
    room = max(MEAN_SHARE * asked, MEAN_SLACK)
    return _bound(look, what, 1e3 * asked, 1e3 * float(known.mean()), 1e3 * room, "ms", f"{len(known)} probes")


def _overtaken(look: Look) -> int:
    """Packets that arrived after a later one."""
    sent, delay = look.row.sent, look.row.delay
    came = ~np.isnan(delay)
    order = np.argsort(sent[came] + delay[came], kind="stable")
    return round(reordered(order) * len(order))


def _held(look: Look) -> bool:
    """Whether probes are closer together than the jitter reaches, so that order is kept by waiting."""
    jitter = look.setting.way.jitter
    if jitter is None or not jitter.keep_order:
        return False
    return bool(np.median(np.diff(look.row.sent)) < _reach(jitter))


def _reach(jitter: Jitter) -> float:
    """Seconds after a packet in which the next may have to wait for it."""
    return 2 * jitter.size if jitter.distribution == "uniform" else 8 * jitter.size


def _alone(look: Look, jitter: Jitter) -> Flags:
    """Which probes need not wait for one before: a late sender sends the next ones at once, and those should."""
    found: Flags = np.diff(look.row.sent, prepend=-np.inf) >= _reach(jitter)
    return found


def kept(look: Look, seed: int = 1) -> Floats:
    """The delays that follow for these very moments of sending when no packet may overtake, without the path."""
    way, sent = look.setting.way, look.row.sent
    assert way.jitter is not None
    random = np.random.default_rng(seed)
    own = float(way.delay or 0.0) + way.jitter.size * quantile(
        way.jitter.distribution, random.standard_normal(len(sent))
    )
    held: Floats = np.maximum.accumulate(sent + own) - sent
    return held[look.stated]


def law(way: Direction, path: Floats) -> Callable[[Floats], Floats]:
    """The distribution function of the stated delay plus the path's as measured: their convolution, in steps of `_STEP`."""
    assert way.jitter is not None
    z = np.linspace(-7, 7, 200_001)
    values = float(way.delay or 0.0) + way.jitter.size * quantile(way.jitter.distribution, z)
    edges = np.arange(values[0] - _STEP, values[-1] + 2 * _STEP, _STEP)
    own = np.diff(np.interp(edges, values, ndtr(z), 0.0, 1.0))
    places = np.round((path - path.min()) / _STEP).astype(np.int64)
    both = signal.fftconvolve(own, np.bincount(places) / len(path))
    ends = edges[0] + path.min() + _STEP * np.arange(len(both) + 1)
    below = np.concatenate(([0.0], np.cumsum(both)))
    return lambda x: np.interp(x, ends, below, 0.0, 1.0)


def distance(ordered: Floats, below: Callable[[Floats], Floats]) -> float:
    """Kolmogorov's and Smirnov's statistic of an ordered sample."""
    n, at = len(ordered), below(ordered)
    return float(max((np.arange(1, n + 1) / n - at).max(), (at - np.arange(n) / n).max()))


def _shape(look: Look, jitter: Jitter, ordered: Floats) -> Line:
    judged = look
    if jitter.keep_order:
        judged = replace(look, still=look.still & _alone(look, jitter))
    below = law(look.setting.way, judged.path)
    n = len(ordered)
    found = distance(ordered, below)
    wider = dependence(latent_correlation(jitter.distribution, float(jitter.correlation)))
    limit = float(kolmogi(LEVEL)) * wider / np.sqrt(n)
    p = float(stats.kstwobign.sf(found * np.sqrt(n) / wider))
    thin = ordered[:: max(n // 50_000, 1)]
    shifts = np.arange(-60, 61, 2) * 1e-6
    best = shifts[int(np.argmin([distance(thin - shift, below) for shift in shifts]))]
    plain = distance(ordered, law(look.setting.way, np.zeros(1)))
    note = f"n {n}, without the path {plain:.5f}, least if moved by {-1e6 * best:.0f} us; {_shown(below, ordered, limit):.0f} us would show"
    return Line(
        look.setting.title,
        "distribution (KS)",
        jitter.distribution,
        f"D {found:.5f}",
        f"D to {limit:.5f}",
        found <= limit,
        p,
        note,
    )


def _shown(below: Callable[[Floats], Floats], ordered: Floats, limit: float) -> float:
    """The microseconds by which all packets would have to be late for the test to see it."""
    at = ordered[:: max(len(ordered) // 20_000, 1)]
    for shift in range(1, 1000):
        if float((below(at + shift * 1e-6) - below(at)).max()) > limit:
            return float(shift)
    return float("inf")


@cache
def dependence(correlation: float) -> float:
    """How much wider Kolmogorov's law is for a sequence that a normal autoregressive one makes, by simulation.

    The statistic does not depend on the distribution, so uniform ones do; 4000 sequences of 5000. Compared at 99 %: the
    law has another shape, and further inside this one is too wide.
    """
    if correlation == 0.0:
        return 1.0
    random = np.random.default_rng(3)
    n = 5000
    fresh = random.standard_normal((4000, n)) * np.sqrt(1 - correlation**2)
    fresh[:, 0] /= np.sqrt(1 - correlation**2)
    values = np.sort(ndtr(signal.lfilter([1.0], [1.0, -correlation], fresh)))
    found = [distance(row, lambda x: x) * np.sqrt(n) for row in values]
    return float(np.quantile(found, 1 - LEVEL) / kolmogi(LEVEL))


def summary(lines: Sequence[Line]) -> tuple[int, int, float]:
    """How many tests there are, how many are outside at 99 %, and how many would be by chance."""
    tests = [line for line in lines if line.p is not None]
    return len(tests), sum(not line.inside for line in tests), LEVEL * len(tests)
