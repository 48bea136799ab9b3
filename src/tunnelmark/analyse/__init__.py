"""Analyse: from results to judgements (`judge`) and what must hold for the whole study (`gates`); pure."""

from tunnelmark.analyse.analysis import judge
from tunnelmark.analyse.gates import gates
from tunnelmark.analyse.model import Analysis, Gate

__all__ = ["Analysis", "Gate", "gates", "judge"]
