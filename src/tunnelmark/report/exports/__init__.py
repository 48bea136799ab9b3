"""Exports: what the store of one or several runs holds, as tidy tables for other tools; one exporter a file, from the store alone."""
