"""Writes an analysis for the terminal, as Markdown, as one HTML file and as JSON; one exporter per file. Pure."""
