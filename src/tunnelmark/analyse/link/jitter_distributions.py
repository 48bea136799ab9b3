"""The distributions of jitter: as a profile states them, with a correlation, and as in netem's tables. Pure."""

from __future__ import annotations

from functools import cache

import numpy as np

from tunnelmark.analyse.link.statistics import Floats
from tunnelmark.plan.impairments import Distribution

_PARETO = 3.0  # shape of netem's pareto distribution
_PARETO_END = 10.0  # the stated model's pareto ends at ten times its least value, or no sample's deviation would settle


def quantile(distribution: Distribution, z: Floats) -> Floats:
    """Map values z of a standard normal variable to the stated jitter: mean 0, deviation 1 (uniform: from -1 to 1)."""
    from scipy.special import ndtr  # SciPy costs 0.4 s, and most commands look at no link

    if distribution == "uniform":
        return np.asarray(2 * ndtr(z) - 1)
    if distribution == "normal":
        return z
    mean, deviation = _moments(distribution)
    return (_raw(distribution, z) - mean) / deviation


def _raw(distribution: Distribution, z: Floats) -> Floats:
    from scipy.special import ndtr

    kept = 1 - _PARETO_END**-_PARETO
    pareto = (1 - ndtr(z) * kept) ** (-1 / _PARETO)
    return np.asarray(pareto if distribution == "pareto" else 0.25 * z + pareto - 1.5)


@cache
def _moments(distribution: Distribution) -> tuple[float, float]:
    z = np.linspace(-8, 8, 16001)
    weights = np.exp(-z * z / 2)
    weights /= weights.sum()
    values = _raw(distribution, z)
    mean = float(weights @ values)
    return mean, float(np.sqrt(weights @ (values - mean) ** 2))


@cache
def latent_correlation(distribution: Distribution, asked: float) -> float:
    """Return the correlation that normal variables must have so that `quantile` gives jitter of correlation `asked`."""
    if asked == 0 or distribution == "normal":
        return asked
    if distribution == "uniform":
        return float(2 * np.sin(np.pi * asked / 6))  # Pearson 1907
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    weights = weights / weights.sum()
    here = quantile(distribution, nodes)
    low, high = 0.0, 1.0
    for _ in range(40):
        r = (low + high) / 2
        there = quantile(distribution, r * nodes[:, None] + np.sqrt(1 - r * r) * nodes[None, :]) @ weights
        low, high = (r, high) if float(weights @ (here * there)) < asked else (low, r)
    return (low + high) / 2


def netem_jitter(distribution: Distribution, u: Floats) -> Floats:
    """Map uniform values u (0 to 1) to netem's jitter by its tables' formulas, in multiples of sigma, at most four."""
    if distribution == "uniform":
        return 2 * u - 1
    from scipy.special import ndtri

    normal = np.clip(ndtri(np.clip(u, 1e-5, 1 - 1e-4)), -4, 3.5)
    pareto = np.minimum(((1 - u) ** (-1 / _PARETO) - 1.5) * 4 / 3, 32767 / 8192)
    tables = {"normal": normal, "pareto": pareto, "paretonormal": (normal + 3 * pareto) / 4}
    return np.asarray(tables[distribution])
