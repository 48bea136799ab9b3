"""Draws the flame graphs of a results folder with our own program, from the folded stacks in its raw output."""

from __future__ import annotations

import subprocess

from rich.console import Console

from tunnelmark.errors import MissingPart
from tunnelmark.host.programs import find
from tunnelmark.record.results import Results
from tunnelmark.report.flame_graphs import FOLDER, of_results

_PATIENCE = 60.0  # seconds that drawing one graph may take


def draw(results: Results, console: Console) -> None:
    """Draw every graph for which there are stacks. Print a warning if one cannot be drawn; the report omits it."""
    graphs = of_results(results).all
    if not graphs:
        return
    try:
        program = find("tunnelmark-flame")
    except MissingPart as missing:
        console.print(
            f"[yellow]warning:[/] no flame graph is drawn: {missing.message} ({missing.hint})", soft_wrap=True
        )
        return
    (results.path / FOLDER).mkdir(exist_ok=True)
    for graph in graphs:
        words = ["draw", "--to", graph.file, "--title", graph.title, "--subtitle", graph.subtitle, *graph.folded]
        try:
            subprocess.run([program, *words], cwd=results.path, capture_output=True, timeout=_PATIENCE, check=True)
        except subprocess.SubprocessError as error:
            said = (getattr(error, "stderr", None) or b"").decode(errors="replace").strip() or str(error)
            console.print(f"[yellow]warning:[/] {graph.file} is not drawn: {said}", markup=True, soft_wrap=True)
