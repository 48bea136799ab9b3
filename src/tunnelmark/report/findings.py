"""What was found, in sentences: one finding for each primary metric in each setting, and what holds for the whole study."""

from __future__ import annotations

from dataclasses import dataclass

from tunnelmark.analyse.model import Analysis, Cell, Comparison, Setting
from tunnelmark.analyse.pairing import additive
from tunnelmark.record.results import MetricInfo
from tunnelmark.report import words
from tunnelmark.report.view import primary_metrics
from tunnelmark.units import clock


@dataclass(frozen=True, slots=True)
class Finding:
    """What one metric says in one setting, in whole sentences."""

    setting: Setting
    metric: MetricInfo
    sentences: tuple[str, ...]

    @property
    def text(self) -> str:
        return " ".join(self.sentences)


def findings(analysis: Analysis) -> tuple[Finding, ...]:
    """The findings in the order of the plan; without superlatives where nothing may be ranked."""
    return tuple(
        Finding(setting, metric, _sentences(analysis, setting, metric))
        for setting in analysis.settings()
        for metric in primary_metrics(analysis, setting)
    )


def cautions(analysis: Analysis) -> tuple[str, ...]:
    """What a reader must know before any number: unfinished, failed, not to be ranked, a single block, disturbed."""
    said = []
    plan = analysis.results.plan
    if analysis.same.standing == "differs":
        said.append(f"Do not rank: {analysis.same.explanation}.")
    elif analysis.same.standing == "not judged":
        said.append(f"Nothing is ranked: {analysis.same.explanation}.")
    if analysis.missing:
        done = len(plan.trials) - len(analysis.missing)
        said.append(f"Unfinished: {done} of {len(plan.trials)} trials have run; the rest can still be run.")
    if plan.blocks < 3:
        blocks = "a single block" if plan.blocks == 1 else "two blocks"
        said.append(f"The study has {blocks}: values can be shown, but chance cannot be told from difference.")
    if analysis.failures:
        arms = words.listed(list(dict.fromkeys(row.arm for row in analysis.failures)))
        count = len(analysis.failures)
        said.append(f"{count} {'attempt' if count == 1 else 'attempts'} failed ({arms}); means stand beside success rates.")
    if analysis.disturbed:
        count = len(analysis.disturbed)
        said.append(f"Other work on the machine disturbed {count} {'trial' if count == 1 else 'trials'}.")
    return tuple(said)


def time_spent(analysis: Analysis) -> str:
    """The wall time and its measuring share in one sentence."""
    wall = analysis.wall
    if wall.wall <= 0:
        return "No wall time is recorded."
    so_far = "" if wall.complete else " so far"
    return f"{clock(wall.wall)}{so_far}, {words.percent(wall.measuring)} of it inside measuring windows."


def _sentences(analysis: Analysis, setting: Setting, metric: MetricInfo) -> tuple[str, ...]:
    twins = {arm.name for arm in analysis.results.plan.arms if arm.same_as is not None}
    cells = [
        cell
        for cell in analysis.cells
        if (cell.setting, cell.metric.name) == (setting, metric.name)
        and cell.arm not in twins
        and cell.arm != analysis.reference
    ]
    if not cells:
        return ("Only the bare link was measured.",)
    said = []
    judged = [cell for cell in cells if cell.verdict in ("better", "worse", "tie")]
    if analysis.same.standing != "agrees":
        said += _unranked([cell for cell in cells if cell.against_direct and cell.against_direct.estimate is not None])
    elif judged:
        said += _ranked(analysis, metric, judged)
    said += _ceilings(cells)
    for verdict, text in (("failed", "failed in every attempt"), ("not run", "not run yet")):
        arms = [cell.arm for cell in cells if cell.verdict == verdict]
        if arms:
            said.append(f"{words.listed(arms)}: {text}.")
    few = [cell.arm for cell in cells if cell.verdict == "too few blocks"]
    if few:
        said.append(f"Too few blocks to judge {words.listed(few)}.")
    return tuple(said)


def _ranked(analysis: Analysis, metric: MetricInfo, judged: list[Cell]) -> list[str]:
    sign = -1 if metric.better == "higher" else 1
    judged = sorted(judged, key=lambda cell: sign * additive(metric, _against(cell).estimate or 1.0))
    said = []
    worse = [cell for cell in judged if cell.verdict == "worse"]
    for cell in judged:
        if cell.verdict == "better":
            said.append(f"{cell.arm} does better than the bare link: {words.effect(metric, _against(cell))}.")
    if len(worse) == 1:
        said.append(_one(metric, worse[0]))
    elif worse:
        said.append(_range(metric, worse[0], worse[-1]))
    ties = [cell for cell in judged if cell.verdict == "tie"]
    if ties:
        threshold = words.size(metric, max(_against(cell).threshold for cell in ties))
        if len(ties) == len(judged):
            said.append(f"No arm can be told from the bare link; a difference up to {threshold} counts as a tie.")
        else:
            said.append(f"{words.listed([cell.arm for cell in ties])} cannot be told from the bare link.")
    said += [f"{words.listed(group)} are a tie." for group in _tied(analysis, worse)]
    return said


def _one(metric: MetricInfo, cell: Cell) -> str:
    text = words.effect(metric, _against(cell))
    if metric.compare == "difference":
        return f"{cell.arm} changes it by {text} against the bare link."
    verb = "keeps" if metric.better == "higher" else "makes it"
    return f"{cell.arm} {verb} {text} of the bare link's."


def _range(metric: MetricInfo, best: Cell, worst: Cell) -> str:
    first, last = words.effect(metric, _against(best)), words.effect(metric, _against(worst))
    if metric.compare == "difference":
        return f"Nearest to the bare link is {best.arm}, {first}; farthest is {worst.arm}, {last}."
    if metric.better == "higher":
        return f"{best.arm} keeps most of the bare link's, {first}; {worst.arm} keeps least, {last}."
    return f"{best.arm} adds least, {first} the bare link's; {worst.arm} adds most, {last}."


def _unranked(cells: list[Cell]) -> list[str]:
    if not cells:
        return []
    said = ", ".join(f"{cell.arm} {words.effect(cell.metric, _against(cell))}" for cell in cells)
    return [f"Estimates against the bare link, not to be ranked: {said}."]


def _tied(analysis: Analysis, cells: list[Cell]) -> list[list[str]]:
    """Runs of neighbours, best first, in which no two can be told apart."""
    if not cells:
        return []
    setting, metric = cells[0].setting, cells[0].metric.name
    apart = {
        frozenset((pair.arm, pair.against))
        for pair in analysis.pairs
        if (pair.setting, pair.metric) == (setting, metric) and (pair.differs or pair.q is None)
    }
    groups: list[list[str]] = []
    for cell in cells:
        if groups and all(frozenset((cell.arm, other)) not in apart for other in groups[-1]):
            groups[-1].append(cell.arm)
        else:
            groups.append([cell.arm])
    return [group for group in groups if len(group) > 1]


def _ceilings(cells: list[Cell]) -> list[str]:
    at_load = [cell.arm for cell in cells if cell.ceiling == "load"]
    at_link = [cell.arm for cell in cells if cell.ceiling == "link"]
    near = [cell.arm for cell in cells if cell.ceiling == "near the link"]
    said = []
    if at_load:
        arms = "Every arm" if len(at_load) == len(cells) else words.listed(at_load)
        verb = "delivers" if len(at_load) in (1, len(cells)) else "deliver"
        said.append(f"{arms} {verb} all that is offered, so the offered load is the limit here.")
    if at_link:
        said.append(f"{words.listed(at_link)}: limited by the link itself; a faster link might tell more.")
    if near:
        said.append(f"{words.listed(near)}: within a tunnel's own headers of the link's limit.")
    return said


def _against(cell: Cell) -> Comparison:
    assert cell.against_direct is not None
    return cell.against_direct
