"""Says which arms in front carry TCP in segments larger than the link's packets: a reason to be in front that small packets lack."""

from __future__ import annotations

from collections.abc import Sequence

from tunnelmark.analyse.model import Analysis, MetricCell

_SEGMENT = "mss"
_LARGE = 1.5
"""Times direct's segment from which on a tunnel's is called large: no packet of the link holds one."""


def sentence(analysis: Analysis, cells: Sequence[MetricCell]) -> str:
    """Name the arms of these cells whose TCP segments hold at least `_LARGE` times what direct's hold, in bytes; "" if none do."""
    found: list[str] = []
    for cell in cells:
        bytes_of = {
            each.arm: each.spread.median
            for each in analysis.cells_of(cell.setting, _SEGMENT)
            if each.arm in (cell.arm, analysis.reference) and each.spread is not None
        }
        own, bare = bytes_of.get(cell.arm), bytes_of.get(analysis.reference or "")
        if own is not None and bare is not None and own >= _LARGE * bare:
            of = "" if found else f" and {bare:,.0f} through {analysis.reference}"
            found.append(f"{own:,.0f} bytes through {cell.arm}{of}")
    return f"TCP segments hold {'; '.join(found)}: fewer packets" if found else ""
