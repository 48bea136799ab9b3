"""Draws figures as SVG text in the page's own fonts and colours, which also fit its dark mode and print."""
