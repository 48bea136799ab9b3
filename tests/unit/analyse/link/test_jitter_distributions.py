"""The distributions of a jitter have what is known of them."""

from __future__ import annotations

import numpy as np
import pytest

from tunnelmark.analyse.link.jitter_distributions import latent_correlation


def test_the_latent_correlation_of_known_distributions():
    assert latent_correlation("normal", 0.3) == 0.3
    assert latent_correlation("uniform", 0.5) == pytest.approx(2 * np.sin(np.pi / 12))
    assert 0.5 < latent_correlation("pareto", 0.5) < 0.8
