"""Inference on discrete graphical models by eliminating variables, and constraint propagation, on CPUs and GPUs.

- ``solve`` answers a question about a model or a file: the best assignment, posteriors, a sum, a count.
- ``plan`` shows the memory and the time that the answer takes.
- ``read`` and ``write`` are for files; ``Model.from_cpds`` and ``Model.from_arrays`` build models.
- ``JunctionTree`` answers many questions about one model, and batches of cases.
- ``fit`` learns the distributions of a network, ``sample`` draws from a model.
- ``DynamicModel`` is for hidden Markov models, ``InfluenceDiagram`` for decisions.
- ``elimina.cp`` models constraints, ``elimina.dcop`` solves distributed problems, ``elimina.viz`` draws pictures.

Examples:
    >>> import elimina
    >>> cpds = {"rain": [0.8, 0.2], ("wet", "rain"): [[0.9, 0.25], [0.1, 0.75]]}
    >>> model = elimina.Model.from_cpds(cpds, states={"rain": ["no", "yes"], "wet": ["no", "yes"]})
    >>> result = elimina.solve(model, "mar", evidence={"wet": "yes"})
    >>> round(result.marginals["rain"]["yes"], 4)
    0.6522
"""

from __future__ import annotations

from elimina.lazy_names import lazy_names
from elimina.version import __version__ as __version__

TYPE_CHECKING = False  # importing the name from typing would take longer than the rest of this module
if TYPE_CHECKING:
    from elimina.api import iterate_best, plan, sample, solve
    from elimina.decisions import InfluenceDiagram
    from elimina.errors import (
        ClusterError,
        DcopError,
        DeviceError,
        EliminaError,
        FormatError,
        ImpossibleEvidenceError,
        InputError,
        InternalError,
        MemoryLimitError,
        TimeLimitError,
        UnsupportedError,
    )
    from elimina.io.evidence_files import read_evidence
    from elimina.io.model_files import read, write
    from elimina.io.pgmpy_networks import from_pgmpy, to_pgmpy
    from elimina.io.pyagrum_networks import from_pyagrum, to_pyagrum
    from elimina.learning import fit
    from elimina.methods.dynamic_model import DynamicModel, OnlineFilter
    from elimina.methods.junction_tree import JunctionTree
    from elimina.methods.parameter_learning import Fit, FitOptions
    from elimina.methods.samples import Samples
    from elimina.model.model import Model
    from elimina.model.named_table import NamedTable
    from elimina.model.policy import Policy
    from elimina.model.states import StateIndex
    from elimina.model.table import FORBIDDEN, Table
    from elimina.model.variable import Variable
    from elimina.planning.options import Options
    from elimina.planning.plan import Plan
    from elimina.reporting import Report, report
    from elimina.result import Bounds, Interval, Result

__all__ = [
    "FORBIDDEN",
    "Bounds",
    "ClusterError",
    "DcopError",
    "DeviceError",
    "DynamicModel",
    "EliminaError",
    "Fit",
    "FitOptions",
    "FormatError",
    "ImpossibleEvidenceError",
    "InfluenceDiagram",
    "InputError",
    "InternalError",
    "Interval",
    "JunctionTree",
    "MemoryLimitError",
    "Model",
    "NamedTable",
    "OnlineFilter",
    "Options",
    "Plan",
    "Policy",
    "Report",
    "Result",
    "Samples",
    "StateIndex",
    "Table",
    "TimeLimitError",
    "UnsupportedError",
    "Variable",
    "fit",
    "from_pgmpy",
    "from_pyagrum",
    "iterate_best",
    "plan",
    "read",
    "read_evidence",
    "report",
    "sample",
    "solve",
    "to_pgmpy",
    "to_pyagrum",
    "write",
]

_HOMES = {
    "io.pgmpy_networks": ("from_pgmpy", "to_pgmpy"),
    "io.pyagrum_networks": ("from_pyagrum", "to_pyagrum"),
    "api": ("iterate_best", "plan", "sample", "solve"),
    "decisions": ("InfluenceDiagram",),
    "learning": ("fit",),
    "methods.dynamic_model": ("DynamicModel", "OnlineFilter"),
    "methods.junction_tree": ("JunctionTree",),
    "methods.parameter_learning": ("Fit", "FitOptions"),
    "methods.samples": ("Samples",),
    "planning.options": ("Options",),
    "io": ("read", "read_evidence", "write"),
    "model.model": ("Model", "Variable"),
    "model.named_table": ("NamedTable",),
    "model.policy": ("Policy",),
    "planning.plan": ("Plan",),
    "reporting": ("Report", "report"),
    "errors": (
        *("ClusterError", "DcopError", "DeviceError", "EliminaError", "FormatError", "ImpossibleEvidenceError"),
        *("InputError", "InternalError", "MemoryLimitError", "TimeLimitError", "UnsupportedError"),
    ),
    "result": ("Bounds", "Interval", "Result"),
    "model.states": ("StateIndex",),
    "model.table": ("FORBIDDEN", "Table"),
}

# Modules are loaded when first used, so that the command line can catch an interrupt while NumPy loads.
__getattr__, __dir__ = lazy_names(globals(), _HOMES, ("cp", "dcop", "distributed", "generate", "io", "viz"))
