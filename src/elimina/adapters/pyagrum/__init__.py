"""pyAgrum (tested with 3.3): its networks as models and back, and its interface of exact inference."""

from elimina.adapters.pyagrum.lazy_propagation import LazyPropagation
from elimina.io.pyagrum_networks import from_pyagrum, to_pyagrum

__all__ = ["LazyPropagation", "from_pyagrum", "to_pyagrum"]
