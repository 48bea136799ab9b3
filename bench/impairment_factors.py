"""What lets a VPN beat the bare link on an impaired path: the effect of each factor of the study `impairment-factors`.

    python bench/impairment_factors.py RESULTS

The factors have two levels each: `unit` (one decision for a wire packet, or for what the sender hands over), `order` (the jitter keeps
the order of packets, or not, as netem's) and `tuned` (three settings of TCP). The design is a full factorial (Montgomery, Design and
Analysis of Experiments, chapter 6), so the effect of a factor is the mean, over the levels of the others, of the logarithm of the ratio of
goodputs at its two levels in one block; that of two factors together is how much the one changes the other's effect. Intervals are over
blocks, as everywhere. Then, for each combination, VPNs against the bare link, beside what was published of each.

A fourth factor, `place`, and the kernel's WireGuard need a kernel with netem and WireGuard. They are in a study of their own, at one impairment:

    tunnelmark run impairment-place --backend vm --local 2
    python bench/impairment_factors.py RESULTS
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations, product
from math import exp, log
from pathlib import Path
from statistics import fmean

import tunnelmark
from tunnelmark.analyse.attempts import chosen
from tunnelmark.analyse.intervals import interval
from tunnelmark.analyse.link_gate import voided
from tunnelmark.record.results import Results, TrialRow

FACTORS = ("unit", "order", "tuned")
LEVELS = {"unit": ("wire", "super-packet"), "order": ("kept", "netem's"), "tuned": ("as shipped", "tuned")}
IMPAIRMENTS = ("thesis-low", "thesis-medium")
VPNS = ("wireguard-go", "nebula", "tailscale", "wireguard-go-2026")
PUBLISHED = {
    ("thesis-low", "tailscale", False): 274 / 333,
    ("thesis-low", "wireguard-go", False): 54.7 / 333,
    ("thesis-medium", "tailscale", False): 41.5 / 29.6,
    ("thesis-medium", "wireguard-go", False): 8.77 / 29.6,
    ("thesis-medium", "tailscale", True): 50.1 / 72.7,
    ("thesis-medium", "wireguard-go", True): 12.2 / 72.7,
}
"""Headscale and kernel WireGuard over the bare link, one stream, by netem on the senders; tuned or not."""

PUBLISHED_TUNED = {
    ("thesis-low", "direct"): 354 / 333,
    ("thesis-low", "tailscale"): 0.95,
    ("thesis-medium", "direct"): 72.7 / 29.6,
    ("thesis-medium", "wireguard-go"): 12.2 / 8.77,
    ("thesis-medium", "tailscale"): 1.21,
}
"""What the settings changed there: of the bare link and Headscale those three alone, of WireGuard larger buffers as well."""

PUBLISHED_SENT_AGAIN = {"direct": 2.4, "direct-tuned": 1.11, "wireguard": 5.2, "tailscale": 2.4}
"""Per cent of segments that were sent again at medium there."""

Levels = tuple[bool, bool, bool]
COMBINATIONS: tuple[Levels, ...] = tuple((a, b, c) for a, b, c in product((False, True), repeat=3))

Cell = tuple[str, str, bool, bool, bool]
"""Impairment, VPN; super-packets, netem's order, tuned."""

Values = Mapping[Cell, Mapping[int, float]]
"""The mean logarithm of the goodput in bit/s of each cell, by block."""

_SENDER = "netem-on-sender"  # the profile that puts the impairment on the sending hosts
_PLACES = {
    f"thesis-medium+{_SENDER}+gigabit": "netem on the sender, super-packets",
    "thesis-medium+gso+gigabit": "on the path, super-packets, netem's order",
    "thesis-medium+gigabit": "on the path, wire packets, netem's order",
    "thesis-medium-in-time+gso+gigabit": "on the path, super-packets, order kept",
}
"""The links of the study `impairment-place`."""

_PUBLISHED_ROW = "published: netem on the senders"
_PUBLISHED_ARMS = {"wireguard": "wireguard-go", "tailscale": "tailscale"}
"""Arms of `impairment-place` with a published value, and under which name `PUBLISHED` has it."""


def cell_of(profile: str, arm: str) -> Cell:
    """The place of a profile and an arm in the design."""
    impairment, *joined = profile.split("+")
    arm = arm.removesuffix("-again")
    return (
        impairment.removesuffix("-in-time"),
        arm.removesuffix("-tuned"),
        "gso" in joined or _SENDER in joined,
        not impairment.endswith("-in-time"),
        arm.endswith("-tuned"),
    )


def value_of(trial: TrialRow, metric: str) -> float:
    """A metric's value of the whole trial."""
    return next(one.value for one in trial.samples if one.metric == metric and one.time is None)


def by_cell(trials: Iterable[TrialRow]) -> Values:
    """The mean logarithm of the goodput in bit/s of each cell, by block."""
    found: dict[Cell, dict[int, list[float]]] = {}
    for trial in trials:
        value = value_of(trial, "goodput")
        if value > 0:  # a stream that carried nothing has no logarithm: it is counted below
            found.setdefault(cell_of(trial.profile, trial.arm), {}).setdefault(trial.block, []).append(log(value))
    return {cell: {block: fmean(each) for block, each in blocks.items()} for cell, blocks in found.items()}


def effect(values: Values, impairment: str, vpn: str, *factors: str) -> dict[int, float]:
    """The effect of a factor, or of several together, in each block that has all eight cells of that VPN and impairment.

    A contrast: cells count plus or minus by the product of their levels, so that the effect of one factor is the mean of four ratios,
    and that of two together half the difference of the one's effect at both levels of the other, times two: a ratio of ratios.
    """
    cells = {levels: values.get((impairment, vpn, *levels), {}) for levels in COMBINATIONS}
    blocks = set.intersection(*(set(by_block) for by_block in cells.values()))
    places = [FACTORS.index(factor) for factor in factors]
    found = {}
    for block in sorted(blocks):
        signed = []
        for levels, by_block in cells.items():
            sign = 1
            for place in places:
                sign *= 1 if levels[place] else -1
            signed.append(sign * by_block[block])
        found[block] = sum(signed) / 2 ** (3 - len(factors))
    return found


def said(effects: Mapping[int, float]) -> str:
    """A ratio with its 95 % interval."""
    if not effects:
        return "no block has all cells"
    found = interval([effects[block] for block in sorted(effects)])
    middle = f"{exp(fmean(effects.values())):.2f}"
    return middle if found is None else f"{middle} ({exp(found.low):.2f} to {exp(found.high):.2f})"


def show(folder: Path) -> None:
    """Print the effects, and VPNs against the bare link, of each run in a folder of results."""
    for name, results in tunnelmark.load(folder).results.items():
        print(f"\n{name or folder.name}: {results.plan.study}")
        _show_run(voided(results))


def _show_run(results: Results) -> None:
    attempts = chosen(results.trials)
    good = [trial for trial in attempts if trial.outcome == "ok"]
    print(f"{len(good)} usable trials of {len(attempts)}, {results.plan.blocks} blocks; 95 % intervals over blocks")
    if any(_SENDER in profile.name.split("+") for profile in results.plan.profiles):
        _show_place(good)
    else:
        _show_factors(by_cell(good))


def _show_place(trials: Sequence[TrialRow]) -> None:
    """Print what place, unit, order and the three settings change, and VPNs against the bare link at each link."""
    by_profile = {name: by_cell(each for each in trials if each.profile == name) for name in _PLACES}
    arms = ("direct", "wireguard", *VPNS)

    def ratios(one: str, other: str) -> Iterable[str]:
        return (_ratio(by_profile[one], cell_of(one, arm), by_profile[other], cell_of(other, arm)) for arm in arms)

    print(f"\nthesis-medium: by which factor goodput changes\n{'':<48}" + "".join(f"{arm:>24}" for arm in arms))
    sender, path, wire, kept = _PLACES
    for name, one, other in (
        ("place: on the sender, over on the path", sender, path),
        ("unit: super-packets, over wire packets", path, wire),
        ("order: netem's, over kept", path, kept),
    ):
        _print_row(name, 48, ratios(one, other))
    print("\nthesis-medium: goodput over that of the bare link")
    for name, values in by_profile.items():
        over = (_ratio(values, cell_of(name, arm), values, cell_of(name, "direct")) for arm in arms)
        _print_row(_PLACES[name], 48, over)
    told = {arm: PUBLISHED["thesis-medium", of, False] for arm, of in _PUBLISHED_ARMS.items()}
    _print_row(_PUBLISHED_ROW, 48, (format(told[arm], ".2f") if arm in told else "-" for arm in arms))
    print("\nthesis-medium: the three settings over as shipped, the bare link")
    for name, values in by_profile.items():
        _print_row(_PLACES[name], 48, (_ratio(values, cell_of(name, "direct-tuned"), values, cell_of(name, "direct")),))
    _print_row(_PUBLISHED_ROW, 48, (format(PUBLISHED_TUNED["thesis-medium", "direct"], ".2f"),))
    _show_sent_again(trials)


def _show_sent_again(trials: Sequence[TrialRow]) -> None:
    """Print how many of a hundred segments each sender's TCP sent again: what it took for lost."""
    arms = ("direct", "direct-tuned", "wireguard", *VPNS)
    print(
        f"\nthesis-medium: per cent of segments that were sent again\n{'':<48}" + "".join(f"{arm:>24}" for arm in arms)
    )
    for profile, name in _PLACES.items():
        found: dict[str, dict[int, list[float]]] = {arm: {} for arm in arms}
        for trial in trials:
            if trial.profile == profile:
                by_block = found[trial.arm.removesuffix("-again")]
                by_block.setdefault(trial.block, []).append(value_of(trial, "retransmit_share"))
        means = ([fmean(each) for each in by_block.values()] for by_block in found.values())
        _print_row(
            name,
            48,
            (
                f"{fmean(each):.1f} ({spread.low:.1f} to {spread.high:.1f})" if (spread := interval(each)) else "-"
                for each in means
            ),
        )
    told = (format(PUBLISHED_SENT_AGAIN[arm], "g") if arm in PUBLISHED_SENT_AGAIN else "-" for arm in arms)
    _print_row(_PUBLISHED_ROW, 48, told)


def _show_factors(values: Values) -> None:
    arms = ("direct", *VPNS)
    for impairment in IMPAIRMENTS:
        print(f"\n{impairment}: by which factor goodput changes\n{'':<40}" + "".join(f"{arm:>24}" for arm in arms))
        for factors in (*((one,) for one in FACTORS), *combinations(FACTORS, 2)):
            name = " x ".join(factors) if len(factors) > 1 else f"{factors[0]}: {LEVELS[factors[0]][1]}"
            _print_row(name, 40, (said(effect(values, impairment, arm, *factors)) for arm in arms))
        print(f"\n{impairment}: tuned over as shipped")
        for unit, order in product((False, True), repeat=2):
            gained = (
                _ratio(values, (impairment, arm, unit, order, True), values, (impairment, arm, unit, order, False))
                for arm in arms
            )
            _print_row(f"{LEVELS['unit'][unit]}, {LEVELS['order'][order]}", 40, gained)
        told = (PUBLISHED_TUNED.get((impairment, arm)) for arm in arms)
        _print_row("published: netem on senders", 40, ("-" if each is None else format(each, ".2f") for each in told))
        print(f"\n{impairment}: goodput over that of the bare link with the same levels")
        for levels in COMBINATIONS:
            name = ", ".join(LEVELS[factor][level] for factor, level in zip(FACTORS, levels, strict=True))
            _print_row(
                name,
                64,
                (_ratio(values, (impairment, vpn, *levels), values, (impairment, "direct", *levels)) for vpn in VPNS),
            )
        for tuned in (False, True):
            printed = (PUBLISHED.get((impairment, vpn, tuned)) for vpn in VPNS)
            name = f"published, {LEVELS['tuned'][tuned]}: netem on senders"
            _print_row(name, 64, ("-" if each is None else format(each, ".2f") for each in printed))


def _ratio(ones: Values, one: Cell, others: Values, other: Cell) -> str:
    above, below = ones.get(one, {}), others.get(other, {})
    return said({block: above[block] - below[block] for block in above.keys() & below.keys()})


def _print_row(name: str, width: int, cells: Iterable[str]) -> None:
    print(f"{name:<{width}}" + "".join(f"{each:>24}" for each in cells))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    show(Path(sys.argv[1]))
