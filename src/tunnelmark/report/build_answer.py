"""Puts the comparison of two builds into words: for a terminal, a pull request (Markdown) and JSON.

It also words each decision on whether to measure more blocks.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from math import isfinite
from typing import Any

from tunnelmark.analyse.build_change import BuildChange, BuildOutcome, BuildVerdict, more_needed, reason
from tunnelmark.analyse.margins import SECONDS
from tunnelmark.analyse.model import Analysis
from tunnelmark.plan.study_arms import NEW, OLD, OLD_AGAIN
from tunnelmark.record.results import BlockDecision, MetricInfo, Results
from tunnelmark.report import formatting, graded
from tunnelmark.report.markdown_syntax import rows, safe
from tunnelmark.units import clock

COUNTED_BLIND = (
    "Counted time sees instructions alone: not how work spreads over cores, nor caches, memory, or instructions that take longer than "
    "others. AES and AVX are not there, so ciphers run in their portable forms."
)
MACHINE_BLIND = "This run is one machine's: another processor, kernel or number of cores may answer otherwise."
PACED_BLIND = (
    "Packets came at a fixed rate, with time to spare between them: what the builds do with many at once shows under a full load, "
    "as of the workload tcp."
)
WORKLOADS_BLIND = (
    "Only what these workloads do was seen ({names}): not other packet sizes, connecting, many peers, or hours."
)

_MARKS: dict[BuildOutcome, str] = {"slower": "🔴", "faster": "🟢", "no change": "🟢", "undecided": "🟡"}
_HEAD = ("metric", f"{OLD}, median", f"{NEW}, median", f"{NEW} / {OLD}, by block", "verdict")


def headline(analysis: Analysis, verdict: BuildVerdict) -> str:
    """Return the verdict in one sentence, without a full stop: which metrics changed, or what is still undecided."""
    change = f"{100 * verdict.change:g} %"
    if verdict.apart:
        wrong = [twin for twin in verdict.twins if twin.state in ("slower", "faster")]
        said = formatting.listed([f"{_name(twin)} {_verdict(twin)}" for twin in wrong])
        return (
            f"undecided: {OLD} and {OLD_AGAIN} are one program under two names, and came out different ({said}); "
            f"nothing is said of {NEW}"
        )
    if verdict.outcome in ("slower", "faster"):
        told = [line for line in verdict.lines if line.state in (verdict.outcome, "fails")]
        return f"{verdict.outcome}: {formatting.listed([f'{_name(line)} {_verdict(line)}' for line in told])}"
    if verdict.outcome == "no change":
        return f"no change of {change} or more"
    if not verdict.open_lines:
        return f"undecided: {_not_judged(verdict)}"
    more = more_needed(verdict, analysis.results.plan.blocks)
    aside = f"; {_set_aside(verdict)}" if verdict.set_aside else ""
    if more is None:
        return f"undecided: these blocks scatter too much to see a change of {change}, or are too few to say{aside}"
    return f"undecided: with {more} more blocks a change of {change} would be seen{aside}"


def _set_aside(verdict: BuildVerdict) -> str:
    return formatting.listed([f"{_name(line)} {_verdict(line)}" for line in verdict.set_aside])


def _not_judged(verdict: BuildVerdict) -> str:
    """Say which metrics could not be judged, and why, and what the others show."""
    if not verdict.set_aside:
        return reason(verdict)
    found = [line for line in verdict.lines if line.state == "faster"]
    others = [f"{_name(line)} {_verdict(line)}" for line in found]
    if any(line.state == "no change" for line in verdict.lines):
        others.append(
            f"no change of {100 * verdict.change:g} % or more by {'the others' if found else 'other metrics'}"
        )
    return "; ".join([_set_aside(verdict), *others])


def terminal(analysis: Analysis, verdict: BuildVerdict) -> str:
    """Return the text for a terminal: verdict, builds, a row for each metric, the verdict's basis and its limits."""
    lines = [headline(analysis, verdict), *(f"  {name:<5} {text}" for name, text in builds(analysis.results).items())]
    table = _table(analysis.results, verdict)
    widths = [max(len(row[place]) for row in table) for place in range(len(_HEAD))]
    lines += ["  " + "   ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in table]
    if verdict.open_lines and (more := more_needed(verdict, analysis.results.plan.blocks)) is not None:
        blocks = analysis.results.plan.blocks + more
        lines.append(f"  go on: tunnelmark run --extend {shlex.quote(str(analysis.results.path))} --blocks {blocks}")
    lines += [f"  rests on {rests(analysis, verdict)}", *(f"  not seen: {each}" for each in blind(analysis, verdict))]
    return "\n".join(line.rstrip() for line in lines)


def comment(analysis: Analysis, verdict: BuildVerdict, link: str = "") -> str:
    """Return a comment for a pull request, in Markdown. `link`: address or path of the whole report; "" for none."""
    vpn = next(arm.vpn for arm in analysis.results.plan.arms if arm.name == OLD)
    head, *lines = _table(analysis.results, verdict)
    named = [f"- **{name}**: {safe(text)}" for name, text in builds(analysis.results).items()]
    where = f"[report]({link})" if "://" in link else f"report: `{link}`"
    parts = [
        f"### {_MARKS[verdict.outcome]} {vpn}: {safe(headline(analysis, verdict))}",
        "\n".join(named),
        rows(head, [[safe(cell) for cell in line] for line in lines]),
        f"Rests on {safe(rests(analysis, verdict))}" + (f" ({where})" if link else ""),
        "\n".join(["**What this cannot see**", "", *(f"- {safe(each)}" for each in blind(analysis, verdict))]),
        "<sub>Intervals of the judged metrics hold 95 % together, at every look. Written by `tunnelmark ab`.</sub>",
    ]
    return "\n\n".join(parts) + "\n"


def as_json(analysis: Analysis, verdict: BuildVerdict) -> str:
    """Return the verdict with all of its figures, as the text of one JSON object."""
    return json.dumps(
        {
            "outcome": verdict.outcome,
            "answer": headline(analysis, verdict),
            "change": verdict.change,
            "apart": verdict.apart,
            "blocks": analysis.results.plan.blocks,
            "more_blocks": more_needed(verdict, analysis.results.plan.blocks) if verdict.open_lines else None,
            "builds": builds(analysis.results),
            "programs": programs(analysis.results),
            "metrics": [_plain(line) for line in verdict.lines],
            "old_against_itself": [_plain(line) for line in verdict.twins],
            "costs": [_plain(line) for line in verdict.costs],
            "rests_on": rests(analysis, verdict),
            "not_seen": blind(analysis, verdict),
        },
        indent=2,
        ensure_ascii=False,
    )


def progress(made: BlockDecision, verdict: BuildVerdict, block_seconds: float) -> list[str]:
    """Return lines on a decision to go on or to end: its reason, each metric's verdict, and how long it still takes.

    `made`: the decision. `block_seconds`: how long a block takes, in seconds. The last line says how many more blocks
    should be enough; it is left out if that is not known, or if the run ends.
    """
    lines = [f"after {made.blocks} blocks, {'go on' if made.decided == 'more' else 'end'}: {made.why}"]
    lines += [f"  {_name(line)}: {_verdict(line)}" for line in verdict.lines]
    more = more_needed(verdict, made.blocks)
    if made.decided == "more" and more is not None:
        lines.append(
            f"  about {more} more blocks would do, {clock(more * block_seconds)}, if they scatter as those so far"
        )
    return lines


def builds(results: Results) -> dict[str, str]:
    """Describe the two builds, by arm: title, version, and the first 12 digits of their programs' SHA-256."""
    arms = {arm.name: arm for arm in results.plan.arms}
    hashes, said = programs(results), {}
    for name in (OLD, NEW):
        version = str(_recorded(results, name).get("version", "unknown"))
        known = [] if version == "unknown" or version in arms[name].title else [f"version {version}"]
        known += [f"{program} sha256 {found[:12]}" for program, found in hashes.get(name, {}).items()]
        details = ", ".join(known)
        said[name] = f"{arms[name].title} ({details})" if known else arms[name].title
    return said


def programs(results: Results) -> Mapping[str, Mapping[str, str]]:
    """Return the SHA-256 (hex) of each arm's own programs, by arm and program; arms without any are left out."""
    found: dict[str, dict[str, str]] = {}
    for arm in results.plan.arms:
        known = _recorded(results, arm.name).get("programs", {})
        found[arm.name] = {name: known[name]["sha256"] for name in arm.programs if name in known}
    return {name: own for name, own in found.items() if own}


def _recorded(results: Results, arm: str) -> Mapping[str, Any]:
    """Return the environment's record of an arm that brings programs of its own; empty if there is none."""
    recorded: Mapping[str, Mapping[str, Any]] = results.environment.get("vpns", {})
    return next((part for name, part in recorded.items() if name.endswith(f" ({arm})")), {})


def rests(analysis: Analysis, verdict: BuildVerdict) -> str:
    """Say in one to three sentences what the verdict rests on: blocks, machine, grades of attempts, and pauses."""
    machine = analysis.results.environment.get("machine", {})
    facts = [machine.get("cpu"), f"{machine['cores']} cores" if "cores" in machine else "", machine.get("kernel")]
    counts = dict.fromkeys(line.blocks for line in verdict.lines)
    pairs = f", of which {formatting.listed([str(count) for count in counts])} hold both" if counts else ""
    said = f"{analysis.results.plan.blocks} blocks{pairs}; {', '.join(str(each) for each in facts if each)}"
    return f"{said}. {graded.summary(analysis)}".strip()


def blind(analysis: Analysis, verdict: BuildVerdict) -> list[str]:
    """Return what the verdict cannot say anything about, as sentences."""
    said = [COUNTED_BLIND if _instruction(analysis.results) else MACHINE_BLIND]
    for bound in dict.fromkeys(line.bound for line in verdict.lines if line.bound):
        names = formatting.listed([_name(line) for line in verdict.lines if line.bound == bound])
        said.append(f"{names}: {bound} holds both builds back, and hides what they cost.")
    said += [f"{_name(line)}: {_verdict(line)}." for line in verdict.set_aside]
    plan = analysis.results.plan
    if all(use.offers(profile.name) is not None for use in plan.workloads for profile in plan.profiles):
        said.append(PACED_BLIND)
    names = ", ".join(dict.fromkeys(use.name for use in plan.workloads))
    said.append(WORKLOADS_BLIND.format(names=names))
    own = programs(analysis.results)
    if own.get(OLD) and own.get(OLD) == own.get(NEW):
        said.insert(0, f"{OLD} and {NEW} are the same program, byte for byte.")
    if verdict.outcome == "no change":
        said.append(f"A change of less than {100 * verdict.change:g} % may be there.")
    return said


def _table(results: Results, verdict: BuildVerdict) -> list[Sequence[str]]:
    found: list[Sequence[str]] = [_HEAD]
    for line in (*verdict.lines, *verdict.costs):
        before, after = _values(line, results)
        word = _verdict(line) if line in verdict.lines else "not judged"
        found.append((_name(line), before, after, _ratio(line), word))
    return found


def _name(line: BuildChange) -> str:
    return f"{line.metric.title} ({line.setting.workload}, {line.setting.profile})"


def _values(line: BuildChange, results: Results) -> list[str]:
    nanos, name = _instruction(results), line.metric.name
    known = [value for value in line.medians if value is not None]
    scale = formatting.scale(line.metric.unit, known)
    if nanos and name.startswith("cpu_per_packet"):
        scale = formatting.Scale(nanos / 1e3, "instructions")
    elif nanos and name.startswith("cpu_per_gb"):
        scale = formatting.Scale(nanos, "instructions/B")
    return ["–" if value is None else scale.value(value) for value in line.medians]


def _instruction(results: Results) -> float:
    """Return the nanoseconds of counted time per instruction; 0 if the clock does not count instructions."""
    hardware = results.environment.get("guest", {}).get("hardware", {})
    return float(hardware.get("instruction_ns", 1)) if hardware.get("virtual_clock") else 0.0


def _ratio(line: BuildChange) -> str:
    if line.ratio is None or line.interval is None:
        return "–"
    low, high = line.interval
    if not isfinite(high):
        return f"{line.ratio:.3f} [not bounded yet]"
    return f"{line.ratio:.3f} [{low:.3f}, {high:.3f}]"


def _verdict(line: BuildChange) -> str:
    worse = line.worse_by()
    if line.state in ("fails", "set aside"):
        return f"{line.state}: {line.why}" if line.state == "fails" else f"not judged: {line.why}"
    if line.state == "no change":
        return f"no change: {line.why}" if line.why else "no change of the stated size"
    if worse is None or line.state == "open":
        return "undecided"
    middle, low, high = worse if line.state == "slower" else (-worse[0], -worse[2], -worse[1])
    return f"{_word(line.metric, line.state == 'slower')} by {100 * middle:.1f} % [{100 * low:.1f}, {100 * high:.1f}]"


def _word(metric: MetricInfo, worse: bool) -> str:
    speed = metric.unit.endswith("/s") if metric.better == "higher" else metric.unit in SECONDS
    if speed and not metric.name.startswith("cpu"):
        return "slower" if worse else "faster"
    return "more" if worse == (metric.better == "lower") else "less"


def _plain(line: BuildChange) -> dict[str, Any]:
    found = asdict(line)
    found["metric"], found["unit"], found["better"] = line.metric.name, line.metric.unit, line.metric.better
    found["setting"] = asdict(line.setting)
    if line.interval is not None:
        found["interval"] = [end if isfinite(end) else None for end in line.interval]
    return found
