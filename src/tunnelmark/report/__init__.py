"""Report: what an analysis says, for the terminal, as Markdown, as one HTML file and as JSON; pure, one exporter per file."""
