"""Figures as SVG text, drawn with the page's own fonts and colours so that they also fit its dark mode and its print."""
