"""What lets a VPN beat the bare link on an impaired path: the effect of each factor of the study `impairment-factors`.

    python bench/impairment_factors.py RESULTS

The factors have two levels each: `unit` (one decision for a wire packet, or for what the sender hands over), `order` (the jitter keeps
the order of packets, or not, as netem's) and `tuned` (three settings of TCP). The design is a full factorial (Montgomery, Design and
Analysis of Experiments, chapter 6), so the effect of a factor is the mean, over the levels of the others, of the logarithm of the ratio of
goodputs at its two levels in one block; that of two factors together is how much the one changes the other's effect. Intervals are over
blocks, as everywhere. Then, for each combination, VPNs against the bare link, beside what was published of each.

Two more factors, `place` and `round trip`, and the kernel's WireGuard are in a study of their own, at one impairment. It needs a kernel with
netem and WireGuard:

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
    ("thesis-medium", "nebula", False): 7.82 / 29.6,
    ("thesis-medium", "tailscale", True): 50.1 / 72.7,
    ("thesis-medium", "wireguard-go", True): 12.2 / 72.7,
}
"""Headscale, kernel WireGuard and Nebula over the bare link, one stream, by netem on the senders; tuned or not."""

PUBLISHED_TUNED = {
    ("thesis-low", "direct"): 354 / 333,
    ("thesis-low", "tailscale"): 0.95,
    ("thesis-medium", "direct"): 72.7 / 29.6,
    ("thesis-medium", "wireguard-go"): 12.2 / 8.77,
    ("thesis-medium", "tailscale"): 1.21,
}
"""What the settings changed there: of the bare link and Headscale those three alone, of WireGuard larger buffers as well."""

PUBLISHED_GOODPUT = {"direct": 29.6, "direct-tuned": 72.7, "wireguard": 8.77, "nebula": 7.82, "tailscale": 41.5}
"""Mbit/s of one stream at medium there."""

PUBLISHED_SENT_AGAIN = {"direct": 2.4, "direct-tuned": 1.11, "wireguard": 5.2, "tailscale": 2.4}
"""Per cent of segments that were sent again at medium there."""

Levels = tuple[bool, bool, bool]
COMBINATIONS: tuple[Levels, ...] = tuple((a, b, c) for a, b, c in product((False, True), repeat=3))

Cell = tuple[str, str, bool, bool, bool]
"""Impairment, VPN; super-packets, netem's order, tuned."""

Values = Mapping[Cell, Mapping[int, float]]
"""The mean logarithm of the goodput in bit/s of each cell, by block."""

_SENDER = "netem-on-sender"  # the profile that puts the impairment on the sending hosts
_ROUND_TRIP = "thesis-round-trip"  # the profile with the round trip of the source's servers
_KEPT = ("-in-time", "-order-kept")  # how profiles end that keep the order of packets
_LINKS = {
    f"thesis-medium+{_SENDER}+gigabit": "netem on the sender, super-packets",
    "thesis-medium+gso+gigabit": "on the path, super-packets, netem's order",
    "thesis-medium+gigabit": "on the path, wire packets, netem's order",
    "thesis-medium-order-kept+gso": "on the path, super-packets, order kept",
    "thesis-medium-in-time+gso+gigabit": "on the path, super-packets, order kept in time",
}
"""The links of the study `impairment-place`, with the servers' round trip or without; the last one is that of its runs until
28 November 2026, whose jitter was another one, too."""

_PUBLISHED_ROW = "published: netem on the senders"
_PUBLISHED_ARMS = {"wireguard": "wireguard-go", "nebula": "nebula", "tailscale": "tailscale"}
"""Arms of `impairment-place` with a published value, and under which name `PUBLISHED` has it."""


def cell_of(profile: str, arm: str) -> Cell:
    """The place of a profile and an arm in the design."""
    impairment, *joined = profile.split("+")
    arm = arm.removesuffix("-again")
    kept = next((ending for ending in _KEPT if impairment.endswith(ending)), "")
    return (
        impairment.removesuffix(kept),
        arm.removesuffix("-tuned"),
        "gso" in joined or _SENDER in joined,
        not kept,
        arm.endswith("-tuned"),
    )


def link_of(profile: str) -> tuple[str, bool]:
    """A profile's link in `_LINKS`, and whether it has the servers' round trip."""
    parts = profile.split("+")
    return "+".join(part for part in parts if part != _ROUND_TRIP), _ROUND_TRIP in parts


def name_of(profile: str) -> str:
    """What a row calls a profile."""
    link, far = link_of(profile)
    return f"{_LINKS[link]}; {'servers' if far else 'near'}"


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
    if results.plan.study == "impairment-factors":
        _show_factors(by_cell(good))
    else:
        _show_place(good)


def _show_place(trials: Sequence[TrialRow]) -> None:
    """Print what place, unit, order, round trip and the three settings change, and VPNs against the bare link."""
    by_profile = {name: by_cell(each for each in trials if each.profile == name) for name in _profiles(trials)}
    arms = ("direct", "wireguard", *VPNS)
    sender, path, wire, kept, kept_in_time = _LINKS
    factors = (
        ("place: on the sender, over on the path", sender, path),
        ("unit: super-packets, over wire packets", path, wire),
        ("order: netem's, over kept", path, kept),
        ("order: netem's, over kept in time", path, kept_in_time),
    )
    profiles = {link_of(name): name for name in by_profile}
    pairs = [
        (f"{name}; {'servers' if far else 'near'}", (one, far), (other, far))
        for far in (True, False)
        for name, one, other in factors
    ]
    pairs += [(f"servers, over near: {name}", (link, True), (link, False)) for link, name in _LINKS.items()]
    print("\nRound trip without the impairment: of the source's servers, or of hosts near each other, on one machine")
    _print_head("thesis-medium: by which factor goodput changes", _WIDTH, arms)
    run = [(name, profiles[one], profiles[other]) for name, one, other in pairs if {one, other} <= profiles.keys()]
    for name, one, other in run:
        found = (_ratio(by_profile[one], cell_of(one, arm), by_profile[other], cell_of(other, arm)) for arm in arms)
        _print_row(name, _WIDTH, found)
    _print_head("thesis-medium: by which factor goodput over that of the bare link changes", _WIDTH, arms[1:])
    for name, one, other in run:
        moved = (_moved(by_profile[one], cell_of(one, arm), by_profile[other], cell_of(other, arm)) for arm in arms[1:])
        _print_row(name, _WIDTH, moved)
    _print_head("thesis-medium: goodput over that of the bare link", _WIDTH, arms)
    for name, values in by_profile.items():
        over = (_ratio(values, cell_of(name, arm), values, cell_of(name, "direct")) for arm in arms)
        _print_row(name_of(name), _WIDTH, over)
    told = {arm: PUBLISHED["thesis-medium", of, False] for arm, of in _PUBLISHED_ARMS.items()}
    _print_row(_PUBLISHED_ROW, _WIDTH, (format(told[arm], ".2f") if arm in told else "-" for arm in arms))
    print("\nthesis-medium: the three settings over as shipped, the bare link")
    for name, values in by_profile.items():
        gained = _ratio(values, cell_of(name, "direct-tuned"), values, cell_of(name, "direct"))
        _print_row(name_of(name), _WIDTH, (gained,))
    _print_row(_PUBLISHED_ROW, _WIDTH, (format(PUBLISHED_TUNED["thesis-medium", "direct"], ".2f"),))
    _show_means(trials, "goodput in Mbit/s", "goodput", 1e6, PUBLISHED_GOODPUT)
    _show_means(trials, "per cent of segments that were sent again", "retransmit_share", 1, PUBLISHED_SENT_AGAIN)


def _show_means(
    trials: Sequence[TrialRow], title: str, metric: str, unit: float, published: Mapping[str, float]
) -> None:
    """Print the mean of a metric for each arm and link."""
    arms = ("direct", "direct-tuned", "direct-static", "wireguard", *VPNS)
    _print_head(f"thesis-medium: {title}", _WIDTH, arms)
    for profile in _profiles(trials):
        found: dict[str, dict[int, list[float]]] = {arm: {} for arm in arms}
        for trial in trials:
            if trial.profile == profile:
                by_block = found[trial.arm.removesuffix("-again")]
                by_block.setdefault(trial.block, []).append(value_of(trial, metric) / unit)
        means = [[fmean(each) for each in by_block.values()] for by_block in found.values()]
        _print_row(name_of(profile), _WIDTH, (_mean(each) for each in means))
    told = (format(published[arm], "g") if arm in published else "-" for arm in arms)
    _print_row(_PUBLISHED_ROW, _WIDTH, told)


def _profiles(trials: Sequence[TrialRow]) -> list[str]:
    """The profiles of a run, in the order of `_LINKS`."""
    order = list(_LINKS)
    return sorted(
        {trial.profile for trial in trials}, key=lambda name: (order.index(link_of(name)[0]), not link_of(name)[1])
    )


def _mean(values: Sequence[float]) -> str:
    if not values:
        return "-"
    found = interval(values)
    return f"{fmean(values):.1f}" + ("" if found is None else f" ({found.low:.1f} to {found.high:.1f})")


def _show_factors(values: Values) -> None:
    arms = ("direct", *VPNS)
    for impairment in IMPAIRMENTS:
        _print_head(f"{impairment}: by which factor goodput changes", 40, arms)
        for factors in (*((one,) for one in FACTORS), *combinations(FACTORS, 2)):
            name = " x ".join(factors) if len(factors) > 1 else f"{factors[0]}: {LEVELS[factors[0]][1]}"
            _print_row(name, 40, (said(effect(values, impairment, arm, *factors)) for arm in arms))
        _print_head(f"{impairment}: by which factor goodput over that of the bare link changes, as shipped", 40, VPNS)
        for unit in (False, True):
            found = (
                _moved(values, (impairment, vpn, unit, True, False), values, (impairment, vpn, unit, False, False))
                for vpn in VPNS
            )
            _print_row(f"order, {LEVELS['unit'][unit]}", 40, found)
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


def _moved(ones: Values, one: Cell, others: Values, other: Cell) -> str:
    """How many times more of the bare link a VPN has in the cell `one` than in `other`."""
    terms = [ones.get(one, {}), ones.get(_bare(one), {}), others.get(other, {}), others.get(_bare(other), {})]
    blocks = set.intersection(*map(set, terms))
    signs = (1, -1, -1, 1)
    return said({block: sum(sign * term[block] for sign, term in zip(signs, terms, strict=True)) for block in blocks})


def _bare(cell: Cell) -> Cell:
    return (cell[0], "direct", *cell[2:])


def _ratio(ones: Values, one: Cell, others: Values, other: Cell) -> str:
    above, below = ones.get(one, {}), others.get(other, {})
    return said({block: above[block] - below[block] for block in above.keys() & below.keys()})


_WIDTH = 62
"""Of the first column, where rows are named after links."""


def _print_head(title: str, width: int, arms: Iterable[str]) -> None:
    print(f"\n{title}")
    _print_row("", width, arms)


def _print_row(name: str, width: int, cells: Iterable[str]) -> None:
    print(f"{name:<{width}}" + "".join(f"{each:>24}" for each in cells))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    show(Path(sys.argv[1]))
