"""Figures as SVG text, drawn with the page's own fonts and colours so that they follow it into the dark and onto paper."""
