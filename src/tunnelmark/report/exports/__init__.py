"""Exports the stores of one or several runs as tidy tables for other tools; one exporter per file."""
