"""Writes a profile as arguments of the kernel's netem (tc-netem(8)), for kernels that have it. Pure."""

from __future__ import annotations

from tunnelmark.lab.emulator_config import us
from tunnelmark.plan.impairments import Bursts, Chance, Direction, FourState, GilbertElliott, Loss, Pattern


def arguments(direction: Direction) -> list[str]:
    """Return the arguments of `tc qdisc add ... netem` for one direction of a profile that netem carries.

    They leave out a propagation, which is another netem's (`propagation`), and a rate that has a queue in bytes: a
    shaper behind netem applies such a rate (`backends.shaper_of`).
    """
    words: list[str] = []
    if direction.limit is not None:
        words += ["limit", str(direction.limit)]
    if direction.delay is not None or direction.jitter is not None:
        words += ["delay", _time(direction.delay or 0.0)]
        if (jitter := direction.jitter) is not None:
            words += [_time(jitter.size), *_correlation(jitter.correlation)]
            if jitter.distribution != "uniform":
                words += ["distribution", jitter.distribution]
    if direction.loss is not None:
        words += ["loss", *_loss(direction.loss)]
    if direction.duplication is not None:
        words += ["duplicate", *_chance(direction.duplication)]
    if direction.corruption is not None:
        words += ["corrupt", *_chance(direction.corruption)]
    if (reordering := direction.reordering) is not None:
        words += ["reorder", _share(reordering.probability), *_correlation(reordering.correlation)]
        if reordering.gap > 1:
            words += ["gap", str(reordering.gap)]
    if direction.rate is not None and direction.queue is None:
        words += ["rate", f"{int(direction.rate)}bit"]
        if direction.overhead:
            words.append(str(direction.overhead))
    return words


def propagation(seconds: float) -> list[str]:
    """Return the arguments of a netem that gives every packet the same delay, behind whatever comes before it."""
    return ["limit", str(_MOST), "delay", _time(seconds)]


_MOST = 100_000
"""Packets that may be in the propagation: 1.2 s of full frames at 1 Gbit/s. netem's own limit of 1000 would drop some."""


def _loss(loss: Loss) -> list[str]:
    match loss:
        case Chance():
            return ["random", *_chance(loss)]
        case GilbertElliott(p, r, h, k):
            # tc's last two arguments are 1-h, the loss in the bad state, and 1-k, that in the good one.
            return ["gemodel", _share(p), _share(r), _share(1 - h), _share(1 - k)]
        case FourState():
            return ["state", *(_share(getattr(loss, name)) for name in ("p13", "p31", "p32", "p23", "p14"))]
        case Bursts() | Pattern():
            raise ValueError("netem has no pattern and no bursts in time; profiles refuse them")


def _chance(chance: Chance) -> list[str]:
    return [_share(chance.probability), *_correlation(chance.correlation)]


def _correlation(correlation: float) -> list[str]:
    return [_share(correlation)] if correlation else []


def _share(share: float) -> str:
    return f"{100 * share:.10g}%"


def _time(seconds: float) -> str:
    return f"{us(seconds):.10g}us"
