"""Says in which blocks direct itself was far from its median, because that moves every arm's ratio to it."""

from __future__ import annotations

from math import inf, log

from tunnelmark.analyse.model import Analysis, Comparison, Scenario
from tunnelmark.analyse.robust import far_blocks
from tunnelmark.record.results import MetricInfo
from tunnelmark.report import formatting, queries, titles


def sentences(analysis: Analysis) -> list[str]:
    """Return a sentence for each primary metric by which direct itself lies far off in some blocks.

    A metric has a sentence only if it is compared by ratios, and if more than half of the arms have a ratio to direct
    that lies far off in the same block.
    """
    return [
        said
        for setting in analysis.settings()
        for metric in queries.primary_metrics(analysis, setting)
        if metric.compare == "ratio" and (said := _sentence(analysis, setting, metric))
    ]


def _sentence(analysis: Analysis, setting: Scenario, metric: MetricInfo) -> str:
    if analysis.reference is None:
        return ""
    direct = analysis.cell(analysis.reference, setting, metric.name)
    values = [one for one in direct.values if one.value > 0]
    own = queries.own_cells(analysis, setting, metric)
    compared = [_far_ratios(cell.against_direct) for cell in own if cell.against_direct]
    far = [
        values[index]
        for index in far_blocks([log(one.value) for one in values])
        if 2 * sum(values[index].block in blocks for blocks in compared) > len(compared)
    ]
    if not far or direct.spread is None:
        return ""
    scale = formatting.scale(metric.unit, [direct.spread.median])
    reached = formatting.listed(
        [
            f"{scale.value(one.value)}{_twins(analysis, setting, metric, one.block, scale)} in block {one.block}"
            for one in far
        ]
    )
    ends = [scale.value(end(one.value for one in values)) for end in (min, max)]
    blocks = ("block " if len(far) == 1 else "blocks ") + formatting.listed([str(one.block) for one in far])
    return (
        f"{formatting.capital(titles.heading(analysis, setting, metric))}: {analysis.reference} itself had {reached}, and "
        f"{scale.value(direct.spread.median)} in the median block ({' to '.join(ends)}). In {blocks} most ratios to {analysis.reference} "
        "lie far off, and that makes the intervals against it wide; comparisons of arms with each other do not depend on it."
    )


def _far_ratios(pair: Comparison) -> set[int]:
    """Return the blocks in which an arm's ratio to direct lies far off; a zero has no ratio."""
    ratios = {block: log(ratio) for block, ratio in zip(pair.blocks, pair.effects, strict=True) if 0 < ratio < inf}
    blocks = list(ratios)
    return {blocks[index] for index in far_blocks(list(ratios.values()))}


def _twins(analysis: Analysis, setting: Scenario, metric: MetricInfo, block: int, scale: formatting.Scale) -> str:
    """Return in brackets what direct's twins had in a block, which says if chance of the moment did it; "" without twins."""
    said = [
        f"{cell.arm} {scale.value(one.value)}"
        for cell in queries.cells(analysis, setting, metric)
        if queries.twin_of(analysis, cell.arm) == analysis.reference
        for one in cell.values
        if one.block == block
    ]
    return f" ({', '.join(said)})" if said else ""
