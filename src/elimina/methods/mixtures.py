"""Mixtures of proposals, in which one proposal covers samples that another one misses (Veach and Guibas 1995)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from elimina._core import Sampler


class MixtureSampler:
    """Sampler that draws equally many samples from each proposal; weights use the mean of the proposals' densities.

    Args:
        components: Sampler of each proposal, and the constant to add to its log-weights; all draw the same variables.
    """

    def __init__(self, components: Sequence[tuple[Sampler, float]]) -> None:
        self._components = components

    def draw(
        self,
        seed: int,
        start: int,
        states: NDArray[np.int32],
        logs: NDArray[np.float64],
        sizes: NDArray[np.float64],
        threads: int,
    ) -> None:
        """Draw independent samples: see ``Sampler.draw``; ``sizes`` is empty. Weights include the constants."""
        assert not len(sizes)
        borders = np.linspace(0, len(logs), len(self._components) + 1).astype(int).tolist()
        for number, (sampler, constant) in enumerate(self._components):
            begin, end = borders[number], borders[number + 1]
            drawn = np.empty((len(states), end - begin), dtype=np.int32)
            weights = np.zeros((len(self._components), end - begin))
            sampler.draw(seed, start + begin, drawn, weights[number], np.zeros(0), threads)
            weights[number] += constant
            for other, (judge, addend) in enumerate(self._components):
                if other != number:
                    judge.weigh(drawn, weights[other], threads)
                    weights[other] += addend
            states[:, begin:end] = drawn
            # A weight is the model's product divided by the mixture's density, which is the mean of the proposals'
            # densities.
            logs[begin:end] += math.log(len(self._components)) - np.logaddexp.reduce(-weights, axis=0)
