"""Write radio.wcsp: a small frequency-assignment problem (`python examples/make_radio.py radio.wcsp`).

Transmitters along a valley each choose one of 8 frequencies. Close ones must be at least 2 apart and pay where they are
not 4 apart, less close ones pay where they are not 3 apart, and each has frequencies that it would rather avoid.
"""

from __future__ import annotations

import math
import random
import sys

import numpy as np

import elimina

TRANSMITTERS, FREQUENCIES, LENGTH, WIDTH = 30, 8, 100.0, 14.0
NEAR, FAR = 8.0, 13.0


def radio_model(seed: int = 7) -> elimina.Model:
    """Return the model; the same seed gives the same one."""
    rng = random.Random(seed)
    places = sorted((rng.uniform(0, LENGTH), rng.uniform(0, WIDTH)) for _ in range(TRANSMITTERS))
    frequency = np.arange(FREQUENCIES)
    apart = abs(frequency[:, None] - frequency[None, :])
    factors: list[tuple[list[int], np.ndarray]] = []
    for i, one in enumerate(places):
        factors.append(([i], np.array([rng.randrange(10) for _ in range(FREQUENCIES)])))
        for j in range(i + 1, TRANSMITTERS):
            distance = math.dist(one, places[j])
            if distance > FAR:
                continue
            wanted = 4 if distance <= NEAR else 3
            costs = np.maximum(wanted - apart, 0) * round(20 * NEAR / distance)
            if distance <= NEAR:
                costs[apart < 2] = elimina.FORBIDDEN
            factors.append(([i, j], costs))
    sizes = {f"t{i}": FREQUENCIES for i in range(TRANSMITTERS)}
    return elimina.Model.from_arrays(sizes, factors)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python make_radio.py FILE (.wcsp, .cfn, ...)")
    elimina.write(radio_model(), sys.argv[1])
