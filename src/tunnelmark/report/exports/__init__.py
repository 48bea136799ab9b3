"""Exports runs for other tools: tidy tables, data files of flent, LaTeX tables, a paper; one exporter per file."""
