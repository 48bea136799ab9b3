"""Formats numbers and judgements for readers: units, intervals, verdicts, signs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import floor, isfinite, log10

from tunnelmark.analyse.margins import SECONDS, equal_within
from tunnelmark.analyse.missing import Bounds
from tunnelmark.analyse.model import (
    ArmSummary,
    Capacity,
    Ceiling,
    Comparison,
    MetricCell,
    Spread,
    SuccessShare,
    Verdict,
)
from tunnelmark.record.results import MetricInfo

_RATES = ((1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s"), (1.0, "bit/s"))
_TIMES = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"))

_MOST = 100  # the largest effect that is printed: as a factor, or in points
_IN_MICROS = 1e-2  # seconds: smaller differences of delays are given in microseconds

CEILINGS: dict[Ceiling, str] = {
    "link": "limited by the link",
    "near the link": "near the limit of the link",
    "load": "limited by the offered load",
    "lab": "near the most that generator and lab carry here",
}

VERDICTS: dict[Verdict, str] = {
    "reference": "the bare link",
    "better": "better",
    "worse": "worse",
    "equal": "equal",
    "undecided": "undecided",
    "too few blocks": "too few blocks",
    "failed": "failed",
    "void": "void",
    "not run": "not run",
    "left out": "left out",
}


WITHOUT_VALUE: tuple[Verdict, ...] = ("failed", "void", "not run", "left out")
"""The verdicts on a cell that has no value; each says why."""


SIGNS: dict[Verdict, str] = {"better": "▲", "worse": "▼", "equal": "=", "undecided": "?", "too few blocks": "?"}
"""The sign of each verdict on an arm that was compared with direct; others have none."""

LEGEND = (
    "▲ better, ▼ worse: different; the chance that any such verdict in the study's primary comparisons is false is at most 5 %. = equal "
    "within a margin that was stated before ({margins}), by two one-sided tests, which are an interval of 92 %. ? undecided: neither is shown; "
    "more blocks may show it. An interval is of one question alone; a sign takes all primary comparisons of the study together, and needs more "
    "than what the A/A pairs show. ?▲, ?▼: undecided, though by its own interval alone the arm would be better or worse. A sign is of the mean over blocks. Where a median is given, the interval that is printed is the median's, and may "
    "say less or more than the sign."
)

OTHERS = "By metrics that are not primary, signs have that 5 % for each metric alone, as these explain and decide nothing: of twenty such metrics one may have a false ▲ or ▼."
"""Says of the signs by metrics that are not primary what `LEGEND` says of the others."""


@dataclass(frozen=True, slots=True)
class Scale:
    """How values of one unit are written: divided by `factor`, they are in `unit`."""

    factor: float
    unit: str

    def value(self, value: float) -> str:
        return with_unit(number(value / self.factor), self.unit)

    def spread(self, spread: Spread) -> str:
        return f"{number(spread.low / self.factor)} to {with_unit(number(spread.high / self.factor), self.unit)}"


def scale(unit: str, values: Iterable[float]) -> Scale:
    """Return the scale that suits the largest of these values; units other than bit/s and those of time are kept."""
    largest = max((abs(value) for value in values), default=0.0)
    if unit == "bit/s":
        # From 2,000 of a unit on, the next one reads better: 941 and 1,204 Mbit/s may be in one column.
        return next((Scale(size, name) for size, name in _RATES if largest >= 2 * size), Scale(1.0, unit))
    if unit in SECONDS:
        base = SECONDS[unit]
        fitting = (Scale(size / base, name) for size, name in _TIMES if largest * base >= 0.5 * size)
        return next(fitting, Scale(1e-6 / base, "µs") if largest else Scale(1.0, unit))
    return Scale(1.0, unit)


def number(value: float, digits: int = 3) -> str:
    """Return a number as `−0.57` or `1,234`, to `digits` significant digits.

    All digits before the point are kept, and there are at most six after it.
    """
    if value == 0:
        return "0"
    rounded = float(f"{abs(value):.{digits - 1}e}")  # so that 99.96 becomes 100 and not 100.0
    places = max(0, digits - 1 - floor(log10(rounded)))
    text = f"{value:,.{min(places, 6)}f}"
    if float(text.replace(",", "")) == 0:
        return "0"
    return text.replace("-", "−")


def with_unit(text: str, unit: str) -> str:
    """Return a number and its unit, joined by a space that does not break; the number alone if the unit is ""."""
    return f"{text}\N{NO-BREAK SPACE}{unit}" if unit else text


def effect(metric: MetricInfo, comparison: Comparison) -> str:
    """Return an effect with its interval: `61 % [58–64]`, `2.1× [1.9–2.3]`, `+12.1 points [11.8 to 12.6]`.

    "" if there is no finite estimate. The brackets are left out if there is no interval, or if both of its rounded ends
    equal the estimate.
    """
    if comparison.estimate is None or not isfinite(comparison.estimate):
        return ""
    factor, unit, signed = _form(metric, comparison.estimate)
    found = comparison.interval
    half = (found.high - found.low) * factor / 2 if found else 0.0
    # A hundredth of a per cent is beyond any study of this kind, and two exact values must not look different.
    places = min(_places(half, comparison.estimate * factor), 1 if unit == "%" else 2)
    values = (comparison.estimate, *((found.low, found.high) if found else ()))
    tiny = _tiny(metric, comparison.estimate)
    middle, *ends = (_two(value * factor) if tiny else _fixed(value * factor, places) for value in values)
    if signed and comparison.estimate > 0 and middle != "0":
        middle = f"+{middle}"
    text = f"{middle}{unit}" if unit == "×" else with_unit(middle, _one(middle, unit))
    if set(ends) <= {middle.lstrip("+")}:
        return text
    return f"{text} [{(' to ' if signed else '–').join(ends)}]"


def middle(comparison: Comparison) -> str:
    """Return ` (median)` if an effect and its interval are the median's, as a block lies far off; "" if they are the mean's."""
    return " (median)" if comparison.doubt else ""


def ends(metric: MetricInfo, comparison: Comparison) -> str:
    """Return the interval of an effect alone: `51–56 %`, `9–12×`, `0 to 0.4 points`; "" if there is none."""
    found = comparison.interval
    if found is None:
        return ""
    factor, unit, signed = _form(metric, found.high)
    places = min(_places((found.high - found.low) * factor / 2, found.high * factor), 1 if unit == "%" else 2)
    tiny = _tiny(metric, found.high)
    text = (" to " if signed else "–").join(
        dict.fromkeys(_two(end * factor) if tiny else _fixed(end * factor, places) for end in (found.low, found.high))
    )
    return f"{text}{unit}" if unit == "×" else with_unit(text, unit)


def sign(metric: MetricInfo, verdict: Verdict, comparison: Comparison | None) -> str:
    """Return the sign of a verdict on an arm that was compared with direct, as `LEGEND` explains it; "" for other verdicts.

    `comparison`: what was judged, or None where there is nothing to compare. If its own interval alone would show a
    difference that the study does not, the sign says in which direction.
    """
    alone = by_itself(metric, comparison) if verdict == "undecided" else None
    return SIGNS.get(verdict, "") + (SIGNS[alone] if alone else "")


def by_itself(metric: MetricInfo, comparison: Comparison | None) -> Verdict | None:
    """Return what a comparison's own interval shows, with no correction for the study's others: better, worse, or None."""
    found = None if comparison is None else comparison.interval
    same = 1.0 if metric.compare == "ratio" else 0.0
    if found is None or found.low <= same <= found.high:
        return None
    return "better" if (found.low > same) == (metric.better == "higher") else "worse"


def judged(cell: MetricCell) -> str:
    """Return a cell's effect against direct after its verdict's sign: `▼ 61 % [58–64]`; either may be missing."""
    text = "" if cell.against_direct is None else effect(cell.metric, cell.against_direct)
    return f"{sign(cell.metric, cell.verdict, cell.against_direct)} {text}".strip()


def margin(metric: MetricInfo) -> str:
    """Return the margin within which two arms are equal by this metric: `5 %`, `1 percentage point`, `100 µs`."""
    bound = equal_within(metric)
    if metric.compare == "ratio":
        return size(metric, bound)
    if metric.unit == "%":
        return with_unit(_two(bound), f"percentage {'point' if bound == 1 else 'points'}")
    return scale(metric.unit, [bound]).value(bound)


def legend(metrics: Iterable[MetricInfo]) -> str:
    """Explain the signs of the verdicts, with the margins of these metrics."""
    said = dict.fromkeys(margin(metric) for metric in metrics)
    return LEGEND.format(margins=", ".join(said))


def margins(metrics: Iterable[MetricInfo]) -> str:
    """Return one text: a sentence for each margin, with the metrics by which arms are equal within that margin."""
    by: dict[str, list[str]] = {}
    for metric in metrics:
        by.setdefault(margin(metric), []).append(metric.title)
    return " ".join(f"Equal (=) within {bound}: {'; '.join(dict.fromkeys(names))}." for bound, names in by.items())


def doubts(comparison: Comparison, against: str | None) -> str:
    """Say why a median is given instead of a mean, and in how many blocks a value is zero.

    "" if a mean is given and no value is zero. `against`: the name of the other arm in the comparison, from
    `Analysis.reference`, which is None only in a study without direct.
    """
    mine, theirs = comparison.zeros
    blocks = len(comparison.blocks)
    said = [f"0 in {mine} of {blocks} blocks"] if mine else []
    said += [f"{against} 0 in {theirs} of {blocks} blocks"] if theirs else []
    if comparison.doubt == "mostly zero":
        said.append(f"{comparison.doubtful} of {blocks} blocks without any difference: median")
    if comparison.doubt == "far off":
        said.append(f"{comparison.doubtful} of {blocks} blocks far off: median")
    if comparison.doubt == "zeros":
        said.append("no ratio in blocks with 0: median")
    return ", ".join(said)


def reliability(cell: MetricCell) -> str:
    """Return remarks on how far a cell can be relied on; "" if there are none.

    One remark says that the arm fails too often. The other one says how blocks in which the arm failed or has no effect
    could change the median effect.
    """
    said = [f"unreliable: {share(cell.success)} succeeded"] if cell.unreliable else []
    if cell.bounds is not None and cell.against_direct is not None and cell.against_direct.estimate is not None:
        said.append(median_within(cell.metric, cell.bounds))
    return "; ".join(said)


def remarks(cell: MetricCell, against: str | None) -> list[str]:
    """Return remarks on a cell's numbers: its verdict, why a median is given, and that the arm fails too often.

    `against`: the name of direct in the study (`Analysis.reference`); None in a study without direct.
    """
    said = [VERDICTS[cell.verdict]] if cell.verdict in SIGNS else []
    if cell.against_direct is not None and (doubt := doubts(cell.against_direct, against)):
        said.append(doubt)
    return [*said, f"unreliable ({share(cell.success)} ok)"] if cell.unreliable else said


def median_within(metric: MetricInfo, bounds: Bounds) -> str:
    """Say in which range the median effect lies, whatever the missing blocks would have shown."""
    blocks = f"{bounds.missing} missing {'block' if bounds.missing == 1 else 'blocks'}"
    low, high = (None if end is None else amount(metric, end) for end in (bounds.low, bounds.high))
    if low is None and high is None:
        return f"the median could be anything with {blocks}"
    if low is None or high is None:
        return f"with {blocks} the median is {f'at most {high}' if low is None else f'at least {low}'}"
    return f"with {blocks} at worst or best the median is {low} to {high}"


def amount(metric: MetricInfo, value: float) -> str:
    """Return one effect with its unit, without an interval: `61 %`, `2.1×`, `+12.1 points`."""
    factor, unit, signed = _form(metric, value)
    text = number(value * factor)
    text = f"+{text}" if signed and value > 0 and text != "0" else text
    return f"{text}{unit}" if unit == "×" else with_unit(text, unit)


def size(metric: MetricInfo, amount: float) -> str:
    """Return the size of an effect: `1.4 %` for the ratio 1.014, `a factor of 2.2` for the ratio 2.2, or `0.1 points`.

    `amount`: a ratio of at least 1, or a difference above 0 in the metric's unit, whichever the metric is compared by.
    A ratio above 100 becomes `more than a factor of 100`, and a difference above 100 points `more than 100 points`.
    """
    if metric.compare == "ratio" and amount > _MOST:
        return f"more than a factor of {_MOST}"
    if metric.compare != "ratio" and metric.unit == "%" and amount > _MOST:
        return with_unit(f"more than {_MOST}", "points")
    if metric.compare == "ratio" and amount >= 1.5:
        return f"a factor of {_two(amount)}"
    if metric.compare == "ratio":
        return with_unit(_two((amount - 1) * 100), "%")
    if metric.unit in SECONDS:
        shown = scale(metric.unit, [amount])
        return with_unit(_two(amount / shown.factor), shown.unit)
    text = _two(amount)
    return with_unit(text, _one(text, "points" if metric.unit == "%" else metric.unit))


def share(found: SuccessShare) -> str:
    return f"{found.count}/{found.total}"


def success(found: SuccessShare, void: int) -> str:
    """Return how many trials succeeded, of those that are not void, and how many are void: `9/10, 1 void`."""
    return share(found) + (f", {void} void" if void else "")


def percent(value: float, places: int = 0) -> str:
    return with_unit(f"{100 * value:.{places}f}", "%")


def rank(first: int, last: int) -> str:
    return str(first) if first == last else f"{first}–{last}"


def first_packet(arm: ArmSummary) -> str:
    """Return the median time to the first packet, with a unit that suits it; "" if no packet arrived."""
    first = arm.first_packet
    return scale("s", [first.median]).value(first.median) if first else ""


def capital(text: str) -> str:
    """Return the text with its first letter as a capital; all other letters are unchanged."""
    return f"{text[:1].upper()}{text[1:]}"


def span(values: Sequence[float]) -> str:
    """Return the smallest and the largest of some values without a unit, as `2 to 21`; one of them if they are the same."""
    return " to ".join(dict.fromkeys(f"{value:g}" for value in (min(values), max(values))))


def listed(names: Sequence[str]) -> str:
    """Join names as a sentence does: `a, b and c`."""
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def capacities(found: Sequence[Capacity]) -> str:
    """Say in a sentence which values traffic generator and lab reach on a link that is not shaped, without a VPN.

    "" if `found` is empty, because they were not measured.
    """
    said = [
        f"{one.setting.workload} {scale(one.metric.unit, [one.direct]).value(one.direct)} ({one.metric.title}, "
        f"{one.setting.profile}, {one.setting.topology})"
        for one in found
    ]
    return f"On the bare link that is not shaped, generator and lab reach: {'; '.join(said)}." if said else ""


def state(cell: MetricCell) -> str:
    """Return a cell's verdict in a few words, and what limited it if that is known: `equal, limited by the link`."""
    word = VERDICTS[cell.verdict]
    return f"{word}, {CEILINGS[cell.ceiling]}" if cell.ceiling else word


def _one(text: str, unit: str) -> str:
    """Return the unit for a number: `point` after 1, else `points`; other units are unchanged."""
    return "point" if unit == "points" and text.lstrip("+−") == "1" else unit


def _two(value: float) -> str:
    """Return the value with at most two significant digits, without trailing zeros."""
    return f"{float(f'{value:.1e}'):g}"


def _tiny(metric: MetricInfo, ratio: float) -> bool:
    """Return whether an effect is a share below 1 %: rounded by its interval, it would be shown as zero."""
    return metric.compare == "ratio" and metric.better == "higher" and 0 < ratio < 0.01


def _form(metric: MetricInfo, estimate: float) -> tuple[float, str, bool]:
    if metric.compare == "ratio":
        return (100.0, "%", False) if metric.better == "higher" else (1.0, "×", False)
    if metric.unit == "%":
        return 1.0, "points", True
    # What a VPN adds to a delay is given in microseconds below 10 ms, so that arms can be compared at a glance.
    small = (
        metric.feels in ("delay", "tail")
        and metric.unit in SECONDS
        and abs(estimate) * SECONDS[metric.unit] < _IN_MICROS
    )
    shown = Scale(1e-6 / SECONDS[metric.unit], "µs") if small else scale(metric.unit, [estimate])
    return 1 / shown.factor, shown.unit, True


def _places(half_width: float, value: float) -> int:
    """Return how many decimals to show: one digit of the half-width; if that is 0, three digits of the value."""
    if half_width > 0:
        return max(0, -floor(log10(half_width)))
    return max(0, 2 - floor(log10(abs(value)))) if value else 0


def _fixed(value: float, places: int) -> str:
    text = f"{value:,.{places}f}"
    return "0" if float(text.replace(",", "")) == 0 else text.replace("-", "−")
