"""Says what results mean on other machines: multiples of the anchor, shares of direct, added time, limits, CPU."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import fsum

from tunnelmark.analyse.anchor_multiples import Headline, anchor_of, headlines
from tunnelmark.analyse.bottleneck import SHARED
from tunnelmark.analyse.machines import BETWEEN
from tunnelmark.analyse.model import VPN_BUFFER, Analysis, Bottleneck, Interval, Scenario
from tunnelmark.record.results import MetricInfo
from tunnelmark.report import cheaper_or_busier, congestion_window, formatting, overview, placed

APART = "≠"
"""Marks a ratio of two arms that different things limited, such as the processor and the link."""

_APART_EXPLAINED = f"{APART}: the two sides of that ratio are bound by different things, so it will be another on a faster or slower machine."

HEAD = (
    "arm",
    "result",
    "on another machine",
    "against direct",
    "bound by",
    "CPU s/GB (sender + receiver)",
)


@dataclass(frozen=True, slots=True)
class TravelTable:
    """What the results for one metric in one setting mean on other machines.

    `head`: the titles of the columns: those of `HEAD`, without `on another machine` if no arm has a text there, and
    without `result` if that column would repeat `against direct`. `rows`: for each arm, its texts in these columns.
    `said`: sentences on ratios whose two arms are limited by different things, and on what loss does to TCP.
    """

    setting: Scenario
    metric: MetricInfo
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    said: tuple[str, ...]
    multiples: bool
    """Whether any arm's result is a multiple of the anchor."""


def tables(analysis: Analysis) -> tuple[TravelTable, ...]:
    """Return a table for each setting and primary metric about which it says more than the report's table of results.

    A table says more if it is known what limited an arm, or if an arm has a multiple of the anchor. It also says more
    on a delay that is compared by ratios, because the table of results does not have the added time. () if the study
    has no anchor and it is not known for any trial what limited it.
    """
    by: dict[tuple[Scenario, str], list[Headline]] = {}
    for one in headlines(analysis):
        by.setdefault((one.setting, one.metric.name), []).append(one)
    return tuple(
        _table(analysis, each)
        for each in by.values()
        if any(one.bound or one.multiple or (one.added and each[0].metric.compare == "ratio") for one in each)
    )


def _table(analysis: Analysis, each: Sequence[Headline]) -> TravelTable:
    columns = dict(zip(HEAD, zip(*(_row(analysis, one) for one in each), strict=True), strict=True))
    if not any(columns["on another machine"]):
        # No arm is given as a multiple, so both columns of results hold its share of direct.
        del columns["on another machine"]
        if all(one.first in ("direct", "plain") for one in each) and any(columns["against direct"]):
            del columns["result"]
    rows = tuple(zip(*columns.values(), strict=True))
    return TravelTable(
        each[0].setting,
        each[0].metric,
        tuple(columns),
        rows,
        _said(analysis, each),
        any(one.first == "anchor" for one in each),
    )


def explained(analysis: Analysis, shown: Sequence[TravelTable]) -> str:
    """Explain the columns of the tables that are shown, in a few sentences."""
    anchor, direct = anchor_of(analysis.results.plan.arms), analysis.reference or "direct"
    multiples = any(table.multiples for table in shown)
    said = [f"Delays are what they add to {direct}'s."]
    if overview.has_intervals(analysis):
        said.insert(0, "Intervals in brackets cover this run on this machine (95 %).")
    if anchor is not None and multiples:
        said.append(
            f"{_multiple(anchor)} Results that a processor bounds are given so where one bounds the anchor, too; all others, such as those that "
            f"link, load or window bounds, as a share of {direct}."
        )
    if any(VPN_BUFFER in bound.place for bound in analysis.bound_by.values()):
        said.append(
            f"Loss in {VPN_BUFFER}: its program emptied its socket too late for a burst of packets, so the kernel dropped what the link had delivered. "
            "If nothing else is lost, that counts as a processor's bound, however idle the core is on average."
        )
        said += placed.with_links(analysis)
    if multiples:
        said.append(
            "On another machine: where 95 % of equally long runs would find that multiple (prediction; how far multiples move "
            f"between machines was seen on {BETWEEN.source})."
        )
    said.append(_APART_EXPLAINED)
    return " ".join(said)


def signs(analysis: Analysis, texts: Sequence[str]) -> tuple[str, ...]:
    """Return a sentence on each sign in these texts: `≠`, and `×` with the anchor's name; () if there are none."""
    anchor, whole = anchor_of(analysis.results.plan.arms), " ".join(texts)
    said = [_APART_EXPLAINED] if APART in whole else []
    return (*said, _multiple(anchor)) if anchor is not None and "×" in whole and anchor in whole else tuple(said)


def _multiple(anchor: str) -> str:
    return f"× {anchor}: a multiple of our own tunnel, within the block. It does the least that a user-space VPN must for each packet; one that handles several packets as one can beat it."


def mark(said: str) -> str:
    """Return ` ≠`, to be put after a ratio, if different things limit its two arms, which `said` states; else "".

    `said`: a sentence such as `Headline.apart`; "" if the same thing limits both arms, or if that is not known.
    """
    return f" {APART}" if said else ""


def _row(analysis: Analysis, one: Headline) -> tuple[str, ...]:
    cell = analysis.cell(one.arm, one.setting, one.metric.name)
    share = formatting.effect(one.metric, cell.against_direct) + mark(one.apart) if cell.against_direct else ""
    multiple = one.multiple
    of = f" of {analysis.reference}" if share and one.metric.better == "higher" else ""
    first, machine = share + of, ""
    if one.first == "added" and one.added is not None:
        first = _added(one.added.estimate, one.added.interval)
    elif multiple is not None and multiple.estimate is not None:
        if one.first == "anchor":
            first = times(multiple.estimate, multiple.interval) + f" {multiple.against}" + mark(multiple.apart)
        if multiple.prediction is not None and one.first == "anchor":
            machine = f"{_two(multiple.prediction[0])}–{_two(multiple.prediction[1])}× (prediction)"
    elif multiple is not None and multiple.zeros:
        machine = f"this or {multiple.against} is 0 in {multiple.zeros} blocks: no multiple"
    if one.first == "plain":
        first = "the bare link" if one.arm == analysis.reference else ""
    bound = _bound(one.bound) if one.bound else ""
    return (one.arm, first, machine, share, bound, _cpu(one))


def _bound(bound: Bottleneck) -> str:
    """Return a bottleneck with the share of each place in the losses, and with the number of its trials if not all."""
    if bound.what == "unknown" and bound.why:
        return bound.why
    most = {place: share for place, share in bound.lost.items() if share >= SHARED}
    text = bound.text
    if len(most) > 1:
        text = "loss, of which " + "; ".join(
            f"{formatting.percent(share)}{_range(bound.lost_by_trial.get(place))}: {place}"
            for place, share in most.items()
        )
    return text if bound.count == bound.total else f"{text} ({bound.count} of {bound.total} trials)"


def _range(by_trial: tuple[float, float] | None) -> str:
    """Return ` (6–61 % by trial)` for the least and the largest share of any trial; "" if they are not known."""
    return f" ({100 * by_trial[0]:.0f}–{formatting.percent(by_trial[1])} by trial)" if by_trial else ""


def _said(analysis: Analysis, each: Sequence[Headline]) -> tuple[str, ...]:
    """Return a sentence for each two different limits of a ratio's two arms, with the arms for which it is true.

    Then follow what makes one arm of a VPN faster than another, and what loss does to TCP's congestion window.
    """
    arms: dict[str, list[str]] = {}
    for one in each:
        for text in (one.apart, one.multiple.apart if one.multiple and one.first == "anchor" else ""):
            if text:
                arms.setdefault(text, []).append(one.arm)
    said = [f"{APART} {formatting.listed(names)}: {text}." for text, names in arms.items()]
    said += cheaper_or_busier.sentences(analysis, each[0].setting, each[0].metric)
    return tuple(filter(None, [*said, congestion_window.explanation(analysis, each)]))


def times(estimate: float, interval: Interval | None) -> str:
    """Return a multiple with its interval: `0.43× [0.41–0.45]`; without an interval only `0.43×`."""
    return f"{_two(estimate)}×" + (f" [{_two(interval.low)}–{_two(interval.high)}]" if interval else "")


def _added(estimate: float, interval: Interval | None) -> str:
    sign = "+" if estimate > 0 else ""
    text = formatting.with_unit(f"{sign}{formatting.number(estimate)}", "µs")
    return text + (f" [{formatting.number(interval.low)} to {formatting.number(interval.high)}]" if interval else "")


def _cpu(one: Headline) -> str:
    told = ["?" if value is None else formatting.number(value) for value in one.cpu]
    if told == ["?", "?"]:
        return ""
    return f"{'?' if None in one.cpu else formatting.number(fsum(filter(None, one.cpu)))} ({' + '.join(told)})"


def _two(value: float) -> str:
    """Return the value with two digits after the point; below 0.1 and from 10 on, as `formatting.number` does."""
    return formatting.number(value) if value < 0.1 or value >= 10 else f"{value:.2f}"
