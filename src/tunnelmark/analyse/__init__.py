"""Analyses the results of a run: `judge` makes the judgements, `gates` checks the study as a whole. Pure."""

from tunnelmark.analyse.analysis import judge
from tunnelmark.analyse.gates import gates
from tunnelmark.analyse.model import Analysis, Gate

__all__ = ["Analysis", "Gate", "gates", "judge"]
